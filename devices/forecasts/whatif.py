"""What would come of an ask now: whether it fits, where, else why not, and whose job it is. Pure.

The allocator answers for the devices, the scheduler's own rules for the Pod beside them. What
"does not fit" means is told apart by asking the same of an empty cluster: taken now, closed now, or
never. It is advice: nothing is reserved, and what the scheduler has in flight is not seen.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import islice
from typing import Final

from devices.dra.allocate import Forecast, Kind, forecast
from devices.dra.claims import read_claim, read_template
from devices.dra.codes import CODES, Class, Who, code
from devices.dra.explain import Explanation, explain
from devices.dra.funnel import Funnel
from devices.dra.ledger import Account, accounts
from devices.dra.messages import Speaker, meaning
from devices.dra.objects import ClaimWish, Shape, claim_objects, pod_manifest
from devices.dra.pods import Pod, read_pod
from devices.dra.podverdict import asked_by, pod_verdicts
from devices.dra.requests import Wish
from devices.dra.snapshot import Snapshot
from devices.dra.taints import Toleration
from devices.dra.waits import Wait, frees, waits, wants_of
from devices.dra.wishes import with_toleration
from devices.forecasts.picture import Picture

#: What a Pod is taken to ask of its node beside devices, where nobody has said.
CPU: Final = "1"
MEMORY: Final = "1Gi"
#: On so many nodes with free devices the node's own side is looked at, and again on as many where
#: the Pod can go to none of them, until so many were looked at.
NODES_AT_ONCE: Final = 64
MOST_NODES: Final = 320
#: So many of the asker's own claims are tried as what could end.
MOST_OWN: Final = 24
#: Whatever the taint.
_ANY: Final = Toleration("", "Exists", "", "")


class Fate(StrEnum):
    """What becomes of an ask, and with it whose job it is."""

    NOW = "fits now"
    TAKEN = "taken now"
    """It would fit if nothing were taken: nobody has to act, it waits."""
    CLOSED = "closed now"
    """The devices are there and out of service: the platform team's."""
    NODE = "no room beside the devices"
    """Devices are free where the Pod itself cannot go."""
    NEVER = "fits never"
    """Not even an empty cluster has it: the ask has to change."""
    UNKNOWN = "not known"


#: Who acts, where the fate alone says it.
_WHO: Final[Mapping[Fate, Who]] = {
    Fate.NOW: Who.NOBODY,
    Fate.TAKEN: Who.NOBODY,
    Fate.CLOSED: Who.PLATFORM,
}
_STEPS: Final[Mapping[Fate, str]] = {
    Fate.TAKEN: "The scheduler tries again whenever a device is freed.",
    Fate.CLOSED: "The platform team opens them again, or replaces them.",
}


@dataclass(frozen=True, slots=True)
class Outlook:
    """What would come of an ask now.

    ``nodes`` are those on which all of it fits, empty otherwise; ``devices_on`` is how many nodes
    could give the devices alone. ``code`` is empty where it fits. ``said`` is the allocator's or
    the scheduler's own text, ``beside`` what keeps the Pod off nodes with free devices, by
    sentence and number of nodes. ``looked`` says on how many of those nodes the Pod was tried.
    """

    fate: Fate
    code: str
    sentence: str
    who: Who
    step: str
    nodes: tuple[str, ...] = ()
    devices_on: int = 0
    looked: int = 0
    funnels: tuple[Funnel, ...] = ()
    evidence: tuple[str, ...] = ()
    said: str = ""
    beside: tuple[tuple[str, int], ...] = ()
    waits: tuple[Wait, ...] = ()
    release: str = ""
    assumed: tuple[str, ...] = ()

    @property
    def fits(self) -> bool:
        return self.fate is Fate.NOW

    @property
    def known(self) -> bool:
        return self.fate is not Fate.UNKNOWN


def wish_of(asked: ClaimWish) -> Wish:
    """The claim that one Pod of the ask needs, as the rules read it."""
    (obj,) = claim_objects(asked)
    name = f"{asked.namespace}/{asked.name}"
    if asked.shape is Shape.CLAIM:
        return Wish(name, read_claim(obj)[0].spec)
    return Wish(name, read_template(obj)[0].spec)


def usual_pod(asked: ClaimWish, cpu: str = CPU, memory: str = MEMORY) -> Pod:
    """The Pod of the snippet, asking so much of its node beside the devices."""
    manifest = pod_manifest(replace(asked, resources=()), image="any", command=())
    (container,) = manifest["spec"]["containers"]
    container["resources"] = {**container["resources"], "requests": {"cpu": cpu, "memory": memory}}
    manifest["metadata"]["uid"] = "what-if"
    return read_pod(manifest)


def outlook(
    seen: Picture,
    asked: ClaimWish,
    *,
    cpu: str = CPU,
    memory: str = MEMORY,
    mine: Collection[str] = (),
) -> Outlook:
    """What would come of an ask and of one Pod that uses it; ``mine`` as in `of_wishes`."""
    found = of_wishes(seen, [wish_of(asked)], mine)
    if not found.fits:
        return found
    return _beside(seen.prepared(), asked, found, usual_pod(asked, cpu, memory))


