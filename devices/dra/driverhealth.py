"""How each driver does, as far as slices, claims and nodes show it. Pure.

Slices carry no heartbeat, so a driver is never called healthy for a slice's age alone: what counts
is whether its pools are whole and valid, whether nodes that hold its devices still publish them,
and whether those nodes are ready.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from devices.dra.leaks import HIDES_DEVICES_IN_USE
from devices.dra.pools import PoolKey, pools
from devices.dra.published import node_of, published
from devices.dra.snapshot import Snapshot
from devices.dra.usage import usage
from devices.dra.wording import many, some_of


class Health(StrEnum):
    """From good to bad; of several, the worst counts."""

    HEALTHY = "healthy"
    LOOK = "look"
    """Some of its devices cannot be had, and somebody of the platform should look."""
    ALARM = "alarm"
    """It publishes nothing where its devices are in use."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class DriverHealth:
    """One driver. ``places`` are nodes, or pools where a pool belongs to no single node; each list
    names those of which something is wrong. ``publishing`` is on how many it publishes.
    """

    driver: str
    publishing: int = 0
    incomplete: tuple[PoolKey, ...] = ()
    invalid: tuple[PoolKey, ...] = ()
    gone: tuple[str, ...] = ()
    not_ready: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()

    @property
    def state(self) -> Health:
        if self.gone:
            return Health.ALARM
        if self.incomplete or self.invalid or self.not_ready or self.lost:
            return Health.LOOK
        return Health.HEALTHY if self.publishing else Health.UNKNOWN

    @property
    def sentence(self) -> str:
        """What is wrong, the worst first, else where it publishes."""
        total = self.publishing + len(self.gone)
        said = [
            text
            for names, text in (
                (self.gone, f"publishes nothing on {_some(self.gone, total)}, in use"),
                (self.invalid, f"{many(len(self.invalid), 'invalid pool')}"),
                (self.incomplete, f"{many(len(self.incomplete), 'incomplete pool')}"),
                (self.lost, f"{_some(self.lost, total)} no longer a node"),
                (self.not_ready, f"{_some(self.not_ready, total)} not ready"),
            )
            if names
        ]
        if said:
            return "; ".join(said)
        if not self.publishing:
            return "publishes nothing"
        return f"publishes at {many(self.publishing, 'place')}"


def driver_health(snapshot: Snapshot) -> Mapping[str, DriverHealth]:
    """Every driver that publishes, or whose devices are held, by name."""
    here: dict[str, set[str]] = defaultdict(set)
    wrong: dict[str, dict[str, list[PoolKey]]] = defaultdict(lambda: defaultdict(list))
    for key, pool in pools(snapshot).items():
        nodes = {piece.reach.node_name for piece in pool.slices}
        here[pool.driver] |= {name or f"pool {pool.name}" for name in nodes}
        if pool.invalid:
            wrong[pool.driver]["invalid"].append(key)
        elif pool.incomplete:
            wrong[pool.driver]["incomplete"].append(key)
    gone = _gone(snapshot)
    found = {}
    for driver in sorted({*here, *gone}):
        names = sorted(name for name in here[driver] if not name.startswith("pool "))
        known = snapshot.nodes
        found[driver] = DriverHealth(
            driver,
            publishing=len(here[driver]),
            incomplete=tuple(wrong[driver]["incomplete"]),
            invalid=tuple(wrong[driver]["invalid"]),
            gone=tuple(sorted(gone.get(driver, set()) - here[driver])),
            not_ready=tuple(n for n in names if n in known and known[n].ready is False),
            lost=tuple(n for n in names if known and n not in known),
        )
    return found


def worst(found: Iterable[DriverHealth]) -> DriverHealth | None:
    """The one that is worst off, for a class with several drivers."""
    order = [Health.UNKNOWN, Health.HEALTHY, Health.LOOK, Health.ALARM]
    return max(found, key=lambda one: order.index(one.state), default=None)


def _gone(snapshot: Snapshot) -> Mapping[str, set[str]]:
    """By driver, nodes where its devices are in use and not published any more."""
    found: dict[str, set[str]] = defaultdict(set)
    used = usage(snapshot)
    for key in used.devices():
        driver, pool, _ = key
        if driver in HIDES_DEVICES_IN_USE and (driver, pool) in pools(snapshot):
            continue
        if published(snapshot, key) is None:
            node = node_of(used.holders(key)[0], snapshot) or pool
            if node in snapshot.nodes or not snapshot.nodes:
                found[driver].add(node)
    return found


def _some(names: tuple[str, ...], total: int) -> str:
    shown = some_of(names, 2)
    return f"{len(names)} of {total}: {shown}" if total > 1 else shown
