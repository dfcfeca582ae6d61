"""What stands in a cluster's ledger now: one entry for every amount, from objects alone.

Device lines are computed from claims and slices, *not* from what the scheduler wrote into the Pod:
that is the third side of the comparison (`ledgercompare`). Only where a device is not published
any more does an entry rest on the Pod's status, and says so. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from devices.dra.charges import (
    GATE,
    Rule,
    mapped_amount,
    numa_node,
    own_lines,
    told_amounts,
)
from devices.dra.claims import Claim, DeviceKey, Result
from devices.dra.holders import claims_of
from devices.dra.ledgerpools import PoolState, Version, number, version_of
from devices.dra.nodes import Node
from devices.dra.podrequests import budget
from devices.dra.pods import Pod
from devices.dra.podstatus import ClaimCharge, read_pod_status
from devices.dra.pools import PoolKey
from devices.dra.published import published
from devices.dra.quantity import ZERO, Quantity
from devices.dra.slices import UNKNOWN, NodeShare
from devices.dra.snapshot import Snapshot

#: Rules of the stream that comes from devices.
OF_DEVICES = frozenset({Rule.MAPPING, Rule.OVERHEAD})
POD_STATUS = "Pod status"
NO_SLICE = Version()


@dataclass(frozen=True, slots=True)
class Entry:
    """One amount on one node; None where nobody can say how much.

    ``container`` is empty for what counts once per Pod. ``contained``: part of the Pod's budget, or
    what the node offers; it adds nothing to what is charged. ``source`` is the object (or part of
    the Pod) that the amount was read from.
    """

    node: str
    rule: Rule
    resource: str
    amount: Quantity | None
    payer: str
    pod: str = ""
    pod_uid: str = ""
    claim: str = ""
    claim_uid: str = ""
    device: DeviceKey | None = None
    share: str = ""
    container: str = ""
    numa: int | None = None
    contained: bool = False
    version: Version = NO_SLICE
    source: str = ""
    code: str = ""

    @property
    def key(self) -> str:
        """What makes two entries the same one, whatever their version: a digest of 32 digits.

        A mapping belongs to the claim; overhead to the claim, the Pod and the container; a Pod's
        own requests to the Pod; what a node offers to the node.
        """
        parts = identity(
            self.rule, self.resource, self.claim_uid, self.device, self.share, self.pod_uid,
            self.container, self.node,
        )  # fmt: skip
        return blake2b("\0".join(parts).encode(), digest_size=16).hexdigest()

    @property
    def pair(self) -> Pair:
        """Which Pod uses which claim by it."""
        return (self.pod_uid, self.claim)


def identity(
    rule: str,
    resource: str,
    claim_uid: str,
    device: DeviceKey | None,
    share: str,
    pod_uid: str,
    container: str,
    node: str,
) -> tuple[str, ...]:
    """What `Entry.key` is the digest of."""
    if rule == Rule.ALLOCATABLE:
        return (rule, resource, node)
    if rule == Rule.MAPPING and device is not None:
        return (rule, resource, claim_uid, *device, share)
    return (rule, resource, claim_uid, *(device or ("", "", "")), share, pod_uid, container)


Pair = tuple[str, str]
"""A Pod's uid and the claim that it uses, as namespace/name."""


@dataclass(frozen=True, slots=True)
class Seen:
    """Everything that the ledger takes from one look at the cluster.

    ``entries`` have a key each; ``doubled`` would be counted twice, ``older`` rest on a generation
    that is refused. ``held`` are the devices that each Pod holds by each claim (None: the claim is
    gone), ``missing`` those pairs of which nobody publishes a device; ``told`` is what the
    scheduler wrote for each. ``bound`` are entries by what was told, for pairs whose slices changed
    after the binding.
    """

    entries: tuple[Entry, ...] = ()
    doubled: tuple[Entry, ...] = ()
    older: tuple[Entry, ...] = ()
    held: Mapping[Pair, frozenset[DeviceKey] | None] = field(default_factory=dict)
    told: Mapping[Pair, ClaimCharge] = field(default_factory=dict)
    missing: frozenset[Pair] = frozenset()
    bound: Mapping[Pair, tuple[Entry, ...]] = field(default_factory=dict)


