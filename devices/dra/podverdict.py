"""Where a waiting Pod could go: the devices of all its claims together, and the node's own side.

Extended resources count as the scheduler counts them: on a node whose plugin offers the resource by
the plugin, elsewhere by a claim of the class that serves it, which the scheduler would make.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from devices.dra.allocate import Given, Kind, Verdict, forecast
from devices.dra.charges import GATE, Rule, container_references, device_lines
from devices.dra.claims import Ask, Claim, ClaimSpec, Request, Result
from devices.dra.holders import full, used_claims
from devices.dra.messages import Speaker, meaning
from devices.dra.nodeside import node_reasons
from devices.dra.pods import Pod
from devices.dra.published import published
from devices.dra.quantity import Quantity
from devices.dra.requests import Wish
from devices.dra.snapshot import Snapshot

#: Classes are extended resources of their own under this name (KEP-5004).
IMPLICIT = "deviceclass.resource.kubernetes.io/"
#: What the scheduler calls the claim that it would make for extended resources.
EXTENDED = "<extended-resources>"


@dataclass(frozen=True, slots=True)
class PodVerdict:
    """What comes of a Pod on one node. ``devices`` is the verdict on its claims alone; ``message``
    is in the scheduler's words, ``code`` Berth's.
    """

    node: str
    kind: Kind
    devices: Kind
    given: tuple[Given, ...] = ()
    message: str = ""
    code: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a Pod still needs: claims to be allocated, claims it is pinned by, and what is wrong
    with the Pod itself, whatever the node.
    """

    wishes: tuple[Wish, ...]
    names: tuple[str, ...]
    pinned: tuple[Claim, ...] = ()
    wrong: str = ""


def waiting(pod: Pod) -> bool:
    """Whether the Pod waits for a node."""
    return not pod.node_name and not pod.finished and pod.meta.deleted is None


def asked_by(pod: Pod, snapshot: Snapshot) -> Asked:
    """What a Pod's claims ask for. A claim that is not made yet is read off its template."""
    wishes, names, pinned = [], [], []
    namespace = pod.meta.namespace
    found = used_claims(pod, lambda name: snapshot.claims.get((namespace, name)))
    for entry in pod.claims:
        if entry.name not in found:
            continue  # no claim was needed
        claim = found[entry.name]
        if claim is None:
            template = snapshot.templates.get((namespace, entry.template))
            if entry.claim:
                return Asked((), (), (), f'resourceclaim "{entry.claim}" not found')
            if template is None:
                text = f'resource claim template "{entry.template}": not found'
                return Asked((), (), (), text)
            wishes.append(Wish(f"{namespace}/{pod.meta.name}-{entry.name}", template.spec))
        elif claim.meta.deleted is not None:
            return Asked((), (), (), f'resourceclaim "{claim.meta.name}" is being deleted')
        elif claim.allocation is None:
            wishes.append(Wish(str(claim), claim.spec))
        elif full(claim) and pod.meta.uid not in {c.uid for c in claim.reserved_for}:
            return Asked((), (), (), "resourceclaim in use")
        else:
            pinned.append(claim)
            continue
        names.append(entry.name)
    return Asked(tuple(wishes), tuple(names), tuple(pinned))


def pod_verdicts(
    snapshot: Snapshot, pod: Pod, nodes: Sequence[str] | None = None
) -> Iterator[PodVerdict]:
    """The verdict on a Pod for each node (all nodes by default)."""
    snapshot = snapshot.scheduled
    every = snapshot.node_names if nodes is None else nodes
    asked = asked_by(pod, snapshot)
    if asked.wrong:
        code = meaning(asked.wrong, Speaker.SCHEDULER).code
        for node in every:
            yield PodVerdict(node, Kind.NO, Kind.NO, message=asked.wrong, code=code)
        return
    by_plugin: dict[frozenset[str], list[str]] = defaultdict(list)
    extended = _extended(pod, snapshot)
    for node in every:
        offered = snapshot.node(node).allocatable
        by_plugin[frozenset(r for r in extended if offered.get(r))].append(node)
    for served, some in by_plugin.items():
        more = tuple(wish for resource, wish in extended.items() if resource not in served)
        by_dra = extended.keys() - served
        for node, verdict in forecast(snapshot, (*asked.wishes, *more), some):
            yield _on_node(snapshot, pod, node, verdict, asked, by_dra)


def _on_node(
    snapshot: Snapshot,
    pod: Pod,
    node: str,
    verdict: Verdict,
    asked: Asked,
    by_dra: Collection[str],
) -> PodVerdict:
    """The Pod's verdict on one node: a missing class is found out before any node is looked at,
    and other plugins of the scheduler are asked before devices.
    """
    there = snapshot.nodes.get(node)
    never = _never(snapshot, asked.wishes)
    if never:
        return _refused(node, verdict, never)
    if there is not None:
        before = node_reasons(snapshot, pod, there, served=by_dra)
        if before:
            return _refused(node, verdict, before[0])
    for claim in asked.pinned:
        if _elsewhere(snapshot, claim, node):
            continue
        if _one_pod_only(snapshot, claim) and pod.meta.uid not in _consumers(claim):
            return _refused(node, verdict, _shared(snapshot, claim))
    if verdict.kind is not Kind.OK:
        return PodVerdict(node, verdict.kind, verdict.kind, (), verdict.text, verdict.code)
    # The scheduler asks the allocator first, so that an error of a claim's own is not covered up.
    if any(_elsewhere(snapshot, claim, node) for claim in asked.pinned):
        return _refused(node, verdict, "resourceclaim not available on the node")
    unused = _unreferenced(snapshot, pod, verdict, asked)
    if unused:
        return _refused(node, verdict, unused)
    cost = device_cost(snapshot, pod, verdict, asked)
    after = node_reasons(snapshot, pod, there, cost, by_dra) if there is not None and cost else ()
    if after:
        return _refused(node, verdict, after[0])
    return PodVerdict(node, Kind.OK, Kind.OK, verdict.given)


