"""Whether the accounting may be promoted: what is asked for, what is so, and why. Pure.

Each criterion is met, not met, or unknown, with the evidence behind it. Unknown is never met.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from fractions import Fraction
from typing import Final

from devices.dra.charges import GATE
from devices.dra.nodes import Node
from devices.dra.snapshot import Snapshot
from devices.dra.wording import many


class Met(StrEnum):
    """How a criterion stands."""

    MET = "met"
    NOT_MET = "not met"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Criterion:
    """One thing that has to be so before the feature is promoted."""

    name: str
    met: Met
    evidence: str


class Feature(StrEnum):
    """Whether a node has the feature, as far as anybody can tell."""

    DECLARED = "declared"
    USED = "used"
    """It declares nothing, as before 1.37, and a driver publishes the older field for it."""
    ABSENT = "absent"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Upgrade:
    """A change of the cluster's release: how many lines of devices stood before, how many stand
    after it has settled, and how many of those the Pods' status still tells.
    """

    frm: str
    to: str
    at: datetime
    settled: bool
    before: int
    after: int
    told: int

    @property
    def back(self) -> bool:
        """Whether it went to an older release."""
        return _release(self.to) < _release(self.frm)

    @property
    def lost(self) -> int:
        """Lines that the scheduler no longer counts."""
        return self.after - self.told


@dataclass(frozen=True, slots=True)
class Objectives:
    """At most so many per cent of a node charged, at most so many minutes of waiting for it."""

    most_charged: int
    most_pending: int


@dataclass(frozen=True, slots=True)
class Record:
    """What the ledger's tables know that a snapshot does not.

    ``equal_since`` is None while something differs; ``restarts`` are slice pools that went through
    an epoch and are whole again; ``gate`` is what the API server says (None: nobody asked it).
    ``rolled_back`` is when a stopped rollout was last resumed, ``waiting`` are Pods that wait for
    want of what the ledger counts.
    """

    looks: int
    first_look: datetime | None
    equal_since: datetime | None
    safe: int
    nodes: int
    refused: int
    restarts: int
    gate: bool | None
    release: str
    rolled_back: datetime | None = None
    upgrades: tuple[Upgrade, ...] = ()
    objectives: Objectives | None = None
    fullest: tuple[str, str, Fraction] | None = None
    waiting: tuple[tuple[str, datetime], ...] = ()


#: Log, objects and Pod status must have agreed for so long.
WINDOW: Final = timedelta(days=7)


def feature_of(node: Node, shapes: Mapping[str, set[str]]) -> Feature:
    """Whether a node has the feature; ``shapes`` are those of what is published for each node."""
    if node.declared_features is not None and GATE in node.declared_features:
        return Feature.DECLARED
    if "1.36" in shapes.get(node.name, ()):
        return Feature.USED
    return Feature.UNKNOWN if node.declared_features is None else Feature.ABSENT


def shapes_of(snapshot: Snapshot) -> Mapping[str, set[str]]:
    """By node, the shapes in which devices say what they cost it."""
    found: dict[str, set[str]] = defaultdict(set)
    for piece in snapshot.slices:
        if piece.reach.node_name:
            found[piece.reach.node_name] |= {
                share.shape for device in piece.devices for share in device.node_shares
            }
    return found


def coverage(snapshot: Snapshot) -> Mapping[str, tuple[int, int]]:
    """By driver, on how many nodes some device says what it costs, and on how many it publishes."""
    said: dict[str, set[str]] = defaultdict(set)
    there: dict[str, set[str]] = defaultdict(set)
    for piece in snapshot.slices:
        place = piece.reach.node_name or piece.pool
        there[piece.driver].add(place)
        if any(device.node_shares for device in piece.devices):
            said[piece.driver].add(place)
    return {
        driver: (len(said[driver]), len(places))
        for driver, places in sorted(there.items())
        if said[driver]
    }


def report(snapshot: Snapshot, record: Record, now: datetime) -> tuple[Criterion, ...]:
    """Every criterion, in the order in which they are usually met."""
    return (
        _gate(record),
        _nodes(snapshot),
        _drivers(snapshot),
        _window(record, now),
        Criterion(
            "Every node's ledger is safe",
            _yes(record.safe == record.nodes) if record.nodes else Met.UNKNOWN,
            f"{record.safe} of {record.nodes} nodes are safe now",
        ),
        Criterion(
            "No doubled key and no older version",
            _yes(record.refused == 0) if record.looks else Met.UNKNOWN,
            f"{record.refused} refused in the last {WINDOW.days} days",
        ),
        Criterion(
            "A driver or node restarted and the ledger came back",
            _yes(True) if record.restarts else Met.UNKNOWN,
            f"{record.restarts} slice pools began a new epoch and are whole"
            if record.restarts
            else "no restart has been seen yet; run the drill",
        ),
        Criterion(
            "A rollback was drilled",
            _yes(True) if record.rolled_back else Met.UNKNOWN,
            f"a stopped rollout was repaired and resumed {record.rolled_back:%-d %b %Y %H:%M} UTC"
            if record.rolled_back
            else "no rollout was stopped, repaired and resumed yet",
        ),
        _moved(record, back=False),
        _moved(record, back=True),
        _capacity(record),
        _pending(record, now),
    )


def _moved(record: Record, *, back: bool) -> Criterion:
    """Whether a change of release, up or down, lost nothing."""
    name = f"{'A downgrade' if back else 'An upgrade'} lost nothing that is in use"
    one = next((u for u in record.upgrades if u.settled and u.back is back), None)
    if one is None:
        return Criterion(name, Met.UNKNOWN, "none was seen since the ledger was opened")
    said = (
        f"{one.frm} to {one.to} on {one.at:%-d %b %Y %H:%M} UTC: {one.before} lines of devices "
        f"before, {one.after} after"
    )
    if not one.before:
        return Criterion(name, Met.UNKNOWN, f"{said}; no device was in use")
    lost = f", {one.lost} of which no Pod status tells any more" if one.lost else ""
    return Criterion(name, _yes(one.lost == 0 and one.after >= one.before), said + lost)


def _capacity(record: Record) -> Criterion:
    name = "The objective for capacity holds"
    if record.objectives is None:
        return Criterion(name, Met.UNKNOWN, "no objective is recorded")
    if record.fullest is None:
        return Criterion(name, Met.UNKNOWN, "no node's balance is known")
    node, resource, share = record.fullest
    most = record.objectives.most_charged
    said = f"at most {most} %; fullest is {resource} of {node} with {float(share * 100):.1f} %"
    return Criterion(name, _yes(share * 100 <= most), said)


def _pending(record: Record, now: datetime) -> Criterion:
    name = "The objective for pending Pods holds"
    if record.objectives is None:
        return Criterion(name, Met.UNKNOWN, "no objective is recorded")
    if not record.looks:
        return Criterion(name, Met.UNKNOWN, "nothing was looked at yet")
    most = timedelta(minutes=record.objectives.most_pending)
    late = [pod for pod, since in record.waiting if now - since > most]
    said = many(len(record.waiting), "Pod with devices waits", "Pods with devices wait")
    said += " for CPU, memory or huge pages"
    if record.waiting:
        pod, since = record.waiting[0]
        said += f", the longest {pod} for {int((now - since).total_seconds() // 60)} minutes"
    return Criterion(name, _yes(not late), f"{said}; at most {record.objectives.most_pending}")


def _release(text: str) -> tuple[int, ...]:
    """A release as numbers: v1.37.2 is (1, 37, 2); what is no number counts as 0."""
    parts = text.removeprefix("v").split("-")[0].split("+")[0].split(".")
    return tuple(int(part) if part.isdigit() else 0 for part in parts)


def _yes(met: bool) -> Met:
    return Met.MET if met else Met.NOT_MET


def _gate(record: Record) -> Criterion:
    name = f"The API server has {GATE} on"
    if record.gate is None:
        return Criterion(name, Met.UNKNOWN, "its gates could not be read")
    word = "on" if record.gate else "off"
    more = "; the scheduler's and kubelets' gates are told by nobody"
    return Criterion(name, _yes(record.gate), f"it is {word} in {record.release}{more}")


def _nodes(snapshot: Snapshot) -> Criterion:
    shapes = shapes_of(snapshot)
    counts: dict[Feature, int] = defaultdict(int)
    for node in snapshot.nodes.values():
        counts[feature_of(node, shapes)] += 1
    said = ", ".join(f"{counts[one]} {one.value}" for one in Feature if counts[one])
    has = counts[Feature.DECLARED] + counts[Feature.USED]
    if not snapshot.nodes or counts[Feature.UNKNOWN]:
        met = Met.UNKNOWN
    else:
        met = _yes(has == len(snapshot.nodes))
    return Criterion("Every node has the feature", met, said or "no node was seen")


def _drivers(snapshot: Snapshot) -> Criterion:
    found = coverage(snapshot)
    said = ", ".join(f"{driver}: {some} of {all_}" for driver, (some, all_) in found.items())
    met = Met.UNKNOWN if not found else _yes(all(some == all_ for some, all_ in found.values()))
    return Criterion(
        "Drivers that say what devices cost say it wherever they publish",
        met,
        said or "no driver says what its devices cost of a node",
    )


def _window(record: Record, now: datetime) -> Criterion:
    name = f"Log, objects and Pod status agreed for {WINDOW.days} days"
    if record.equal_since is None:
        differs = "something differs now" if record.looks else "nothing was compared yet"
        return Criterion(name, Met.NOT_MET if record.looks else Met.UNKNOWN, differs)
    lasted = now - record.equal_since
    said = f"since {record.equal_since:%-d %b %Y %H:%M} UTC, over {record.looks} looks"
    return Criterion(name, _yes(lasted >= WINDOW), said)