def look(
    snapshot: Snapshot,
    states: Mapping[PoolKey, PoolState],
    nodes: Collection[str] | None = None,
) -> Seen:
    """The ledger's view of a snapshot, or of these nodes of it; ``states`` are its pools (see
    `ledgerpools.follow`).
    """
    found: list[Entry] = []
    older: list[Entry] = []
    notes = _Notes()
    for node in snapshot.nodes.values():
        if nodes is None or node.name in nodes:
            found += _offered(node)
    for pod in snapshot.pods.values():
        if not pod.node_name or (nodes is not None and pod.node_name not in nodes) or pod.finished:
            continue
        found += _own(pod, snapshot)
        if pod.claims or pod.extended_claim or "nodeAllocatableResourceClaimStatuses" in (
            pod.raw.get("status") or {}
        ):  # fmt: skip
            for entry in _by_claims(pod, snapshot, states, notes):
                refused = entry.device and states[entry.device[:2]].refused is not None
                (older if refused else found).append(entry)
    kept: dict[str, Entry] = {}
    doubled = []
    for entry in found:
        if (key := entry.key) in kept:
            doubled.append(replace(entry, code="LEDGER_COUNTED_TWICE"))
        else:
            kept[key] = entry
    missing = {
        pair
        for pair, devices in notes.held.items()
        if devices is not None and not all(published(snapshot, key) for key in devices)
    }
    return Seen(
        tuple(kept.values()), tuple(doubled), tuple(older),
        notes.held, notes.told, frozenset(missing), notes.bound,
    )  # fmt: skip


@dataclass(slots=True)
class _Notes:
    """What is noted beside the entries while Pods are read (see `Seen`)."""

    held: dict[Pair, frozenset[DeviceKey] | None] = field(default_factory=dict)
    told: dict[Pair, ClaimCharge] = field(default_factory=dict)
    bound: dict[Pair, tuple[Entry, ...]] = field(default_factory=dict)


def _offered(node: Node) -> Iterator[Entry]:
    for resource, amount in node.allocatable.items():
        yield Entry(
            node.name, Rule.ALLOCATABLE, resource, amount, f"node/{node.name}",
            contained=True, source="Node status",
        )  # fmt: skip


def _own(pod: Pod, snapshot: Snapshot) -> Iterator[Entry]:
    uid = pod.meta.uid or str(pod)
    for line in own_lines(pod, snapshot.node(pod.node_name).allocatable):
        if line.amount:
            yield Entry(
                pod.node_name, line.rule, line.resource, line.amount, line.payer, str(pod), uid,
                contained=line.contained, source="Pod spec",
            )  # fmt: skip


def _by_claims(
    pod: Pod,
    snapshot: Snapshot,
    states: Mapping[PoolKey, PoolState],
    notes: _Notes,
) -> Iterator[Entry]:
    """Entries of the Pod's claims; notes what the Pod holds and what was written for it."""
    uid, whole = pod.meta.uid or str(pod), budget(pod)
    written = {entry.claim: entry for entry in read_pod_status(pod.raw).charges}
    if not written and GATE not in snapshot.gates:
        return
    blank = Entry(pod.node_name, Rule.MAPPING, "", None, "", str(pod), uid)
    for name, claim in claims_of(pod, snapshot).items():
        if claim is None or claim.allocation is None:
            continue
        pair = (uid, str(claim))
        charge = written.pop(claim.meta.name, None)
        if charge is not None:
            notes.told[pair] = charge
        notes.held[pair] = frozenset(result.key for result in claim.allocation.results)
        mine = replace(blank, claim=str(claim), claim_uid=claim.meta.uid or str(claim))
        lines = list(_claim_entries(mine, claim, references(pod, name), snapshot, states))
        lines += _unpublished(mine, claim, lines, charge, snapshot)
        # A charge without amounts tells nothing: an upgrade emptied it (LEDGER_SHAPE_LOST).
        says = charge is not None and any(told_amounts(charge).values())
        if charge is not None and says and _changed_since(claim, lines, charge):
            notes.bound[pair] = tuple(
                replace(line, contained=line.resource in whole)
                for line in _by_status(replace(mine, code="LEDGER_CHANGED_LATER"), charge, {})
            )
        for line in lines:
            yield replace(line, contained=line.resource in whole)
    for charge in written.values():  # of claims that no longer exist
        claim_name = f"{pod.meta.namespace}/{charge.claim}"
        notes.told[uid, claim_name], notes.held[uid, claim_name] = charge, None
        mine = replace(blank, claim=claim_name, claim_uid=claim_name, code="LEDGER_CLAIM_GONE")
        for line in _by_status(mine, charge, {}):
            yield replace(line, contained=line.resource in whole)