def _never(snapshot: Snapshot, wishes: Sequence[Wish]) -> str:
    """Why no node at all is looked at: the scheduler checks the classes of every claim, and of
    every alternative, before it asks for any device. Source: ``PreFilter`` and
    ``validateDeviceClass`` of the scheduler's plugin.
    """
    for wish in wishes:
        for request in wish.spec.requests:
            if request.alternatives and "DRAPrioritizedList" not in snapshot.gates:
                return (
                    f"resource claim {wish.name}, request {request.name}: has subrequests, but the "
                    "DRAPrioritizedList feature is disabled"
                )
            for ask in request.asks:
                if not ask.device_class:
                    return ""  # an error, which the allocator words
                if ask.device_class not in snapshot.classes:
                    name = f"{request.name}/{ask.name}" if request.alternatives else request.name
                    return f"request {name}: device class {ask.device_class} does not exist"
    return ""


def _elsewhere(snapshot: Snapshot, claim: Claim, node: str) -> bool:
    """Whether an allocated claim cannot be used on the node."""
    selector = claim.allocation.selector if claim.allocation else None
    return selector is not None and not selector.matches(snapshot.node(node))


def _one_pod_only(snapshot: Snapshot, claim: Claim) -> bool:
    """Whether a device of an allocated claim stands for a resource of its node."""
    results = claim.allocation.results if claim.allocation and GATE in snapshot.gates else ()
    found = [published(snapshot, result.key) for result in results]
    return any(
        share.multiplier is not None or share.capacity_key
        for device in found
        if device is not None
        for share in device.device.node_shares
    )


def _shared(snapshot: Snapshot, claim: Claim) -> str:
    """What the scheduler says of a claim that a second Pod wants, in the words of its release."""
    what = f"node allocatable resource claim {claim.meta.name}"
    if snapshot.gates.at_least("1.37"):
        return f"{what} has a mapped device and cannot be shared across pods"
    return f"{what} is already used by another pod"


def _unreferenced(snapshot: Snapshot, pod: Pod, verdict: Verdict, asked: Asked) -> str:
    """Through 1.36 a claim that stands for a resource of its node must be used by a container."""
    if GATE not in snapshot.gates or snapshot.gates.at_least("1.37"):
        return ""
    for given in verdict.given:
        found = published(snapshot, given.device)
        name = asked.names[given.claim] if given.claim < len(asked.names) else ""
        if found is None or container_references(pod, name):
            continue
        result = Result(given.request, *given.device, consumed=given.consumed)
        if any(line.rule is Rule.MAPPING for line in device_lines(result, found.device)):
            claim = asked.wishes[given.claim].name.partition("/")[2] if name else EXTENDED
            text = "node-allocatable resource claim not referenced by any container within the pod"
            return f"claim {claim}: {text}"
    return ""


def _consumers(claim: Claim) -> frozenset[str]:
    return frozenset(consumer.uid for consumer in claim.reserved_for)


def _refused(node: str, verdict: Verdict, text: str) -> PodVerdict:
    code = meaning(text, Speaker.SCHEDULER).code
    return PodVerdict(node, Kind.NO, verdict.kind, (), text, code)


def device_cost(
    snapshot: Snapshot, pod: Pod, verdict: Verdict, asked: Asked
) -> Mapping[str, Quantity]:
    """What the Pod's devices would cost of the node, where the cluster counts that."""
    total: dict[str, Quantity] = {}
    if GATE not in snapshot.gates:
        return total
    for given in verdict.given:
        found = published(snapshot, given.device)
        name = asked.names[given.claim] if given.claim < len(asked.names) else ""
        if found is None or given.admin:
            continue
        driver, pool, device = given.device
        result = Result(given.request, driver, pool, device, consumed=given.consumed)
        for line in device_lines(result, found.device, container_references(pod, name)):
            if line.amount is not None:
                before = total.get(line.resource)
                total[line.resource] = line.amount if before is None else before + line.amount
    return total


def _extended(pod: Pod, snapshot: Snapshot) -> Mapping[str, Wish]:
    """For each extended resource that a class serves, the claim that the scheduler would make."""
    if "DRAExtendedResource" not in snapshot.gates:
        return {}
    served = _served(snapshot)
    requests: dict[str, list[Request]] = defaultdict(list)
    for number, container in enumerate(pod.containers):
        for index, (resource, amount) in enumerate(sorted(container.requests.items())):
            device_class = served.get(resource)
            if device_class is not None and not (container.init and not container.sidecar):
                name = f"container-{number}-request-{index}"
                ask = Ask(name, device_class, count=amount.rounded_up())
                requests[resource].append(Request(name, ask))
    return {
        resource: Wish(f"{pod.meta.namespace}/{EXTENDED}", ClaimSpec(tuple(found)))
        for resource, found in requests.items()
    }


def _served(snapshot: Snapshot) -> Mapping[str, str]:
    """By extended resource, the class that serves it: of two with one name the newest."""
    found: dict[str, str] = {}
    by_name = sorted(snapshot.classes.values(), key=lambda c: c.name, reverse=True)
    for device_class in sorted(by_name, key=lambda c: c.created.timestamp() if c.created else 0):
        found[f"{IMPLICIT}{device_class.name}"] = device_class.name
        if device_class.extended_resource:
            found[device_class.extended_resource] = device_class.name
    return found
