"""What is charged to each node: one line for every amount, with who pays it and by which rule.

Two streams meet here: what Pods ask for themselves, and what their devices cost of the node (the
*mapping* of a device that is the resource, once per claim; the *overhead* of a device that needs
it, once per Pod). The scheduler charges a node by the Pod's status, which it wrote when it bound
the Pod, so that status is what counts; slices say which device, and where they no longer agree the
line says so. Sources: KEP-5517; ``component-helpers/resource``; the scheduler plugin's
``nodeallocatabledynamicresources.go``. Both shapes, of 1.36 and of 1.37.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from devices.dra.claims import Claim, DeviceKey, Result
from devices.dra.holders import claims_of, pods_by_uid
from devices.dra.podrequests import HUGEPAGES, budget, container_requests
from devices.dra.pods import Pod
from devices.dra.podstatus import ClaimCharge, read_pod_status
from devices.dra.published import node_of, published
from devices.dra.quantity import ZERO, Format, Quantity
from devices.dra.slices import UNKNOWN, Device, NodeShare
from devices.dra.snapshot import Snapshot

GATE: Final = "DRANodeAllocatableResources"
#: Attributes that say on which NUMA node a device is, the agreed one first (KEP-6072).
_NUMA: Final = ("resource.kubernetes.io/numaNode", "numaNode", "numaNodeID", "numa")


class Rule(StrEnum):
    """By which rule a line is charged."""

    REQUEST = "request"
    """What the Pod's containers ask for."""
    BUDGET = "pod budget"
    """What the Pod asks for as a whole; it takes the place of the sum of all other lines."""
    RUNTIME = "runtime overhead"
    """What running the Pod costs by itself (spec.overhead)."""
    MAPPING = "mapping"
    """The device is the resource: once per claim."""
    OVERHEAD = "overhead"
    """The device needs the resource: once per Pod, and for each container that uses it."""
    ALLOCATABLE = "allocatable"
    """What the node itself offers: a line of the log, charged to nobody."""


@dataclass(frozen=True, slots=True)
class Line:
    """One amount charged to a node; ``amount`` is None where nobody can say how much.

    ``payer`` is ``pod/namespace/name`` or ``claim/namespace/name``. A line that is ``contained``
    is part of the Pod's budget and adds nothing to it. ``code`` names what is odd about it, and
    ``numa`` is None where the device does not say.
    """

    node: str
    resource: str
    amount: Quantity | None
    rule: Rule
    payer: str
    pod: str = ""
    claim: str = ""
    device: DeviceKey | None = None
    share: str = ""
    numa: int | None = None
    contained: bool = False
    code: str = ""

    @property
    def key(self) -> tuple[str, ...]:
        """What makes two lines the same entry: an entry with a known key never counts twice."""
        device = self.device or ("", "", "")
        per_pod = self.pod if self.rule is not Rule.MAPPING else ""
        return (self.rule, self.resource, self.claim, *device, self.share, per_pod)


def charges(snapshot: Snapshot) -> Mapping[str, tuple[Line, ...]]:
    """By node, every line that is charged to it, in one order whatever the snapshot's order."""
    return snapshot.once("charges", _charges)


def idle_charges(snapshot: Snapshot) -> tuple[Line, ...]:
    """What allocated claims that no Pod uses would be charged, once one does: charged to nobody."""
    return snapshot.once("idle charges", _idle_charges)


def device_lines(result: Result, device: Device, references: int = 1) -> tuple[Line, ...]:
    """What one allocated device costs of its node, for one Pod with so many container references.

    Worked example: ``overhead: {perPod: 2Gi, perContainer: 512Mi}`` and two references are 3Gi;
    ``mapping: {capacityKey: cores, capacityMultiplier: "2"}`` and 4 consumed cores are 8.
    The lines have no node, payer or claim yet.
    """
    lines = []
    numa = numa_node(device)
    for share in device.node_shares:
        blank = Line(
            "", share.resource, None, Rule.MAPPING, "", device=result.key, share=result.share_id,
            numa=numa,
        )  # fmt: skip
        if share.shape == UNKNOWN:
            lines.append(replace(blank, code="LEDGER_UNKNOWN_SHAPE"))
            continue
        mapped, known = mapped_amount(share, result)
        if not known:
            lines.append(replace(blank, code="LEDGER_UNKNOWN_SHAPE"))
        elif mapped is not None:
            lines.append(replace(blank, amount=mapped))
        if share.per_pod is not None or share.per_container is not None:
            each = share.per_container or ZERO
            lines.append(
                replace(
                    blank, rule=Rule.OVERHEAD, amount=(share.per_pod or ZERO) + each * references
                )
            )
    return tuple(lines)


