"""Samples from how nodes stand: two owners, missing devices, drift, free devices that lie apart,
tenants where they do not belong, drivers that came back.

What is asked of the mirror needs one that is heard; else it is not known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from devices.dra.capacity import capacity
from devices.dra.claims import Claim
from devices.dra.drift import Inventory, drift, plugin_drift
from devices.dra.holders import Origin, origin
from devices.dra.names import CLASSES_ANNOTATION
from devices.dra.ownership import Owner
from devices.dra.pluginpath import requested
from devices.dra.podstatus import read_pod_status
from devices.dra.published import node_of
from devices.dra.snapshot import Snapshot
from devices.dra.usage import usage
from devices.fleet.nodepools import place_named, selected
from devices.fleet.ownershipbook import conflicting
from devices.forecasts.picture import Picture
from devices.models import DriftLine, Observed, OwnershipLine
from migrationplan.gates import Sample, Samples
from migrationplan.gating.subjects import Subject
from migrationplan.gating.ways import Way, Ways
from migrationplan.measures import Measure
from migrationplan.steps import Direction
from tenants.models import TenantNamespace

#: A picture of the cluster that is older proves nothing.
FRESH: Final = timedelta(seconds=60)
#: Slices dip when a kubelet restarts; what counts has lasted so long.
LASTING: Final = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Ground:
    """What is looked at: the cluster, whose namespaces are whose, and the book's lines of the
    pool's nodes since the subject began.
    """

    picture: Picture | None
    nodes: tuple[str, ...]
    lines: tuple[OwnershipLine, ...]
    tenants: Mapping[str, str]
    allowed: Mapping[str, frozenset[str]]
    drifts: tuple[DriftLine, ...] = ()


def ground_of(subject: Subject, picture: Picture | None) -> Ground:
    """Four queries."""
    pool = subject.pool
    known = selected(pool.selector, picture.now) if picture else []
    nodes = tuple(sorted({*known, *subject.moved}))
    lines = OwnershipLine.objects.filter(node__in=nodes, type__in=(pool.resource, pool.driver))
    since = lines.filter(until=None) | lines.filter(until__gt=subject.since)
    tenants = TenantNamespace.objects.values_list("name", "tenant__slug")
    spaces = Observed.objects.filter(kind="Namespace").exclude(tenant="")
    allowed = {row.name: _classes(row.obj) for row in spaces}
    believed = DriftLine.objects.filter(pool=pool).exclude(believed_at=None)
    drifts = believed.filter(gone_at=None) | believed.filter(gone_at__gt=subject.since)
    return Ground(
        picture, nodes, tuple(since.order_by("pk")), dict(tenants), allowed, tuple(drifts)
    )


def _classes(namespace: Mapping[str, Any]) -> frozenset[str]:
    """The device classes that a namespace may use, as the admission policies read them."""
    said = (namespace["metadata"].get("annotations") or {}).get(CLASSES_ANNOTATION, "")
    return frozenset(name for name in said.split(",") if name)


def samples_of(
    measure: Measure, subject: Subject, ground: Ground, ways: Ways, limit: float, now: datetime
) -> Samples:
    """One measure's samples of both sides. `limit` is the gate's, in seconds."""
    if measure is Measure.CONFLICTS:
        return _conflicts(subject, ground, now)
    if measure is Measure.MISSING:
        return _missing(subject, ground, now)
    picture = ground.picture
    if picture is None:
        return Samples(unknown="the cluster has not been seen yet")
    if now - picture.as_of > FRESH:
        return Samples(unknown="the cluster has not been heard for a minute")
    match measure:
        case Measure.DRIFT:
            return _drift(subject, ground, picture.now, now)
        case Measure.FRAGMENTATION:
            return _fragmentation(subject, ground, picture.now)
        case Measure.VIOLATIONS:
            return _violations(subject, ground, picture.now)
        case Measure.RESTART:
            return Samples(tuple(_restarts(subject, picture.now, ways.moved, limit)))
        case _:
            raise ValueError(f"{measure} is not seen on nodes")


def _conflicts(subject: Subject, ground: Ground, now: datetime) -> Samples:
    """How often each node had two owners since it counts."""
    times: Counter[str] = Counter()
    for line in ground.lines:
        counts_from = subject.moved.get(line.node, subject.since)
        if conflicting(line, now) and (line.until is None or line.until > counts_from):
            times[line.node] += 1
    seen = {line.node for line in ground.lines if line.until is None}
    return _by_node(subject, ground, {node: times[node] for node in seen})


def _missing(subject: Subject, ground: Ground, now: datetime) -> Samples:
    """Nodes that have shown fewer devices than recorded, for longer than a dip lasts."""
    wanted = subject.pool.devices_per_node
    if wanted is None:
        return Samples(unknown="nobody recorded how many devices a node of this pool has")
    shown: dict[str, float] = {}
    for line in ground.lines:
        if line.until is None:
            visible = line.published if line.owner == Owner.DRA else line.plugin
            if visible is None:
                continue
            if visible >= wanted or now - line.since >= LASTING:
                shown[line.node] = float(max(wanted - visible, 0))
    return _by_node(subject, ground, shown)


def _drift(subject: Subject, ground: Ground, snapshot: Snapshot, now: datetime) -> Samples:
    """What the book of drift held against each node since it counts, and what is found now and has
    lasted: the node's line in the book of owners has not changed meanwhile.
    """
    pool, wanted = subject.pool, subject.pool.devices_per_node
    if wanted is None:
        return Samples(unknown="nobody recorded how many devices a node of this pool has")
    owners = {line.node: line for line in ground.lines if line.until is None}
    by_dra = [node for node, line in owners.items() if line.owner == Owner.DRA]
    expected = {(node, pool.driver): Inventory(wanted) for node in by_dra}
    findings = [one for one in drift(snapshot, expected) if one.driver == pool.driver]
    findings += plugin_drift(snapshot, {(node, pool.resource): wanted for node in owners})
    found = Counter(one.node for one in findings if one.gates)
    booked = Counter(
        line.node
        for line in ground.drifts
        if line.gone_at is None or line.gone_at > subject.moved.get(line.node, subject.since)
    )
    lasting = {
        node: float(found[node] + booked[node])
        for node, line in owners.items()
        if not found[node] or booked[node] or now - line.since >= LASTING
    }
    return _by_node(subject, ground, lasting)


def _by_node(subject: Subject, ground: Ground, found: Mapping[str, float]) -> Samples:
    """A sample for each node; a moved node of which nobody knows makes it unknown."""
    unseen = [node for node in subject.nodes if node not in found]
    if unseen:
        return Samples(unknown=f"nothing is known for sure of {', '.join(unseen[:3])}")
    samples = {node: Sample(node, node, found[node]) for node in ground.nodes if node in found}
    return Samples(
        tuple(one for node, one in samples.items() if node in subject.moved),
        tuple(one for node, one in samples.items() if node not in subject.moved),
    )


def _fragmentation(subject: Subject, ground: Ground, snapshot: Snapshot) -> Samples:
    """A sample for each free device: bad where part of its node, or of its card, is in use."""
    sides: dict[bool, list[Sample]] = {True: [], False: []}
    held = _held(subject, snapshot)
    for line in ground.lines:
        if line.until is not None:
            continue
        if line.owner == Owner.DRA:
            tally = capacity(snapshot).nodes.get(line.node)
            if tally is None:
                continue
            idle, apart, used = tally.idle, tally.fragmented, tally.allocated
        elif line.owner == Owner.PLUGIN:
            used, apart = held[line.node], 0
            idle = max((line.plugin or 0) - used, 0)
        else:
            continue
        values = [float(used + apart > 0)] * idle + [1.0] * apart
        sides[line.node in subject.moved] += [
            Sample(f"{line.node} {number}", line.node, value) for number, value in enumerate(values)
        ]
    return Samples(tuple(sides[True]), tuple(sides[False]))


def _held(subject: Subject, snapshot: Snapshot) -> Counter[str]:
    """By node, devices that Pods hold of its plugin."""
    resource = subject.pool.resource
    held: Counter[str] = Counter()
    for pod in snapshot.pods.values():
        if pod.node_name and not pod.finished and not pod.extended_claim:
            held[pod.node_name] += requested(pod, {resource}).get(resource, 0)
    return held


def _violations(subject: Subject, ground: Ground, snapshot: Snapshot) -> Samples:
    """A sample for each claim with the pool's devices: whether another tenant holds an unshared
    device of it too, or its namespace may not use its class.

    A moved node without a claim is a sample too: it was looked at, and nobody is there.
    """
    with_others = _held_by_two(ground, snapshot)
    sides: dict[bool, list[Sample]] = {True: [], False: []}
    empty = set(subject.moved)
    nodes = frozenset(ground.nodes)
    for claim in snapshot.claims.values():
        results = claim.allocation.results if claim.allocation else ()
        if not any(one.driver == subject.pool.driver for one in results):
            continue
        node = node_of(claim, snapshot)
        if node in nodes:
            empty.discard(node)
            wrong = claim.key in with_others or _beyond(claim, ground, snapshot)
            sides[node in subject.moved].append(Sample(str(claim), node, float(wrong)))
    sides[True] += [Sample(f"nobody on {node}", node, 0.0) for node in sorted(empty)]
    return Samples(tuple(sides[True]), tuple(sides[False]))


def _held_by_two(ground: Ground, snapshot: Snapshot) -> set[tuple[str, str]]:
    """Claims with a whole device that a claim of another tenant has too."""
    found: set[tuple[str, str]] = set()
    for claims in usage(snapshot).whole.values():
        if len({ground.tenants.get(one.meta.namespace, "") for one in claims}) > 1:
            found.update(one.key for one in claims)
    return found


def _beyond(claim: Claim, ground: Ground, snapshot: Snapshot) -> bool:
    """Whether a policy would forbid its class there; the scheduler's own claims are judged at the
    Pod.
    """
    allowed = ground.allowed.get(claim.meta.namespace)
    if allowed is None or "*" in allowed or origin(claim, snapshot) is Origin.EXTENDED:
        return False
    asked = {ask.device_class for one in claim.spec.requests for ask in one.asks}
    return not asked <= allowed


def _restarts(
    subject: Subject, snapshot: Snapshot, ways: Iterable[Way], limit: float
) -> Iterable[Sample]:
    """From each start of a driver's Pod on a moved node to the first Pod that became Ready there.

    Only where one was waiting then: without a Pod that wants devices, nothing becomes Ready.
    """
    if subject.direction is not Direction.TO_DRA:
        return
    waiting: dict[str, list[Way]] = {}
    for way in ways:
        waiting.setdefault(way.node, []).append(way)
    for node, counts_from in subject.moved.items():
        sets = place_named(subject.pool, node, "").driver_sets
        for pod in snapshot.pods.values():
            if pod.node_name != node or not any(one.made(pod) for one in sets):
                continue
            starts = [one.started for one in read_pod_status(pod.raw).containers if one.started]
            begun = max(starts, default=None)
            if begun is None or begun < counts_from:
                continue
            until = begun + timedelta(seconds=limit)
            ready = [
                way.ready
                for way in waiting.get(node, ())
                if way.ready and way.created <= until and way.ready > begun
            ]
            if ready:
                yield Sample(str(pod), node, (min(ready) - begun).total_seconds())
