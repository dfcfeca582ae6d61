"""Slice pools as a whole: the newest generation, whether all of it is there, whether it is valid.

A pool is known by driver and name together. What one *node* can use of it is `visibility`.
Source: ``dynamic-resource-allocation/structured/internal/…/pools_*.go``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from devices.dra.slices import CounterSet, Device, Slice
from devices.dra.snapshot import Snapshot

PoolKey = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Pool:
    """One pool of one driver.

    ``slices`` are those of the newest generation, by name; ``outdated`` are names of older ones.
    ``invalid`` says why the scheduler refuses the pool, and is empty for a valid one.
    """

    driver: str
    name: str
    generation: int
    expected: int
    slices: tuple[Slice, ...]
    outdated: tuple[str, ...] = ()
    invalid: str = ""

    @property
    def key(self) -> PoolKey:
        """Driver and name."""
        return (self.driver, self.name)

    @property
    def incomplete(self) -> bool:
        """Slices of the newest generation are missing (or too many): totals cannot be trusted."""
        return len(self.slices) != self.expected

    @property
    def devices(self) -> Iterable[Device]:
        """Every device of the newest generation."""
        return (device for piece in self.slices for device in piece.devices)

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


def pools(snapshot: Snapshot) -> Mapping[PoolKey, Pool]:
    """All pools of a snapshot, by driver and name, in that order."""
    return snapshot.once("pools", _pools)


def why_invalid(
    named: Sequence[Slice],
    counting: Sequence[Slice],
    others: Sequence[Slice] = (),
    *,
    ignore_counters: bool = False,
) -> str:
    """Why a set of slices is no valid pool, in upstream's words, or nothing.

    ``named`` are slices whose device names must differ; ``counting`` hold the counter sets;
    ``others`` are checked for the counters they consume only. Without partitionable devices the
    scheduler does not look at counters at all.
    """
    duplicate = _duplicate_device(named)
    if ignore_counters:
        return duplicate
    return (
        duplicate
        or _duplicate_counter_set(counting)
        or _unknown_counter(counting, (*named, *others))
    )


def counter_sets(slices: Iterable[Slice]) -> dict[str, CounterSet]:
    """All counter sets of a pool by name."""
    return {found.name: found for piece in slices for found in piece.counters}


def _pools(snapshot: Snapshot) -> Mapping[PoolKey, Pool]:
    by_key: dict[PoolKey, list[Slice]] = defaultdict(list)
    for piece in snapshot.slices:
        by_key[piece.driver, piece.pool].append(piece)
    return {key: _pool(key, pieces) for key, pieces in sorted(by_key.items())}


def _pool(key: PoolKey, pieces: list[Slice]) -> Pool:
    newest = max(piece.generation for piece in pieces)
    current = tuple(piece for piece in pieces if piece.generation == newest)
    plain = [piece for piece in current if not piece.counters]
    return Pool(
        driver=key[0],
        name=key[1],
        generation=newest,
        expected=current[0].slice_count,
        slices=current,
        outdated=tuple(piece.name for piece in pieces if piece.generation != newest),
        invalid=why_invalid(plain, [piece for piece in current if piece.counters]),
    )


def _duplicate_device(slices: Sequence[Slice]) -> str:
    names = [device.name for piece in slices for device in piece.devices]
    if len(set(names)) == len(names):
        return ""
    first = next(name for place, name in enumerate(names) if name in names[:place])
    return f"duplicate device name {first}"


def _duplicate_counter_set(slices: Sequence[Slice]) -> str:
    seen: set[str] = set()
    for piece in slices:
        for found in piece.counters:
            if found.name in seen:
                return f"duplicate counter set name {found.name}"
            seen.add(found.name)
    return ""


def _unknown_counter(counting: Sequence[Slice], slices: Iterable[Slice]) -> str:
    sets = counter_sets(counting)
    for piece in slices:
        for device in () if piece.plain else piece.devices:
            for use in device.consumes:
                if use.counter_set not in sets:
                    return f"counter set {use.counter_set} not found"
                for name in use.counters:
                    if name not in sets[use.counter_set].counters:
                        return f"counter {name} not found in counter set {use.counter_set}"
    return ""
