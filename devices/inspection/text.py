"""The answers as text for people: short sections, equal nodes together, unknown said as unknown."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from devices.dra.allocate import Kind
from devices.dra.capacity import Tally, capacity
from devices.dra.charges import charges, idle_charges
from devices.dra.codes import code
from devices.dra.drift import drift, labelled
from devices.dra.funnel import Funnel
from devices.dra.largest import largest
from devices.dra.leaks import leaks
from devices.dra.ledger import accounts
from devices.dra.ownership import Ownership, ownership, same_hardware
from devices.dra.pools import Pool, pools
from devices.dra.snapshot import Snapshot
from devices.dra.wording import many, some_of
from devices.inspection.answers import Answer, Inspected, Subject, subjects

#: How many nodes, holders and hints one line names.
NAMED = 4


def text(inspected: Inspected) -> Iterator[str]:
    """Every answer, section by section; a section without anything to say is left out, and all but
    the first where nothing was read.
    """
    snapshot = inspected.snapshot
    yield from _section("Not read, or not as it stands", map(str, inspected.problems))
    if not inspected.kinds:
        return
    yield from _section("What is assumed", _assumed(snapshot))
    yield from _section("Pools", _pools(snapshot))
    yield from _section("Capacity", _capacity(snapshot))
    yield from _section("Who fits where", _subjects(inspected))
    yield from _section("Leaks", _leaks(snapshot))
    yield from _section("Owners", _owners(snapshot))
    yield from _section("Drift", _drift(snapshot))
    yield from _section("Charged to nodes", _charges(snapshot))


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    first = True
    for line in lines:
        if first:
            yield from ("", title, "-" * len(title))
            first = False
        yield line


def _assumed(snapshot: Snapshot) -> Iterator[str]:
    gates = snapshot.gates
    on = ", ".join(sorted(gates.on)) or "none"
    yield f"Kubernetes {gates.release}; features taken as on: {on}"
    yield "Nobody has read these from the cluster: set them with --gates and --release."


def _pools(snapshot: Snapshot) -> Iterator[str]:
    yield from _grouped((str(pool), _pool(pool)) for pool in pools(snapshot).values())


def _pool(pool: Pool) -> str:
    devices = sum(1 for _ in pool.devices)
    notes = []
    if pool.incomplete:
        notes.append(f"INCOMPLETE: {len(pool.slices)} of {pool.expected} slices")
    if pool.invalid:
        notes.append(f"INVALID: {pool.invalid}")
    if pool.outdated:
        notes.append(f"{len(pool.outdated)} older slices, which count for nothing")
    state = "; ".join(notes) or "complete"
    return f"generation {pool.generation}, {many(devices, 'device')}: {state}"


def _capacity(snapshot: Snapshot) -> Iterator[str]:
    found = capacity(snapshot)
    yield f"cluster: {_tally(found.cluster)}"
    for name, tally in found.classes.items():
        most = largest(snapshot, name)
        fits = "largest request that fits: unknown"
        if most.count is not None:
            where = f" (on {most.node})" if most.node else ""
            fits = f"largest request that fits: {most.count}{where}"
        yield f"class {name}: {_tally(tally)}; {fits}"
    yield from _grouped(
        (f"node {node}" if node else "of no single node", _tally(tally))
        for node, tally in found.nodes.items()
    )
    for device in found.not_published:
        yield f"allocated and not published: {'/'.join(device)}"


def _tally(tally: Tally) -> str:
    parts = [f"{many(tally.total, 'piece')} of hardware"]
    parts += [
        f"{number} {word}"
        for word, number in (
            ("idle", tally.idle),
            ("allocated", tally.allocated),
            ("partly used", tally.fragmented),
        )
        if number
    ]
    parts += [f"{number} unavailable ({name})" for name, number in tally.unavailable.items()]
    parts += [f"{number} unknown ({name})" for name, number in tally.unknown.items()]
    if tally.devices != tally.total:
        parts.append(f"published as {many(tally.devices, 'device')}")
    return ", ".join(parts)


def _subjects(inspected: Inspected) -> Iterator[str]:
    for subject in subjects(inspected):
        yield f"{subject.subject} in {subject.namespace or 'no namespace'}: {subject.sentence}"
        if subject.code is not None:
            who = subject.code.who.value
            yield f"    {subject.code} ({subject.code.class_}; {who}): {subject.code.next_step}"
        yield from (f"    {line}" for line in _verdicts(subject.answers))
        if subject.code is not None:
            yield from (f"    {line}" for line in _proof(subject))


def _verdicts(answers: Sequence[Answer]) -> Iterator[str]:
    groups: dict[tuple[Kind, str], list[Answer]] = defaultdict(list)
    for answer in answers:
        groups[answer.kind, answer.message].append(answer)
    for (kind, message), some in groups.items():
        nodes = _named([answer.node for answer in some])
        devices = ", ".join(str(given) for given in some[0].given)
        more = message or devices
        example = " such as" if len(some) > 1 and devices and not message else ""
        yield f"{kind.value} on {nodes}{f':{example} {more}' if more else ''}"


def _proof(subject: Subject) -> Iterator[str]:
    for funnel in subject.explanation.funnels if subject.explanation is not None else ():
        yield from _funnel(funnel)
    yield from subject.evidence
    for hint in subject.hints[:NAMED]:
        until = f", about {hint.until:%Y-%m-%d %H:%M %Z}" if hint.until is not None else ""
        yield f"would fit on {hint.node}: {hint.text}{until}"
    if subject.reason is not None and subject.reason.text:
        yield f"the cluster said: {subject.reason.text}"
    if subject.unmodelled:
        yield f"not looked at here: {', '.join(subject.unmodelled)}"


def _funnel(found: Funnel) -> Iterator[str]:
    asked = "all" if found.need is None else str(found.need)
    steps = [f"{found.published} published"]
    for step in found.steps:
        what = step.clause if step.clause and step.what != "of the class" else step.what
        by = f" ({_named(step.by)})" if step.by else ""
        steps.append(f"{step.left} {what}{by}")
    yield f"{found.request}: {' → '.join(steps)}; {asked} asked, {found.best} on one node"


def _leaks(snapshot: Snapshot) -> Iterator[str]:
    for leak in leaks(snapshot):
        devices = ", ".join("/".join(device) for device in leak.devices)
        held = f" holds {devices}" if devices else ""
        yield f"{leak.code}: {', '.join(leak.claims)}{held}"
        yield f"    {leak.code.words} {leak.code.next_step}"
        yield f"    {_named(leak.proof)}"


def _owners(snapshot: Snapshot) -> Iterator[str]:
    found = ownership(snapshot)
    yield from _grouped((f"{owned.node} {owned.type}", _owner(owned)) for owned in found)
    for conflict in {owned.code.name: owned.code for owned in found if owned.code}.values():
        yield f"    {conflict}: {conflict.words} {conflict.next_step}"
    for same in same_hardware(snapshot):
        devices = ", ".join("/".join(device) for device in same.devices)
        yield f"{same.node} {same.code}: {devices} ({', '.join(same.by)})"


def _owner(owned: Ownership) -> str:
    plugin = "unknown" if owned.plugin is None else owned.plugin
    left = f", {owned.left_over} left over in its capacity" if owned.left_over else ""
    return f"{owned.owner.value.upper()} (plugin {plugin}, published {owned.published}{left})"


def _grouped(lines: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Lines of a name and what is said about it; many names with the same to say share a line."""
    by_text: dict[str, list[str]] = defaultdict(list)
    for name, said in lines:
        by_text[said].append(name)
    for said, names in by_text.items():
        if len(names) <= NAMED:
            yield from (f"{name}: {said}" for name in names)
        else:
            yield f"{_named(names)}, each: {said}"