def numa_node(device: Device) -> int | None:
    """The NUMA node of a device, None where it does not say. A negative number says nothing."""
    by_name = {name.rpartition("/")[2]: value for name, value in device.attributes.items()}
    for name in _NUMA:
        found = device.attributes.get(name) or by_name.get(name)
        if found is None:
            continue
        values = found.elements
        if found.element_kind == "int" and len(values) == 1:
            [value] = values
            return int(value) if value >= 0 else None
    return None


def container_references(pod: Pod, claim_name: str) -> int:
    """How often containers refer to a claim by the Pod's own name for it."""
    return sum(name == claim_name for c in pod.containers for name, _ in c.claims)


def mapped_amount(share: NodeShare, result: Result) -> tuple[Quantity | None, bool]:
    """The mapped amount (None: the device maps nothing here), and whether it can be told.

    A capacity key needs consumed capacity; a key that the allocation did not consume maps nothing.
    """
    if share.capacity_key:
        if result.consumed is None:
            return None, False
        consumed = result.consumed.get(share.capacity_key)
        if consumed is None:
            return None, True
        return _product(consumed, share.multiplier), True
    if share.shape == "1.36":
        return share.multiplier or ZERO, True
    return share.multiplier, True


def _product(consumed: Quantity, multiplier: Quantity | None) -> Quantity:
    """The product, written in powers of two where either factor is."""
    if multiplier is None:
        return consumed
    if multiplier.format is Format.BINARY:
        return multiplier * consumed
    return consumed * multiplier


# --- by Pod ---


def _charges(snapshot: Snapshot) -> Mapping[str, tuple[Line, ...]]:
    found: dict[str, list[Line]] = defaultdict(list)
    mapped: set[str] = set()
    for pod in snapshot.pods.values():
        if pod.node_name and not pod.finished:
            found[pod.node_name] += _pod_lines(pod, snapshot, mapped)
    if not snapshot.pods:
        for node, line in _reserved_lines(snapshot):
            found[node].append(line)
    return {node: tuple(sorted(lines, key=_order)) for node, lines in sorted(found.items())}


def own_lines(pod: Pod, offered: Mapping[str, Quantity]) -> Iterator[Line]:
    """What the Pod is charged for itself, without its devices. ``offered`` is what its node can
    hold: an extended resource that a claim serves is not charged where the node has none of it.
    """
    own, whole = f"pod/{pod}", budget(pod)
    blank = Line(pod.node_name, "", None, Rule.REQUEST, own, pod=str(pod))
    for resource, amount in container_requests(pod).items():
        if not _from_claim(pod, resource, offered):
            yield replace(blank, resource=resource, amount=amount, contained=resource in whole)
    for resource, amount in whole.items():
        yield replace(blank, resource=resource, amount=amount, rule=Rule.BUDGET)
    for resource, amount in pod.overhead.items():
        yield replace(blank, resource=resource, amount=amount, rule=Rule.RUNTIME)


def _pod_lines(pod: Pod, snapshot: Snapshot, mapped: set[str]) -> Iterable[Line]:
    whole = budget(pod)
    yield from own_lines(pod, snapshot.node(pod.node_name).allocatable)
    for line in _claims_lines(pod, snapshot, mapped):
        yield replace(line, contained=line.contained or line.resource in whole)


def _claims_lines(pod: Pod, snapshot: Snapshot, mapped: set[str]) -> Iterable[Line]:
    told = {entry.claim: entry for entry in read_pod_status(pod.raw).charges}
    used = claims_of(pod, snapshot) if pod.claims or pod.extended_claim else {}
    if not told and GATE not in snapshot.gates:
        return
    for name, claim in used.items():
        if claim is None:
            continue
        lines = _claim_lines(claim, snapshot, container_references(pod, name))
        placed = [
            replace(line, node=pod.node_name, payer=_payer(line, claim, pod), pod=str(pod))
            for line in lines
        ]
        entry = told.pop(claim.meta.name, None)
        for line in placed if entry is None and _silent(placed) else _settled(placed, entry, pod):
            if line.rule is Rule.MAPPING and str(claim) in mapped:
                line = replace(line, contained=True, code="LEDGER_COUNTED_TWICE")
            yield line
        mapped.add(str(claim))
    for entry in told.values():  # of claims that no longer exist, or that nobody read
        for line in _settled([], entry, pod):
            yield replace(line, code="LEDGER_CLAIM_GONE")


def _claim_lines(claim: Claim, snapshot: Snapshot, references: int) -> list[Line]:
    """What a claim's devices cost by what is published now, without node and payer."""
    lines: list[Line] = []
    for result in claim.allocation.results if claim.allocation else ():
        if result.admin:
            continue
        found = published(snapshot, result.key)
        if found is not None:
            lines += (
                replace(line, claim=str(claim))
                for line in device_lines(result, found.device, references)
            )
    return lines


