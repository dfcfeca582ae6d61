"""What a search has found to be a dead end, so that it is not searched again and again.

Two states are alike for the rest of the search if as many devices of each sort are taken, a sort
being devices that the remaining requests cannot tell apart. What upstream would have spent on the
dead end a second time is still added up (see `search.Search.work`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from typing import TYPE_CHECKING

from devices.dra.requests import Failure

if TYPE_CHECKING:
    from devices.dra.attempt import Ready
    from devices.dra.search import Search


class Memory:
    """Dead ends of one search."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._dead: dict[Hashable, int] = {}
        self._sorts: dict[tuple[int, int], tuple[int, ...]] = {}

    def key(self, claim: int, request: int) -> Hashable:
        """The state of the search before a request, as far as the rest of it can tell."""
        search = self._search
        sorts = self._sorts_for(claim, request)
        taken = Counter(
            (sorts[index], tuple(sorted(claims)))
            for index, claims in search.allocating.items()
            if claims and sorts[index] >= 0
        )
        shared = tuple(
            (index, tuple(tuple(sorted(share.items())) for share in shares))
            for index, shares in sorted(search.sharing.items())
            if shares
        )
        return (
            claim,
            request,
            len(search.picks[claim]),
            frozenset(taken.items()),
            shared,
            search.counters.state(),
            search.groups.state() if search.groups else None,
            tuple(tracker.state() for tracker in search.trackers[claim]),
        )

    def failed(self, key: Hashable) -> bool:
        """Whether nothing came of this state before; pays what upstream would spend again."""
        work = self._dead.get(key)
        if work is None:
            return False
        self._search.work += work
        self._search.step()
        return True

    def remember(self, key: Hashable, work: int) -> None:
        """A state of which nothing came, and what finding that out has cost upstream."""
        self._dead[key] = work

    def _sorts_for(self, claim: int, request: int) -> tuple[int, ...]:
        """For each place the number of its sort, or -1 where no remaining request looks at it."""
        sorts = self._sorts.get((claim, request))
        if sorts is None:
            remaining = self._remaining(claim, request)
            known: dict[Hashable, int] = {}
            found = []
            for index in range(len(self._search.places)):
                sort = self._sort(index, remaining)
                found.append(-1 if sort is None else known.setdefault(sort, len(known)))
            sorts = self._sorts[claim, request] = tuple(found)
        return sorts

    def _remaining(self, claim: int, request: int) -> list[tuple[int, Ready]]:
        return [
            (number, ready)
            for number in range(claim, len(self._search.ready))
            for position, alternatives in enumerate(self._search.ready[number])
            if number > claim or position >= request
            for ready in alternatives
        ]

    def _sort(self, index: int, remaining: list[tuple[int, Ready]]) -> Hashable:
        """Everything by which the remaining requests tell devices apart, or None."""
        search = self._search
        place = search.places[index]
        device = place.device
        answers = tuple(
            "fails" if isinstance(answer := ready.answers[index], Failure) else answer
            for _, ready in remaining
        )
        if not any(answers):
            return None
        if device.consumes or device.shareable or place.piece.reach.per_device:
            return index
        if any(ready.want.everything and search.trackers[number] for number, ready in remaining):
            # Whether All ends the attempt depends on which of its devices it meets first.
            return index
        values = tuple(
            search.attribute(number, ready, place, tracker.attribute)
            for number, ready in remaining
            for tracker in search.trackers[number]
        )
        asked = any(ready.want.ask.capacity is not None for _, ready in remaining)
        return (
            answers,
            search.whole[index],
            tuple(ready.closed[index] for _, ready in remaining),
            values,
            tuple(sorted(device.capacity.items(), key=lambda item: item[0])) if asked else None,
            bool(device.binding_conditions),
            bool(place.piece.skipped_operations),
        )
