"""The ledger as a log: lines that begin and end entries, what a new look adds, and the fold.

The log is only ever added to. Folding its lines, in whatever order they come, gives the entries
that stand: of each key the line with the newest version counts, among those the latest look's.
Pure; `devices.ledger` keeps the lines.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from devices.dra.charges import Rule, told_amounts
from devices.dra.ledgerentries import OF_DEVICES, Entry, Pair, Seen, amounts
from devices.dra.quantity import ZERO, Quantity


class Act(StrEnum):
    """What a line does. Refused lines (doubled, older) stand apart and are in no sum."""

    CHARGE = "charge"
    RELEASE = "release"
    DOUBLED = "doubled"
    OLDER = "older"


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line. ``look`` numbers the looks at the cluster; ``ends`` is the id of the line that it
    ends or supersedes (0: none).
    """

    act: Act
    entry: Entry
    look: int = 0
    id: int = 0
    ends: int = 0


@dataclass(frozen=True, slots=True)
class Folded:
    """What a log comes to: the charges that stand by key, and how many lines were refused.

    ``repeated`` lines had key, version and look of another one: they count once.
    """

    standing: Mapping[str, Entry] = field(default_factory=dict)
    doubled: int = 0
    older: int = 0
    repeated: int = 0


def fold(lines: Iterable[LogLine]) -> Folded:
    """The entries that stand after these lines, whatever their order.

    Of two lines that differ in the amount alone the greater counts: what may be taken is taken.
    """
    newest: dict[str, LogLine] = {}
    doubled = older = repeated = 0
    for line in lines:
        if line.act is Act.DOUBLED or line.act is Act.OLDER:
            doubled += line.act is Act.DOUBLED
            older += line.act is Act.OLDER
            continue
        known = newest.get(line.entry.key)
        if known is None:
            newest[line.entry.key] = line
            continue
        ours, theirs = _rank(line), _rank(known)
        repeated += ours == theirs
        if ours > theirs or (ours == theirs and _more(line.entry, known.entry)):
            newest[line.entry.key] = line
    standing = {key: line.entry for key, line in newest.items() if line.act is Act.CHARGE}
    return Folded(standing, doubled, older, repeated)


def _rank(line: LogLine) -> tuple[object, ...]:
    # Within one look a key may end and begin anew: the beginning counts.
    return (line.entry.version, line.look, line.act is Act.CHARGE)


def _more(one: Entry, other: Entry) -> bool:
    """Whether the first says more; unknown says most."""
    if one.amount is None or other.amount is None:
        return one.amount is None and other.amount is not None
    return one.amount > other.amount


Sums = dict[tuple[str, str], Quantity | None]


def node_sums(entries: Iterable[Entry]) -> Sums:
    """What is charged, by node and resource; None where an entry has no known amount."""
    found: Sums = {}
    for entry in entries:
        if not entry.contained:
            _add(found, (entry.node, entry.resource), entry.amount)
    return found


def zone_sums(entries: Iterable[Entry]) -> dict[tuple[str, str, int | None], Quantity | None]:
    """What is charged, by node, resource and NUMA zone (None: no device said one)."""
    found: dict[tuple[str, str, int | None], Quantity | None] = {}
    for entry in entries:
        if not entry.contained:
            _add(found, (entry.node, entry.resource, entry.numa), entry.amount)
    return found


def _add(sums: dict, key: tuple[object, ...], amount: Quantity | None) -> None:  # type: ignore[type-arg]
    before = sums.get(key, ZERO)
    sums[key] = None if amount is None or before is None else before + amount


# --- what a look adds ---