def of_wishes(seen: Picture, wishes: Sequence[Wish], mine: Collection[str] = ()) -> Outlook:
    """What would come of claims, by their devices alone. Holders in the namespaces ``mine`` are
    tried one by one, since whoever asks can end these.
    """
    empty = forecast(seen.empty, wishes)
    now = seen.prepared()
    first = forecast(now, wishes)
    if first.fitting and not any(group.verdict.kind is Kind.FATAL for group in first.groups):
        return _fits(now, first.fitting)
    found = explain(now, wishes)
    assert found.code is not None, "what does not fit has a reason"
    fate = _fate(seen.empty, wishes, found, empty)
    if fate is Fate.NEVER and found.code.class_ is Class.RETRYABLE:
        # Some of them are taken, but freeing these would not help: the reason is what the empty
        # cluster lacks.
        found = explain(seen.empty, wishes)
    assert found.code is not None
    told = _outlook(found, fate, found.code.name, _sentence(fate, found))
    if fate is Fate.TAKEN and found.forecast is not None:
        return replace(told, waits=(*_own(now, wishes, mine), *waits(now, found.forecast)))
    return told


def _own(now: Snapshot, wishes: Sequence[Wish], mine: Collection[str]) -> Iterator[Wait]:
    """Claims of the asker's own whose release alone lets the wishes in, on the node they are on."""
    allocated = (
        claim
        for claim in now.claims.values()
        if claim.allocation is not None and claim.meta.namespace in mine
    )
    for claim in islice(allocated, MOST_OWN):
        selector = claim.allocation.selector if claim.allocation else None
        nodes = {result.pool for result in claim.allocation.results} if claim.allocation else set()
        pinned = selector.only_node if selector else None
        for node in [pinned] if pinned else sorted(nodes & now.nodes.keys()):
            if frees(now, wishes, node, {str(claim)}):
                yield Wait((str(claim),), node)
                break


def _fits(now: Snapshot, nodes: tuple[str, ...]) -> Outlook:
    return Outlook(
        Fate.NOW,
        "",
        f"Fits now, on {nodes[0] if len(nodes) == 1 else f'{len(nodes)} nodes'}.",
        Who.NOBODY,
        "",
        nodes,
        devices_on=len(nodes),
        release=now.gates.release,
        assumed=now.gates.assumed,
    )


def _outlook(found: Explanation, fate: Fate, name: str, sentence: str) -> Outlook:
    known = CODES.get(name)
    who = _WHO.get(fate) or (known.who if known else Who.NOBODY)
    if fate is Fate.NEVER and who is Who.NOBODY:
        who = Who.TENANT
    return Outlook(
        fate,
        name,
        sentence,
        who,
        _STEPS.get(fate) or (known.next_step if known else ""),
        funnels=found.funnels,
        evidence=found.evidence,
        said=found.text,
        release=found.release,
        assumed=found.assumed,
    )


def _sentence(fate: Fate, found: Explanation) -> str:
    """One sentence with the numbers of the request that gets least far."""
    assert found.code is not None
    short = min((f for f in found.funnels if f.need), key=lambda f: f.left, default=None)
    if short is None or short.need is None:
        return found.sentence
    step = short.ends
    before = step.left + step.removed if step is not None else short.left
    match fate, found.code.name:
        case Fate.TAKEN, "NO_MATCHING_DEVICE_FREE" if step is not None and not step.left:
            return (
                f"All {before} devices that match are taken."
                if before > 1
                else ("The one device that matches is taken.")
            )
        case Fate.TAKEN, "NO_MATCHING_DEVICE_FREE" if step is not None:
            return (
                f"Only {step.left} of {before} that match are free, and {short.need} are asked for."
            )
        case Fate.TAKEN, "NOT_ENOUGH_ON_ONE_NODE":
            return (
                f"{short.left} are free, at most {short.best} of them on one node; "
                f"{short.need} are asked for."
            )
        case Fate.CLOSED, "DEVICE_TAINTED":
            return f"{before} devices match, and too many of them are closed to new work."
        case Fate.NEVER, "CONSTRAINT_NOT_SATISFIED":
            return "No node has devices that belong together in this way, free or not."
    return found.sentence


def _fate(empty: Snapshot, wishes: Sequence[Wish], found: Explanation, without: Forecast) -> Fate:
    assert found.code is not None
    if found.kind is Kind.FATAL:
        # The scheduler gives the Pod up: whether it passes by itself is what the code says.
        if found.code.class_ is Class.UNKNOWN:
            return Fate.UNKNOWN
        passes = found.code.class_ is Class.RETRYABLE or found.code.who is Who.PLATFORM
        return Fate.CLOSED if passes else Fate.NEVER
    if without.fitting:
        return Fate.TAKEN
    tolerant = list(wishes)
    for number, wish in enumerate(wishes):
        for want in wants_of(empty, [wish]):
            tolerant[number] = with_toleration(tolerant[number], want.name, _ANY)
    if forecast(empty, tolerant).fitting or found.code.who is Who.PLATFORM:
        return Fate.CLOSED
    return Fate.NEVER


