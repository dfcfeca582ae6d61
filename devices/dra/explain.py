"""Why claims are not allocated: one dominant reason from the closed list of codes, and its proof.

The allocator says yes or no and nothing else; the funnel says where the devices went. The reason is
the step of the funnel after which too few are left, of the request that gets least far.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from devices.dra.allocate import Forecast, Kind, Verdict, forecast
from devices.dra.claims import ALL, Constraint, DeviceClass
from devices.dra.codes import Code, code
from devices.dra.collector import collector_at_rest
from devices.dra.constraints import attribute_of
from devices.dra.funnel import Funnel, funnel
from devices.dra.matching import all_match
from devices.dra.pools import pools
from devices.dra.requests import Want, Wish
from devices.dra.restate import restate
from devices.dra.snapshot import Snapshot
from devices.dra.usage import usage
from devices.dra.wishes import without_constraint
from devices.dra.wording import some_of


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """Nodes on which the same comes out: how many, one of them by name, and what comes out."""

    nodes: int
    example: str
    kind: Kind
    code: str
    text: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """What comes of claims now and why.

    ``code`` is None where they fit (``nodes`` are then those on which they do). A failure on any
    node ends the scheduling attempt, so it stands for all nodes. ``funnels`` has one entry for each
    request and alternative, ``evidence`` what else was found, as sentences. ``assumed`` are
    features that nobody has read from the cluster.
    """

    kind: Kind
    code: Code | None
    sentence: str
    text: str = ""
    funnels: tuple[Funnel, ...] = ()
    groups: tuple[NodeGroup, ...] = ()
    nodes: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    release: str = ""
    assumed: tuple[str, ...] = ()
    forecast: Forecast | None = field(default=None, compare=False, repr=False)


def explain(
    snapshot: Snapshot, wishes: Sequence[Wish], nodes: Iterable[str] | None = None
) -> Explanation:
    """What comes of all claims of one Pod together, on these nodes (all by default), and why."""
    with collector_at_rest():
        return _explain(snapshot, wishes, nodes)


def _explain(
    snapshot: Snapshot, wishes: Sequence[Wish], nodes: Iterable[str] | None
) -> Explanation:
    seen = forecast(snapshot, wishes, nodes)
    groups = tuple(
        NodeGroup(
            len(group.nodes),
            group.nodes[0],
            group.verdict.kind,
            group.verdict.code,
            group.verdict.text,
        )
        for group in seen.groups
    )
    worst = _worst(seen)
    funnels = tuple(
        funnel(snapshot, want, usage(snapshot)) for want in _wants(snapshot, seen.wishes)
    )
    name, text = "", ""
    facts: dict[str, str] = {}
    evidence: tuple[str, ...] = ()
    if worst is not None and worst.kind is Kind.FATAL:
        # The scheduler gives the Pod up whatever other nodes could do.
        name, text = worst.code, worst.text
        if seen.fitting:
            evidence = (f"{len(seen.fitting)} nodes would do if nothing failed",)
    elif not seen.fitting:
        name, facts, evidence = _reason(snapshot, seen, funnels)
        text = worst.text if worst is not None else ""
    found = code(name) if name else None
    kind = Kind.NO if worst is None else worst.kind
    if seen.fitting and kind is not Kind.FATAL:
        kind = Kind.OK
    return Explanation(
        kind,
        found,
        found.sentence(facts) if found is not None else _fits(seen),
        text,
        funnels,
        groups,
        seen.fitting if kind is Kind.OK else (),
        evidence,
        snapshot.gates.release,
        snapshot.gates.assumed,
        seen,
    )


def _fits(seen: Forecast) -> str:
    number = len(seen.fitting)
    return f"Fits now, on {seen.fitting[0] if number == 1 else f'{number} nodes'}."


def _worst(seen: Forecast) -> Verdict | None:
    """The verdict that stands for all: one that ends the whole attempt outweighs any other."""
    order = {Kind.FATAL: 0, Kind.NODE_ERROR: 1, Kind.NO: 2, Kind.OK: 3}
    verdicts = [group.verdict for group in seen.groups]
    return min(verdicts, key=lambda verdict: order[verdict.kind], default=None)


def _reason(
    snapshot: Snapshot, seen: Forecast, funnels: Sequence[Funnel]
) -> tuple[str, dict[str, str], tuple[str, ...]]:
    """The code, its facts, and evidence, for claims that no node can have."""
    short = [f for f in _best_alternatives(funnels) if f.ends is not None or _too_few(f)]
    if short:
        return _short(min(short, key=_far))
    alone = [f for f in _best_alternatives(funnels) if f.need is not None and f.best < f.need]
    if alone:
        worst = alone[0]
        never = next((f for f in alone if f.need is not None and f.most < f.need), None)
        if never is not None:
            facts = {"most": str(never.most), "need": str(never.need)}
            return "MORE_THAN_ANY_NODE_HAS", facts, ()
        evidence = f"{worst.left} devices are left for {worst.request}, {worst.best} on one node"
        return "NOT_ENOUGH_ON_ONE_NODE", {}, (evidence,)
    if any(f.need is None for f in funnels):
        return "ALL_DEVICES_NOT_FREE", {}, ()
    agreed = _without_constraints(snapshot, seen)
    if agreed:
        return "CONSTRAINT_NOT_SATISFIED", {}, agreed
    if len(funnels) > 1:
        return "NOT_TOGETHER_ON_ONE_NODE", {}, _apart(snapshot, seen)
    if any(group.verdict.kind is Kind.NODE_ERROR for group in seen.groups):
        return "POOL_INVALID", {}, ()
    return "NO_MATCHING_DEVICE_FREE", {}, ()


def _best_alternatives(funnels: Sequence[Funnel]) -> list[Funnel]:
    """Of alternatives of one request the one that gets furthest."""
    by_request: dict[tuple[int, str], Funnel] = {}
    for found in funnels:
        key = (found.claim, found.request.partition("/")[0])
        if key not in by_request or _far(found) > _far(by_request[key]):
            by_request[key] = found
    return list(by_request.values())


def _far(found: Funnel) -> tuple[int, int]:
    """How far a request gets: by the step that ends it, then by what is left after it."""
    if found.ends is None:
        return (len(_ORDER), found.best)
    return (_ORDER.index(found.ends.code) if found.ends.code in _ORDER else 0, found.ends.left)


#: Steps in the order in which devices meet them.
_ORDER = (
    "POOL_INCOMPLETE",
    "POOL_INVALID",
    "NO_DEVICE_IN_CLASS",
    "SELECTOR_NO_SUCH_KEY",
    "SELECTOR_FAILS",
    "NO_DEVICE_MATCHES_SELECTOR",
    "CAPACITY_NOT_OFFERED",
    "FEATURE_OFF",
    "DEVICE_TAINTED",
    "NO_MATCHING_DEVICE_FREE",
    "CAPACITY_TAKEN",
    "COUNTERS_TAKEN",
)


def _too_few(found: Funnel) -> bool:
    return found.ends is None and found.need is not None and found.published < found.need


def _short(found: Funnel) -> tuple[str, dict[str, str], tuple[str, ...]]:
    step = found.ends
    facts = {"need": str(found.need or 1), "left": str(step.left if step else found.published)}
    before = found.published
    for each in found.steps:
        if each is step:
            break
        before = each.left
    facts |= {"total": str(before)}
    if step is None:
        return "TOO_FEW_MATCH", facts, ()
    if step.clause:
        facts["clause"] = restate(step.clause) or step.clause
    name = step.code
    if step.left and name in ("NO_DEVICE_IN_CLASS", "NO_DEVICE_MATCHES_SELECTOR"):
        name = "TOO_FEW_MATCH"
    evidence = tuple(f"{by} stands in the way" for by in step.by)
    return name, facts, (*((step.failed,) if step.failed else ()), *evidence)


def _without_constraints(snapshot: Snapshot, seen: Forecast) -> tuple[str, ...]:
    """Which constraint is in the way, where one is: everything fits once it is gone."""
    for number, wish in enumerate(seen.wishes):
        for index, constraint in enumerate(wish.spec.constraints):
            if forecast(snapshot, _dropped(seen.wishes, number, index)).fitting:
                name = constraint.match or constraint.distinct
                what = "equal" if constraint.match else "different"
                return (
                    f"{wish.name}: {name} has to be {what}",
                    *_unpublished(snapshot, wish, constraint),
                )
    return ()


def _dropped(wishes: Sequence[Wish], number: int, index: int) -> list[Wish]:
    return [
        without_constraint(wish, index) if position == number else wish
        for position, wish in enumerate(wishes)
    ]


def _unpublished(snapshot: Snapshot, wish: Wish, constraint: Constraint) -> Iterable[str]:
    """Requests none of whose devices have the attribute at all: no match, and no error either."""
    name = constraint.match or constraint.distinct
    for want in _wants(snapshot, (wish,)):
        if constraint.requests and not {want.request.name, want.name} & set(constraint.requests):
            continue
        if not any(_publishes(snapshot, want.device_class, name)):
            yield f"no device of {want.device_class.name} publishes {name}"


def _publishes(snapshot: Snapshot, device_class: DeviceClass, name: str) -> Iterable[bool]:
    for pool in pools(snapshot).values():
        for piece in pool.slices:
            answers = all_match(snapshot, device_class.selectors, piece)
            for device, answer in zip(piece.devices, answers, strict=True):
                if answer is True:
                    yield attribute_of(device.attributes, name, piece.driver) is not None


def _apart(snapshot: Snapshot, seen: Forecast) -> tuple[str, ...]:
    """Where each claim would fit alone."""
    found = []
    for wish in seen.wishes:
        fitting = forecast(snapshot, [wish]).fitting
        found.append(f"{wish.name} alone fits {some_of(fitting, 3) or 'nowhere'}")
    return tuple(found)


def _wants(snapshot: Snapshot, wishes: Sequence[Wish]) -> Iterable[Want]:
    """Each request and alternative whose class exists."""
    for number, wish in enumerate(wishes):
        for request in wish.spec.requests:
            for ask in request.asks:
                found = snapshot.classes.get(ask.device_class)
                if found is not None and ask.mode in ("ExactCount", ALL):
                    alternative = ask.name if request.alternatives else ""
                    yield Want(number, request, ask, found, alternative)
