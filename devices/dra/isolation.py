"""Whether preparations fail at one place more than chance explains, and whether it may be closed.

Pure. The rule, for each driver by itself and over the last half hour (`Rule` has the numbers):

- A Pod counts once, however often its node tries again: *ready*, or *failed* where it has failed
  for a minute and is not ready yet. What is younger is undecided and counts nowhere.
- Only failures that accuse the place count (`ACCUSING`). Settings that a driver refuses, a claim
  that is reserved for nobody or that was given out twice say nothing about a node.
- A place is suspected where at least 3 Pods and at least half of all that were decided there
  failed, and where Fisher's exact test against every other place of the driver (at least 5 decided
  Pods) says that chance puts so many failures there at most once in 100 times. That chance is
  multiplied by the number of places that failed often enough to be tested. Too few is no proposal,
  and a driver that fails everywhere is none either: closing one node would mend nothing.
- The place is one device where the same test, against the other Pods *of its node*, says at most
  once in 20 times; else it is all devices of the driver on the node.

Nothing here knows a cluster; what a taint rule looks like stands in `isolationobjects`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from math import comb
from typing import Final

from devices.dra.claims import DeviceKey

#: Codes of failed preparations that accuse the node, its driver or a device.
ACCUSING: Final = frozenset(
    {
        "PREPARE_DRIVER_UNREACHABLE",
        "PREPARE_CALL_FAILED",
        "PREPARE_DEVICE_FAULT",
        "PREPARE_FAILED",
        "PREPARE_DRIVER_SKIPPED",
        "CDI_DEVICES_MISSING",
        "NODE_STATE_BROKEN",
    }
)


@dataclass(frozen=True, slots=True)
class Rule:
    """The numbers of the rule above; `share` is the largest part of a pool that may be closed."""

    window: timedelta = timedelta(minutes=30)
    lasting: timedelta = timedelta(minutes=1)
    least_failed: int = 3
    least_part: float = 0.5
    least_others: int = 5
    most_chance: float = 0.01
    most_chance_beside: float = 0.05
    share: float = 0.25


@dataclass(frozen=True, slots=True)
class Preparation:
    """One Pod's devices of one driver on one node, and how far they came.

    ``failed_at`` is the first failure that the node told, ``seen_at`` when the Pod was last seen
    there, ``code`` what the failure means. Ready ones have ``ready_at``, whatever came before.
    """

    pod: str
    node: str
    driver: str
    devices: tuple[DeviceKey, ...]
    seen_at: datetime
    failed_at: datetime | None = None
    ready_at: datetime | None = None
    code: str = ""

    def failed(self, now: datetime, rule: Rule) -> bool | None:
        """Whether it failed; None while that is undecided, or is too long ago to count."""
        if self.ready_at is not None:
            return False if now - self.ready_at <= rule.window else None
        if self.failed_at is None or self.code not in ACCUSING:
            return None
        if now - self.seen_at > rule.window or self.seen_at - self.failed_at < rule.lasting:
            return None
        return True


@dataclass(frozen=True, slots=True)
class Place:
    """Where: a driver's devices on a node, or one of them (`device` is its driver, pool, name)."""

    driver: str
    node: str
    device: DeviceKey | None = None

    def has(self, one: Preparation) -> bool:
        """Whether a preparation was at this place."""
        if (one.driver, one.node) != (self.driver, self.node):
            return False
        return self.device is None or self.device in one.devices

    def __str__(self) -> str:
        return f"{self.device[2]} on {self.node}" if self.device else self.node


@dataclass(frozen=True, slots=True)
class Suspect:
    """A place that fails more than chance explains, with the figures that say so.

    ``chance`` is how often chance alone does this, already multiplied by the places tested.
    """

    place: Place
    failed: int
    tried: int
    others_failed: int
    others_tried: int
    chance: float
    pods: tuple[str, ...] = ()
    codes: Mapping[str, int] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        """The figures as people read them."""
        beside = f"{self.others_failed} of {self.others_tried} elsewhere"
        return f"{self.failed} of {self.tried} Pods could not be prepared here, {beside}."


def chance(failed: int, tried: int, others_failed: int, others_tried: int) -> float:
    """How often chance puts so many failures, or more, here, if all places were equally good.

    Fisher's exact test, one-sided. 3 of 3 here and 0 of 10 elsewhere: 3 failures can lie in
    C(13, 3) = 286 ways, one of which has them all here, so 1/286 = 0.0035.
    """
    everywhere, bad = tried + others_tried, failed + others_failed
    most = min(bad, tried)
    ways = sum(
        comb(bad, here) * comb(everywhere - bad, tried - here) for here in range(failed, most + 1)
    )
    return ways / comb(everywhere, tried)