def _beside(now: Snapshot, asked: ClaimWish, found: Outlook, pod: Pod) -> Outlook:
    """The same with the node's own side: cordons, taints, room for the Pod, what devices cost."""
    (obj,) = claim_objects(asked)
    key = (asked.namespace, asked.name)
    if asked.shape is Shape.CLAIM:
        there = replace(now, claims={**now.claims, key: read_claim(obj)[0]})
    else:
        there = replace(now, templates={**now.templates, key: read_template(obj)[0]})
    return _with_node(there, pod, found)


def _with_node(now: Snapshot, pod: Pod, found: Outlook) -> Outlook:
    """What becomes of a Pod on the nodes whose devices would do."""
    good: list[str] = []
    bad: Counter[str] = Counter()
    codes: Counter[str] = Counter()
    looked = 0
    for start in range(0, min(len(found.nodes), MOST_NODES), NODES_AT_ONCE):
        tried = found.nodes[start : start + NODES_AT_ONCE]
        looked += len(tried)
        for verdict in pod_verdicts(with_accounts(now, tried), pod, tried):
            if verdict.kind is Kind.OK:
                good.append(verdict.node)
            else:
                bad[verdict.message] += 1
                codes[verdict.code] += 1
        if good:
            break
    beside = tuple(bad.most_common())
    if good:
        least = "at least " if looked < found.devices_on else ""
        where = good[0] if len(good) == 1 else f"{least}{_nodes(len(good))}"
        return replace(
            found,
            sentence=f"Fits now, on {where}.",
            nodes=tuple(good),
            looked=looked,
            beside=beside,
        )
    name = codes.most_common(1)[0][0]
    known = code(name)
    return replace(
        found,
        fate=Fate.NODE,
        code=name,
        sentence=f"Devices are free on {_nodes(looked)}, but the Pod cannot go there.",
        who=known.who,
        step=known.next_step,
        nodes=(),
        looked=looked,
        said=beside[0][0],
        beside=beside,
    )


def with_accounts(now: Snapshot, names: Sequence[str]) -> Snapshot:
    """The same cluster, in which the accounts of these nodes alone are known.

    What Pods and devices cost a node is a sum over the Pods on it, so the other nodes' Pods, which
    are most of them, need not be looked at. Accounts are kept with the snapshot, node by node.
    """
    known: dict[str, Mapping[str, Account]] = now.once("accounts of some", lambda s: {})
    missing = [name for name in names if name not in known]
    if missing:
        there = now.once("pods by node", _pods_by_node)
        pods = {pod.key: pod for name in missing for pod in there.get(name, ())}
        near = Snapshot(
            slices=now.slices,
            # Where nobody read any Pod, claims stand for theirs; here none are on these nodes.
            claims=now.claims if pods or not now.pods else {},
            nodes={name: now.node(name) for name in missing},
            pods=pods,
            gates=now.gates,
            memo={key: now.memo[key] for key in ("pools", "slices by name") if key in now.memo},
        )
        found = accounts(near)
        known |= {name: found[name] for name in missing if name in found}
    counts = {name: len(now.once("pods by node", _pods_by_node).get(name, ())) for name in names}
    return replace(now, memo={**now.memo, "accounts": known, "pod counts": Counter(counts)})


def _pods_by_node(now: Snapshot) -> Mapping[str, Sequence[Pod]]:
    found: dict[str, list[Pod]] = defaultdict(list)
    for pod in now.pods.values():
        if pod.node_name and not pod.finished:
            found[pod.node_name].append(pod)
    return found


def _nodes(number: int) -> str:
    return "one node" if number == 1 else f"{number} nodes"


def of_pod(seen: Picture, pod: Pod, mine: Collection[str] = ()) -> Outlook:
    """What would come of a Pod that waits in the cluster: all its claims together, and its node."""
    now = seen.prepared()
    asked = asked_by(pod, now)
    if asked.wrong:
        known = code(meaning(asked.wrong, Speaker.SCHEDULER).code)
        return Outlook(
            Fate.NEVER if known.class_ is Class.NOT_RETRYABLE else Fate.TAKEN,
            known.name,
            known.words,
            known.who,
            known.next_step,
            said=asked.wrong,
        )
    found = of_wishes(seen, asked.wishes, mine) if asked.wishes else None
    if found is not None and not found.fits:
        return found
    nodes = found.nodes if found is not None else now.node_names
    before = found or Outlook(
        Fate.NOW, "", "Its devices are chosen.", Who.NOBODY, "", nodes, devices_on=len(nodes)
    )
    return _with_node(now, pod, before)