def _settled(lines: list[Line], told: ClaimCharge | None, pod: Pod) -> Iterable[Line]:
    """Lines by device where they add up to what the Pod's status says; else the status's own
    amount as one line, for that is what the scheduler charges.
    """
    if told is not None and told.shape == UNKNOWN:
        yield from (replace(line, code="LEDGER_UNKNOWN_SHAPE", amount=None) for line in lines)
        if not lines:
            yield _told_line(told, "unknown", None, Rule.MAPPING, pod, "LEDGER_UNKNOWN_SHAPE")
        return
    amounts = told_amounts(told) if told is not None else {}
    by_key: dict[tuple[Rule, str], list[Line]] = defaultdict(list)
    for line in lines:
        by_key[line.rule, line.resource].append(line)
    for key in sorted({*by_key, *amounts}):
        found, amount = by_key[key], amounts.get(key)
        total = _total(found)
        if told is None or (amount or ZERO) == total:
            # Nothing was written for the Pod: what its devices cost is charged all the same, and
            # the line says that the scheduler does not know of it.
            odd = "" if told is not None else "LEDGER_POD_STATUS_DIFFERS"
            yield from (replace(line, code=line.code or odd) for line in found)
        elif amount is not None:
            odd = "LEDGER_POD_STATUS_DIFFERS" if found else "LEDGER_DEVICE_NOT_FOUND"
            odd = "LEDGER_UNKNOWN_SHAPE" if total is None else odd
            yield _told_line(told, key[1], amount, key[0], pod, odd)
        else:  # the scheduler wrote of the claim, and not of this: it charges nothing for it
            yield _told_line(told, key[1], ZERO, key[0], pod, "LEDGER_POD_STATUS_DIFFERS")


def told_amounts(told: ClaimCharge) -> dict[tuple[Rule, str], Quantity]:
    """What a Pod's status says of one claim, by rule and resource."""
    amounts = {(Rule.MAPPING, name): amount for name, amount in told.mapping.items()}
    for name in {*told.per_pod, *told.per_container}:
        each = told.per_container.get(name, ZERO) * len(told.containers)
        amounts[Rule.OVERHEAD, name] = told.per_pod.get(name, ZERO) + each
    return amounts


def _told_line(
    told: ClaimCharge, resource: str, amount: Quantity | None, rule: Rule, pod: Pod, code: str
) -> Line:
    claim = f"{pod.meta.namespace}/{told.claim}"
    payer = f"claim/{claim}" if rule is Rule.MAPPING else f"pod/{pod}"
    return Line(pod.node_name, resource, amount, rule, payer, str(pod), claim, code=code)


def _total(lines: Iterable[Line]) -> Quantity | None:
    total = ZERO
    for line in lines:
        if line.amount is None:
            return None
        total = total + line.amount
    return total


def _silent(lines: list[Line]) -> bool:
    """Whether the devices cost nothing, so that the Pod's status has nothing to say either."""
    return all(line.amount == ZERO for line in lines)


def _payer(line: Line, claim: Claim, pod: Pod) -> str:
    return f"claim/{claim}" if line.rule is Rule.MAPPING else f"pod/{pod}"


def _from_claim(pod: Pod, resource: str, offered: Mapping[str, Quantity]) -> bool:
    """Whether an extended resource comes from the claim that the scheduler made for the Pod, so
    that the node itself is not charged for it. A node that offers it by a plugin is.
    """
    extended = "/" in resource and not resource.startswith(HUGEPAGES)
    return bool(extended and pod.extended_claim and not offered.get(resource))


# --- without Pods ---


def _reserved_lines(snapshot: Snapshot) -> Iterable[tuple[str, Line]]:
    """Where no Pod was read at all: claims that are reserved, as if their Pods were there."""
    for claim in snapshot.claims.values():
        node = node_of(claim, snapshot)
        for consumer in claim.reserved_for if node else ():
            pod = f"{claim.meta.namespace}/{consumer.name}"
            for line in _claim_lines(claim, snapshot, 1):
                payer = f"claim/{claim}" if line.rule is Rule.MAPPING else f"pod/{pod}"
                yield node, replace(line, node=node, payer=payer, pod=pod)
            break


def _idle_charges(snapshot: Snapshot) -> tuple[Line, ...]:
    by_uid = pods_by_uid(snapshot)
    lines = []
    for claim in snapshot.claims.values():
        used = [by_uid.get(consumer.uid) for consumer in claim.reserved_for]
        if claim.allocation is None or any(pod and not pod.finished for pod in used):
            continue
        if claim.reserved_for and not snapshot.pods:
            continue
        lines += [
            replace(line, node=node_of(claim, snapshot), payer=f"claim/{claim}")
            for line in _claim_lines(claim, snapshot, 1)
        ]
    return tuple(sorted(lines, key=_order))


def _order(line: Line) -> tuple[object, ...]:
    return (
        line.resource, line.rule, line.payer, line.pod, line.claim, line.device or ("", "", ""),
        line.share, line.amount or ZERO,
    )  # fmt: skip