def suspects(
    preparations: Iterable[Preparation], now: datetime, rule: Rule = Rule()
) -> tuple[Suspect, ...]:
    """Every place to be closed, by driver, node and device; a device before its whole node."""
    decided = [
        (one, outcome) for one in preparations if (outcome := one.failed(now, rule)) is not None
    ]
    found: list[Suspect] = []
    for driver in sorted({one.driver for one, _ in decided}):
        of_driver = [each for each in decided if each[0].driver == driver]
        devices = _often({Place(driver, one.node, key) for one, bad in of_driver if bad
                          for key in one.devices}, of_driver, rule)  # fmt: skip
        nodes = _often({Place(driver, one.node) for one, bad in of_driver if bad}, of_driver, rule)
        tests = len(devices) + len(nodes)
        guilty = [
            one
            for place in devices
            if (one := _judged(place, of_driver, rule, tests)) is not None
            and _stands_out(place, of_driver, rule)
        ]
        found += guilty
        left = [each for each in of_driver if not any(one.place.has(each[0]) for one in guilty)]
        found += [one for place in nodes if (one := _judged(place, left, rule, tests)) is not None]
    return tuple(found)


def suspected(
    place: Place, preparations: Iterable[Preparation], now: datetime, rule: Rule = Rule()
) -> bool:
    """Whether a place still fails: a preparation there is failing, and none was ready since."""
    here = [one for one in preparations if place.has(one)]
    failing = [one for one in here if one.failed(now, rule)]
    latest = max((one.ready_at for one in here if one.ready_at is not None), default=None)
    return any(latest is None or one.seen_at > latest for one in failing)


def recovered(
    place: Place,
    preparations: Iterable[Preparation],
    since: datetime,
    now: datetime,
    rule: Rule = Rule(),
) -> bool:
    """Whether the driver has shown by itself that the place works again: something became ready
    there after ``since``, and nothing there is failing any more.
    """
    here = [one for one in preparations if place.has(one)]
    ready = any(one.ready_at is not None and one.ready_at > since for one in here)
    failing = any(
        one.ready_at is None and one.failed_at is not None and now - one.seen_at <= rule.lasting
        for one in here
    )
    return ready and not failing


@dataclass(frozen=True, slots=True)
class Room:
    """What closing a place would leave: devices of the pool, closed already, and more by it."""

    pool: str
    total: int
    closed: int
    more: int
    share: float

    @property
    def allowed(self) -> bool:
        """Whether no more than the share would be closed. Of an unknown number nothing may be."""
        return self.total > 0 and self.closed + self.more <= self.share * self.total

    @property
    def sentence(self) -> str:
        """The figures as people read them."""
        if not self.total:
            return f"{self.pool} publishes nothing, so nobody can say how much of it would be left."
        after, most = self.closed + self.more, int(self.share * self.total)
        return (
            f"{after} of {self.total} devices of {self.pool} would be closed"
            f"{f' ({self.closed} of them before)' if self.closed else ''}; "
            f"at most {most} may be."
        )


def room(
    pool: str,
    devices: Collection[DeviceKey],
    closed: Collection[DeviceKey],
    place: Collection[DeviceKey],
    share: float,
) -> Room:
    """Counts once what is closed already and lies at the place too."""
    everything = set(devices)
    already = everything & set(closed)
    return Room(pool, len(everything), len(already), len(set(place) - already), share)


_Decided = tuple[Preparation, bool]


def _often(places: Iterable[Place], decided: Sequence[_Decided], rule: Rule) -> list[Place]:
    """Places that failed often enough to be tested, in a fixed order."""
    counted: Counter[Place] = Counter()
    for place in places:
        counted[place] = sum(bad and place.has(one) for one, bad in decided)
    often = [place for place, failures in counted.items() if failures >= rule.least_failed]
    return sorted(often, key=lambda place: (place.node, place.device or ("", "", "")))


def _judged(place: Place, decided: Sequence[_Decided], rule: Rule, tests: int) -> Suspect | None:
    here, others = _split(decided, place.has)
    failed, others_failed = sum(bad for _, bad in here), sum(bad for _, bad in others)
    if failed < rule.least_failed or failed < rule.least_part * len(here):
        return None
    if len(others) < rule.least_others:
        return None
    often = min(1.0, tests * chance(failed, len(here), others_failed, len(others)))
    if often > rule.most_chance:
        return None
    return Suspect(
        place,
        failed,
        len(here),
        others_failed,
        len(others),
        often,
        tuple(sorted(one.pod for one, bad in here if bad)),
        Counter(one.code for one, bad in here if bad),
    )


def _stands_out(place: Place, decided: Sequence[_Decided], rule: Rule) -> bool:
    """Whether one device is worse than the rest of its node."""
    node = Place(place.driver, place.node)
    here, beside = _split([each for each in decided if node.has(each[0])], place.has)
    failed, beside_failed = sum(bad for _, bad in here), sum(bad for _, bad in beside)
    return chance(failed, len(here), beside_failed, len(beside)) <= rule.most_chance_beside


def _split(
    decided: Iterable[_Decided], there: Callable[[Preparation], bool]
) -> tuple[list[_Decided], list[_Decided]]:
    here: list[_Decided] = []
    others: list[_Decided] = []
    for each in decided:
        (here if there(each[0]) else others).append(each)
    return here, others