def _drift(snapshot: Snapshot) -> Iterator[str]:
    unknown = 0
    for each in drift(snapshot, labelled(snapshot)):
        if each.code.name == "DRIFT_NOT_KNOWN":
            unknown += 1
        else:
            yield f"{each.node or 'cluster'} {each.driver} {each.code}: {each.why}"
    if unknown:
        yield f"{many(unknown, 'pool')} without a record of what should be there"


def _charges(snapshot: Snapshot) -> Iterator[str]:
    balances = accounts(snapshot)
    for node, lines in charges(snapshot).items():
        for resource, account in balances[node].items():
            if account.lines:
                yield (
                    f"{node} {resource}: {_amount(account.charged)} charged "
                    f"({_amount(account.by_devices)} by devices) of "
                    f"{_amount(account.allocatable)}, {_amount(account.free)} free"
                )
        for line in lines:
            inside = ", inside the Pod's budget" if line.contained else ""
            odd = f"  {line.code}: {code(line.code).words}" if line.code else ""
            amount = f"{_amount(line.amount)} {line.resource}"
            yield f"    {amount}  {line.rule}  {line.payer}{inside}{odd}"
    for line in idle_charges(snapshot):
        amount = f"{_amount(line.amount)} {line.resource}"
        yield f"charged to nobody: {amount} of {line.payer}, once a Pod uses it"


def _amount(amount: object) -> str:
    return "unknown" if amount is None else str(amount)


def _named(names: Sequence[str]) -> str:
    return some_of(names, NAMED)