def references(pod: Pod, claim_name: str) -> Mapping[str, int]:
    """By container, how often it refers to a claim by the Pod's own name for it; the scheduler
    counts every reference, of init containers too.
    """
    found: dict[str, int] = defaultdict(int)
    for container in pod.containers:
        for name, _ in container.claims:
            if name == claim_name:
                found[container.name] += 1
    return found


def _claim_entries(
    blank: Entry,
    claim: Claim,
    used: Mapping[str, int],
    snapshot: Snapshot,
    states: Mapping[PoolKey, PoolState],
) -> Iterator[Entry]:
    for result in claim.allocation.results if claim.allocation else ():
        found = published(snapshot, result.key)
        if found is None or not found.device.node_shares:
            continue
        mine = replace(
            blank,
            device=result.key,
            share=result.share_id,
            numa=numa_node(found.device),
            version=version_of(states[result.key[:2]], found.piece),
            source=f"slice {found.piece.name}",
        )
        for share in found.device.node_shares:
            yield from _device_entries(replace(mine, resource=share.resource), share, result, used)


def _device_entries(
    blank: Entry, share: NodeShare, result: Result, used: Mapping[str, int]
) -> Iterator[Entry]:
    """What one device costs of one resource, for one Pod.

    Worked example: ``overhead: {perPod: 2Gi, perContainer: 512Mi}``, used by ``a`` and ``b``, is
    three entries: 2Gi, 512Mi for ``a``, 512Mi for ``b``.
    """
    mapped, known = mapped_amount(share, result) if share.shape != UNKNOWN else (None, False)
    payer = f"claim/{blank.claim}"
    if not known:
        yield replace(blank, payer=payer, code="LEDGER_UNKNOWN_SHAPE")
    elif mapped:
        yield replace(blank, payer=payer, amount=mapped)
    per = replace(blank, payer=f"pod/{blank.pod}", rule=Rule.OVERHEAD)
    if share.per_pod:
        yield replace(per, amount=share.per_pod)
    if share.per_container:
        for container, times in used.items():
            yield replace(per, container=container, amount=share.per_container * times)


def _unpublished(
    blank: Entry,
    claim: Claim,
    lines: list[Entry],
    charge: ClaimCharge | None,
    snapshot: Snapshot,
) -> Iterator[Entry]:
    """What the Pod's status says beyond the devices that are still published, where one is not."""
    results = claim.allocation.results if claim.allocation else ()
    if charge is None or all(published(snapshot, result.key) for result in results):
        return
    known: dict[tuple[Rule, str], Quantity] = {}
    for line in lines:
        if line.amount is not None:
            place = (line.rule, line.resource)
            known[place] = known.get(place, ZERO) + line.amount
    yield from _by_status(replace(blank, code="LEDGER_DEVICE_NOT_FOUND"), charge, known)


def _changed_since(claim: Claim, lines: list[Entry], charge: ClaimCharge) -> bool:
    """Whether slices say something else than was told because they were written after the claim
    was last touched, and so after the binding. Revisions of one cluster are in one order.
    """
    if charge.shape == UNKNOWN or not lines:
        return False
    bound_at = number(claim.raw.get("metadata", {}).get("resourceVersion") or "")
    written = max(line.version.resource_version for line in lines)
    told = {place: amount for place, amount in told_amounts(charge).items() if amount}
    return 0 < bound_at < written and amounts(lines) != told


def amounts(entries: Iterable[Entry]) -> dict[tuple[Rule, str], Quantity | None]:
    """What device entries come to, by rule and resource; None where one is unknown."""
    found: dict[tuple[Rule, str], Quantity | None] = {}
    for entry in entries:
        if entry.rule in OF_DEVICES:
            place = (entry.rule, entry.resource)
            before = found.get(place, ZERO)
            found[place] = None if before is None or entry.amount is None else before + entry.amount
    return found


def _by_status(
    blank: Entry, charge: ClaimCharge, known: Mapping[tuple[Rule, str], Quantity]
) -> Iterator[Entry]:
    blank = replace(blank, source=POD_STATUS)
    if charge.shape == UNKNOWN:
        yield replace(
            blank, payer=f"claim/{blank.claim}", resource=UNKNOWN, code="LEDGER_UNKNOWN_SHAPE"
        )
        return
    for (rule, resource), amount in told_amounts(charge).items():
        rest = amount - known.get((rule, resource), ZERO)
        payer = f"claim/{blank.claim}" if rule is Rule.MAPPING else f"pod/{blank.pod}"
        if rest > ZERO:
            yield replace(blank, rule=rule, resource=resource, amount=rest, payer=payer)
