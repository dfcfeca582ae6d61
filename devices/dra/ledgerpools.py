"""Which version of a slice pool is in force: epochs, generations, and what is refused.

Slices carry no heartbeat and their generation is only a number, so it is believed within an epoch
alone: from the first slice of a pool until none of the slices that were known is left (a kubelet's
restart does that). Within an epoch versions only go forward; an older generation that comes back
is refused and shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from devices.dra.pools import Pool, PoolKey, pools
from devices.dra.slices import Slice
from devices.dra.snapshot import Snapshot


class Version(NamedTuple):
    """Which publication a line rests on; later ones compare greater. Zeros: no slice's."""

    epoch: int = 0
    generation: int = 0
    resource_version: int = 0

    def __str__(self) -> str:
        return f"{self.epoch}.{self.generation}/{self.resource_version}"


@dataclass(frozen=True, slots=True)
class PoolState:
    """What is known of one slice pool.

    ``generation`` is the newest that was accepted in this epoch; ``refused`` an older one that is
    published now. ``slices`` are the uids of the slices that were there; none while it is gone.
    """

    key: PoolKey
    epoch: int = 1
    generation: int = 0
    slices: frozenset[str] = field(default_factory=frozenset)
    complete: bool = True
    invalid: str = ""
    refused: int | None = None

    @property
    def gone(self) -> bool:
        """Whether nothing of it is published."""
        return not self.slices

    @property
    def settled(self) -> bool:
        """Whether what it publishes can be relied on."""
        return not self.gone and self.complete and not self.invalid and self.refused is None


def follow(before: Mapping[PoolKey, PoolState], snapshot: Snapshot) -> Mapping[PoolKey, PoolState]:
    """The pools as they are now, given what was known of them; gone ones are kept as gone."""
    present: dict[PoolKey, list[Slice]] = {}
    for piece in snapshot.slices:
        present.setdefault((piece.driver, piece.pool), []).append(piece)
    found = {
        key: _state(pool, present[key], before.get(key)) for key, pool in pools(snapshot).items()
    }
    for key, state in before.items():
        if key not in found:
            found[key] = replace(state, slices=frozenset(), complete=False, refused=None)
    return dict(sorted(found.items()))


def version_of(state: PoolState, piece: Slice) -> Version:
    """The version that a line from this slice rests on."""
    return Version(state.epoch, piece.generation, number(piece.version))


def number(resource_version: str) -> int:
    """A resourceVersion as a number; 0 where it is none, as in objects out of files."""
    return int(resource_version) if resource_version.isascii() and resource_version.isdigit() else 0


def _state(pool: Pool, pieces: Iterable[Slice], before: PoolState | None) -> PoolState:
    slices = frozenset(piece.uid or piece.name for piece in pieces)
    state = PoolState(
        pool.key,
        generation=pool.generation,
        slices=slices,
        complete=not pool.incomplete,
        invalid=pool.invalid,
    )
    if before is None:
        return state
    if not before.slices & slices:
        return replace(state, epoch=before.epoch + 1)
    if pool.generation < before.generation:
        return replace(
            state, epoch=before.epoch, generation=before.generation, refused=pool.generation
        )
    return replace(state, epoch=before.epoch)
