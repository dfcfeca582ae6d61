"""Whose release would let claims in: the holders in the way on a node, and the fewest that suffice.

Whether a release suffices is always the allocator's answer, asked again without those claims.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from devices.dra.allocate import Forecast, Kind, allocate
from devices.dra.claims import Claim
from devices.dra.holders import Presence, holders
from devices.dra.podends import expected_end
from devices.dra.released import claim_key, usage_without
from devices.dra.requests import Want, Wish, answers, closed
from devices.dra.slices import Slice
from devices.dra.snapshot import Snapshot
from devices.dra.usage import Usage, usage
from devices.dra.visibility import View, view

#: How many groups of equal nodes, and holders on a node, are tried.
MOST_GROUPS: Final = 48
MOST_HOLDERS: Final = 24


@dataclass(frozen=True, slots=True)
class Wait:
    """Claims whose release, all together, lets the wishes in on a node; ``until`` is when their
    Pods end, None where one of them has not said so.
    """

    claims: tuple[str, ...]
    node: str
    until: datetime | None = None

    @property
    def text(self) -> str:
        """The wait in words."""
        be = "is" if len(self.claims) == 1 else "are"
        return f"wait until {', '.join(self.claims)} {be} released"


def waits(snapshot: Snapshot, seen: Forecast) -> tuple[Wait, ...]:
    """Every holder whose release alone is enough; where there is none, the smallest set that is.

    One node of each group is tried: on equal nodes the same devices are taken.
    """
    singles: dict[str, str] = {}
    several: list[tuple[tuple[str, ...], str]] = []
    for group in seen.groups[:MOST_GROUPS]:
        node = group.nodes[0]
        found = blocking(snapshot, seen.wishes, node)
        enough = [name for name in found if frees(snapshot, seen.wishes, node, {name})]
        singles |= {name: node for name in enough if name not in singles}
        if not enough and found and frees(snapshot, seen.wishes, node, set(found)):
            several.append((fewest(snapshot, seen.wishes, node, found), node))
    if singles:
        return tuple(_wait(snapshot, (name,), node) for name, node in singles.items())
    if not several:
        return ()
    names, node = min(several, key=lambda pair: (len(pair[0]), pair))
    return (_wait(snapshot, names, node),)


def blocking(snapshot: Snapshot, wishes: Sequence[Wish], node: str) -> list[str]:
    """Claims that hold something which these wishes could have on a node, in order of name."""
    used, seen = usage(snapshot), view(snapshot, snapshot.node(node))
    found: set[str] = set()
    for want in wants_of(snapshot, wishes):
        rows, shut = answers(snapshot, want), closed(snapshot, want.ask.tolerations)
        for place in seen.places:
            position = place.position
            if rows.of(place.piece)[position] is not True or shut.of(place.piece)[position]:
                continue
            taken = used.holders(place.key) or _partners(seen, place.piece, position, used)
            found.update(map(str, taken))
    return sorted(found)[:MOST_HOLDERS]


def frees(snapshot: Snapshot, wishes: Sequence[Wish], node: str, gone: Collection[str]) -> bool:
    """Whether the wishes fit on a node once these claims are gone."""
    used = usage_without(snapshot, gone)
    return allocate(snapshot, snapshot.node(node), wishes, used).kind is Kind.OK


def fewest(
    snapshot: Snapshot,
    wishes: Sequence[Wish],
    node: str,
    found: Sequence[str],
    cost: Callable[[str], Any] | None = None,
) -> tuple[str, ...]:
    """Claims of which none can be spared, out of a set that suffices; the costliest are spared
    first (those with the most consumers, where no cost is given).
    """
    kept = list(found)
    for name in sorted(found, key=cost or (lambda n: (_consumers(snapshot, n), n)), reverse=True):
        fewer = [other for other in kept if other != name]
        if fewer and frees(snapshot, wishes, node, set(fewer)):
            kept = fewer
    return tuple(sorted(kept))


def wants_of(snapshot: Snapshot, wishes: Sequence[Wish]) -> Iterator[Want]:
    """Each request and alternative whose class exists, ready for the rules."""
    for number, wish in enumerate(wishes):
        for request in wish.spec.requests:
            for ask in request.asks:
                found = snapshot.classes.get(ask.device_class)
                if found is not None:
                    alternative = ask.name if request.alternatives else ""
                    yield Want(number, request, ask, found, alternative)


def _wait(snapshot: Snapshot, names: tuple[str, ...], node: str) -> Wait:
    ends: list[datetime | None] = []
    for name in names:
        claim = snapshot.claims[claim_key(name)]
        present = [h for h in holders(claim, snapshot) if h.presence is not Presence.ENDED]
        ends += [expected_end(h.pod) if h.pod is not None else None for h in present]
    known = [end for end in ends if end is not None]
    return Wait(names, node, max(known) if known and len(known) == len(ends) else None)


def _partners(seen: View, piece: Slice, position: int, used: Usage) -> tuple[Claim, ...]:
    """Who holds other partitions of the same hardware."""
    sets = {use.counter_set for use in piece.devices[position].consumes}
    if not sets:
        return ()
    return tuple(
        claim
        for place in seen.places
        if (place.piece.driver, place.piece.pool) == (piece.driver, piece.pool)
        and sets & {use.counter_set for use in place.device.consumes}
        for claim in used.holders(place.key)
    )


def _consumers(snapshot: Snapshot, name: str) -> int:
    claim = snapshot.claims.get(claim_key(name))
    return len(claim.reserved_for) if claim is not None else 0
