"""How many devices a branch of the search could still give in the best of cases, by counting.

A bound is never below the truth: where it is too low for what is asked, upstream's search would
try everything and find nothing. It only has to be quick and right, not tight.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING, Final

from devices.dra.constraints import Distinct, Match, Tracker
from devices.dra.requests import Failure
from devices.dra.visibility import PoolView

if TYPE_CHECKING:
    from devices.dra.attempt import Ready
    from devices.dra.search import Search

#: Beyond so many different requests their unions are not all tried.
MOST_GROUPS: Final = 8


class Bounds:
    """Bounds for one search; what does not change during it is computed once."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._viable: dict[int, tuple[int, ...]] = {}
        self._masks: dict[int, int] = {}

    def viable(self, claim: int, ready: Ready) -> tuple[int, ...]:
        """Places that could serve a request if nothing else were chosen."""
        found = self._viable.get(id(ready))
        if found is None:
            found = tuple(
                index
                for index in range(len(self._search.places))
                if self._search.could_serve(claim, ready, index)
            )
            self._viable[id(ready)] = found
        return found

    def most(self, claim: int, ready: Ready, start: int) -> int:
        """At most so many places from ``start`` on can be given to the request now."""
        search = self._search
        viable = self.viable(claim, ready)
        places = viable[bisect_left(viable, start) :]
        if search.allocating:
            admin = ready.want.ask.admin
            places = tuple(
                index
                for index in places
                if not (
                    claim in search.allocating.get(index, ()) if admin else search.in_use(index)
                )
            )
        best = len(places)
        for tracker in search.trackers[claim]:
            if best and tracker.applies(ready.want.request.name, ready.want.alternative):
                best = min(best, self._by_attribute(claim, ready, tracker, places))
        if any(search.places[index].device.consumes for index in places):
            best = min(best, self._by_counters(places))
        return best

    def _by_attribute(
        self, claim: int, ready: Ready, tracker: Tracker, places: tuple[int, ...]
    ) -> int:
        search, name = self._search, ready.want.request.name
        # Through 1.36 a device that is too like the last one may still go with the next.
        forgets = isinstance(tracker, Distinct) and not search.gates.at_least("1.37")
        values = [
            value
            for index in places
            if (value := search.attribute(claim, ready, search.places[index], tracker.attribute))
            is not None
            and (forgets or tracker.admits(value, name))
        ]
        if isinstance(tracker, Distinct) and not forgets:
            return len(set(values))
        if isinstance(tracker, Match) and not search.gates.compared_lists:
            return max(Counter(values).values(), default=0)
        return len(values)

    def _by_counters(self, places: tuple[int, ...]) -> int:
        search = self._search
        free = 0
        by_pool: dict[int, tuple[PoolView, list[int]]] = {}
        for index in places:
            place = search.places[index]
            if not place.device.consumes or (search.shares and place.device.shareable):
                free += 1
            else:
                by_pool.setdefault(id(place.pool), (place.pool, []))[1].append(index)
        for pool, members in by_pool.values():
            free += search.counters.most(pool, [search.places[index].device for index in members])
        return free

    def claims_can_fit(self, claim: int) -> bool:
        """False where the requests of this and the later claims ask for more than all of their
        devices together: for no set of requests may the needs exceed the union of what can serve.
        """
        search = self._search
        needs: Counter[int] = Counter()
        chosen: set[int] = set()
        for number in range(claim, len(search.ready)):
            for alternatives in search.ready[number]:
                if any(self._may_end_it(number, ready) for ready in alternatives):
                    return True
                ready = alternatives[0]
                if len(alternatives) > 1 or ready.want.ask.admin:
                    continue
                mask = self._mask(number, ready)
                if mask >= 0:
                    needs[mask] += ready.need
                    if not ready.want.everything:
                        chosen.add(mask)
        if sum(needs.values()) < 2:
            return True
        taken = sum(1 << index for index, claims in search.allocating.items() if claims)
        masks = list(needs)[:MOST_GROUPS]
        for size in range(1, len(masks) + 1):
            for group in combinations(masks, size):
                union = 0
                for mask in group:
                    union |= mask
                free = (union & ~taken).bit_count()
                if sum(needs[mask] for mask in group) > free:
                    self._pay(free, [needs[mask] for mask in group if mask in chosen])
                    return False
        return True

    def _may_end_it(self, claim: int, ready: Ready) -> bool:
        """Whether trying the request can end the attempt with an error, which must be met."""
        if ready.want.everything and self._search.trackers[claim]:
            return True
        return any(isinstance(answer, Failure) for answer in ready.answers)

    def _mask(self, claim: int, ready: Ready) -> int:
        """The viable places as bits, or -1 where one of them can be given more than once."""
        mask = self._masks.get(id(ready))
        if mask is None:
            search, mask = self._search, 0
            for index in self.viable(claim, ready):
                if search.shares and search.places[index].device.shareable:
                    mask = -1
                    break
                mask |= 1 << index
            self._masks[id(ready)] = mask
        return mask

    def _pay(self, free: int, needs: list[int]) -> None:
        """About what upstream spends before it has tried everything."""
        work, left = 1, free
        for need in needs:
            work *= max(1, sum(comb(left, size) for size in range(1, need + 1)))
            left = max(0, left - need)
        if "DRASchedulerFilterTimeout" in self._search.gates:
            self._search.work += work
            self._search.step()