def news(standing: Iterable[LogLine], seen: Seen) -> list[LogLine]:
    """The lines that a look adds to those that stand (charges and refused lines alike).

    Seen again, it adds nothing. A device's line keeps the version in force when its Pod was bound:
    a later slice changes nothing, and a slice that vanishes releases nothing, while the Pod holds
    the device. An older version is refused.
    """
    standing = list(standing)
    known = {_identity(line.act, line.entry): line for line in standing}
    lasting, wrong = _lasting(known.values(), seen), _outdated(standing, seen)
    settled = _settled(standing, seen)
    known = {
        identity: line
        for identity, line in known.items()
        if not (line.act is Act.CHARGE and line.entry.pair in settled)
    }
    wanted = [
        (Act.CHARGE, entry)
        for entry in seen.entries
        if entry.pair not in seen.bound and not _stands_in(entry, lasting)
    ]
    wanted += (
        (Act.CHARGE, entry)
        for pair, entries in seen.bound.items()
        if pair not in settled
        for entry in entries
    )
    wanted += ((Act.DOUBLED, entry) for entry in seen.doubled)
    wanted += ((Act.OLDER, replace(entry, code="LEDGER_OLDER_VERSION")) for entry in seen.older)
    found: list[LogLine] = []
    for act, entry in wanted:
        line = known.pop(_identity(act, entry), None)
        if line is None:
            found.append(LogLine(act, entry))
        elif line.entry == entry or (entry.pair not in wrong and _bound(line.entry, entry)):
            continue
        elif entry.version < line.entry.version:
            refused = replace(entry, code="LEDGER_OLDER_VERSION")
            if known.pop(_identity(Act.OLDER, refused), None) is None:
                found.append(LogLine(Act.OLDER, refused))
        else:
            found.append(LogLine(act, entry, ends=line.id))
    for line in known.values():
        if not (
            line.act is Act.CHARGE
            and _holds(line.entry, seen)
            and line.entry.pair not in seen.bound
        ):
            found.append(LogLine(Act.RELEASE, line.entry, ends=line.id))
    return found


def _settled(lines: Iterable[LogLine], seen: Seen) -> set[Pair]:
    """Pairs whose slices changed after the binding, and whose lines say what was told then."""
    ours = _by_pair(line.entry for line in lines if line.act is Act.CHARGE)
    found = set()
    for pair in seen.bound:
        told = {place: amount for place, amount in told_amounts(seen.told[pair]).items() if amount}
        if ours.get(pair, {}) == told:
            found.add(pair)
    return found


def _identity(act: Act, entry: Entry) -> tuple[str, ...]:
    """Refused lines of one key are told apart by the Pod; of charges there is one a key."""
    return (act, entry.key, entry.pod_uid) if act is not Act.CHARGE else (act, entry.key)


def _bound(line: Entry, entry: Entry) -> bool:
    """Whether the line was written for the same binding, which keeps its version."""
    return (
        entry.rule in OF_DEVICES
        and entry.device is not None
        and line.amount is not None
        and (line.node, line.pod_uid, line.contained, line.code)
        == (entry.node, entry.pod_uid, entry.contained, entry.code)
        and line.version < entry.version
    )


def _holds(entry: Entry, seen: Seen) -> bool:
    """Whether the Pod still holds the device that the entry is for, published or not."""
    if entry.rule not in OF_DEVICES or entry.device is None or entry.pair not in seen.held:
        return False
    devices = seen.held[entry.pair]
    return devices is None or entry.device in devices


def _lasting(lines: Iterable[LogLine], seen: Seen) -> set[Pair]:
    """Pairs of Pod and claim with lines for devices that are not published any more."""
    shown = {entry.key for entry in seen.entries}
    return {
        line.entry.pair
        for line in lines
        if line.act is Act.CHARGE and line.entry.key not in shown and _holds(line.entry, seen)
    }


def _stands_in(entry: Entry, lasting: set[Pair]) -> bool:
    """Whether the entry, read off the Pod's status, is there only for want of lines that last."""
    return entry.rule in OF_DEVICES and entry.device is None and entry.pair in lasting


def _outdated(lines: Iterable[LogLine], seen: Seen) -> set[Pair]:
    """Pairs whose lines say something else than the Pod's status, while the slices of now agree
    with it: the slice changed after the scheduler read it and before the Pod was first seen.
    """
    ours = _by_pair(line.entry for line in lines if line.act is Act.CHARGE)
    now = _by_pair(seen.entries)
    found = set()
    for pair, charge in seen.told.items():
        told = {place: amount for place, amount in told_amounts(charge).items() if amount}
        if pair in ours and ours[pair] != told and now.get(pair, {}) == told:
            found.add(pair)
    return found


def _by_pair(
    entries: Iterable[Entry],
) -> dict[Pair, dict[tuple[Rule, str], Quantity | None]]:
    found: dict[Pair, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.rule in OF_DEVICES:
            found[entry.pair].append(entry)
    return {pair: amounts(of_pair) for pair, of_pair in found.items()}
