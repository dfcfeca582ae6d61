"""What nodes publish against what they should have: missing, empty, renamed, contradicting.

No API of Kubernetes says what a node really has. What it should have comes from the platform's
record (`Inventory`), and where nobody recorded anything the answer is *not known*, neither drift
nor peace. A single look proves nothing: slices dip when a kubelet restarts, so what counts is what
lasts (see `sightings`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from devices.dra.claims import DeviceKey
from devices.dra.codes import Code, code
from devices.dra.hardware import Spot, count, identities, spots
from devices.dra.leaks import HIDES_DEVICES_IN_USE
from devices.dra.ownership import DeviceType, Owner, Ownership, device_types, ownership
from devices.dra.pools import Pool, pools
from devices.dra.published import node_of, published
from devices.dra.snapshot import Snapshot
from devices.dra.usage import usage

#: Labels by which vendors' feature discovery says how many devices a node has, by driver.
COUNT_LABELS: Final = {"gpu.nvidia.com": "nvidia.com/gpu.count"}

#: A node and a driver: what an inventory is about.
Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Inventory:
    """What one node should publish by one driver: how many pieces of hardware, and (where it was
    recorded) what identifies each device by its name.
    """

    count: int | None = None
    devices: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Drift:
    """One finding about a node and a driver; ``claims`` are those that it touches."""

    code: Code
    node: str
    driver: str
    why: str
    expected: int | None = None
    published: int | None = None
    devices: tuple[DeviceKey, ...] = ()
    claims: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The same for the same finding, whenever it is made."""
        held = ",".join("/".join(device) for device in self.devices)
        return f"{self.code}:{self.node}:{self.driver}:{held}"

    @property
    def gates(self) -> bool:
        """Whether a wave must not go on over it: everything but information and the unknown."""
        return self.code.name not in ("DRIFT_OLD_SLICES", "DRIFT_NOT_KNOWN")


def drift(
    snapshot: Snapshot,
    expected: Mapping[Place, Inventory],
    *,
    hides: frozenset[str] = HIDES_DEVICES_IN_USE,
) -> tuple[Drift, ...]:
    """Every finding, by node and driver. ``expected`` is what the platform has on record, ``hides``
    are drivers that do not publish what is in use.
    """
    return (
        *_counted(snapshot, expected, hides),
        *_pools(snapshot),
        *_identities(snapshot, expected),
        *_configuration(snapshot),
    )


def plugin_drift(
    snapshot: Snapshot, expected: Mapping[tuple[str, str], int], types: Iterable[DeviceType] = ()
) -> tuple[Drift, ...]:
    """Plugins that offer another number of devices than they should, by node and type of device,
    on nodes that the plugin owns.
    """
    known = tuple(types) or device_types(snapshot)
    return tuple(
        Drift(
            code("DRIFT_ALLOCATABLE_DIFFERS"),
            owned.node,
            owned.type,
            f"the plugin offers {owned.plugin} of {wanted}",
            wanted,
            owned.plugin,
        )
        for owned in ownership(snapshot, known)
        if _differs(owned, wanted := expected.get((owned.node, owned.type)))
    )


def inventory(snapshot: Snapshot) -> Mapping[Place, Inventory]:
    """What a snapshot shows, as a record to compare later ones with. Nodes with an incomplete pool
    are left out: what they have is not known yet.
    """
    half = _half(snapshot)
    return {
        (node, driver): Inventory(
            count(found), {device.name: identities(device) for _, device in found}
        )
        for node, by_driver in spots(snapshot).items()
        for driver, found in by_driver.items()
        if (node, driver) not in half
    }


def labelled(snapshot: Snapshot) -> Mapping[Place, Inventory]:
    """What labels of feature discovery say that nodes have, where no record was made."""
    found = {}
    for node in snapshot.nodes.values():
        for driver, label in COUNT_LABELS.items():
            value = node.labels.get(label, "")
            if value.isdecimal():
                found[node.name, driver] = Inventory(int(value))
    return found


def _half(snapshot: Snapshot) -> set[Place]:
    """Nodes and drivers whose pools are being published: how many devices there are shows later."""
    return {
        (piece.reach.node_name, pool.driver)
        for pool in pools(snapshot).values()
        if pool.incomplete
        for piece in pool.slices
    }


def _hidden(snapshot: Snapshot, hides: frozenset[str]) -> Counter[Place]:
    """By node and driver, devices in use that their driver does not publish meanwhile."""
    found: Counter[Place] = Counter()
    for claim in snapshot.claims.values():
        for result in claim.allocation.results if claim.allocation else ():
            if result.driver in hides and published(snapshot, result.key) is None:
                found[node_of(claim, snapshot), result.driver] += 1
    return found


def _counted(
    snapshot: Snapshot, expected: Mapping[Place, Inventory], hides: frozenset[str]
) -> Iterable[Drift]:
    by_node, half, hidden = spots(snapshot), _half(snapshot), _hidden(snapshot, hides)
    there = {(node, driver) for node, by_driver in by_node.items() for driver in by_driver}
    plugins = _by_plugin(snapshot)
    for node, driver in sorted({*there, *expected} - half):
        found = by_node.get(node, {}).get(driver)
        record = expected.get((node, driver))
        wanted = record.count if record is not None else None
        if wanted is None:
            yield _drift("DRIFT_NOT_KNOWN", node, driver, "no record", None, _number(found))
        elif found is None:
            if (node in snapshot.nodes or not snapshot.nodes) and (node, driver) not in plugins:
                why = f"{wanted} expected, no pool"
                yield _drift("DRIFT_DRIVER_NOT_RUNNING", node, driver, why, wanted, None)
        elif not found and wanted > hidden[node, driver]:
            why = f"{wanted} expected, an empty pool"
            yield _drift("DRIFT_EMPTY_POOL", node, driver, why, wanted, 0)
        else:
            number = count(found) + hidden[node, driver]
            if number != wanted:
                name = "DRIFT_DEVICES_MISSING" if number < wanted else "DRIFT_DEVICES_TOO_MANY"
                why = f"{wanted} expected, {number} published"
                yield _drift(name, node, driver, why, wanted, number)


def _by_plugin(snapshot: Snapshot) -> set[Place]:
    """Nodes and drivers whose devices a plugin gives out: no driver is missing there."""
    drivers = {each.name: each.drivers for each in device_types(snapshot)}
    return {
        (owned.node, driver)
        for owned in ownership(snapshot)
        if owned.owner is Owner.PLUGIN
        for driver in drivers[owned.type]
    }


def _pools(snapshot: Snapshot) -> Iterable[Drift]:
    for pool in pools(snapshot).values():
        node = _node(pool)
        if pool.incomplete:
            why = f"{pool}: {len(pool.slices)} of {pool.expected} slices of the newest generation"
            yield _drift("DRIFT_POOL_INCOMPLETE", node, pool.driver, why)
        if pool.invalid:
            yield _drift("DRIFT_POOL_INVALID", node, pool.driver, f"{pool}: {pool.invalid}")
        if pool.outdated:
            why = f"{pool}: {', '.join(pool.outdated)} older than generation {pool.generation}"
            yield _drift("DRIFT_OLD_SLICES", node, pool.driver, why)


def _identities(snapshot: Snapshot, expected: Mapping[Place, Inventory]) -> Iterable[Drift]:
    """Names that mean other hardware than was recorded, and hardware that has another name now."""
    for (node, driver), record in sorted(expected.items()):
        found = spots(snapshot).get(node, {}).get(driver, ())
        now = {device.name: (piece, identities(device)) for piece, device in found}
        names = {mark: name for name, (_, marks) in now.items() for mark in marks}
        for name, marks in record.devices.items():
            piece, seen = now.get(name, (None, frozenset()))
            if piece is not None and marks and seen and not marks & seen:
                why = f"{name} was {_shown(marks)} and is {_shown(seen)}"
                key = (driver, piece.pool, name)
                yield _touching(snapshot, "DRIFT_IDENTITY_CHANGED", node, key, why)
            moved = next((names[mark] for mark in sorted(marks) if mark in names), name)
            if piece is None and moved != name:
                why = f"{name} ({_shown(marks)}) is called {moved} now"
                key = (driver, now[moved][0].pool, name)
                yield _touching(snapshot, "DRIFT_RENAMED", node, key, why)


def _configuration(snapshot: Snapshot) -> Iterable[Drift]:
    """Drivers whose equal devices may be shared on one node and not on another."""
    kinds: dict[tuple[str, str], dict[bool, set[str]]] = defaultdict(lambda: defaultdict(set))
    for node, by_driver in spots(snapshot).items():
        for driver, found in by_driver.items():
            for _, device in found:
                kinds[driver, kind_of(device.attributes)][device.shareable].add(node)
    for (driver, kind), ways in sorted(kinds.items()):
        if len(ways) == 2:
            fewest = min(len(nodes) for nodes in ways.values())
            odd = [node for nodes in ways.values() if len(nodes) == fewest for node in nodes]
            what = f"{kind or 'a device'} may be shared on some nodes only"
            for node in sorted(set(odd)):
                yield _drift("DRIFT_CONFIGURATION", node, driver, what)


def kind_of(attributes: Mapping[str, object]) -> str:
    """What a device is, by the attributes that drivers name so."""
    by_name = {name.rpartition("/")[2]: str(value) for name, value in attributes.items()}
    return by_name.get("productName") or by_name.get("model") or by_name.get("type") or ""


def _drift(
    name: str,
    node: str,
    driver: str,
    why: str,
    expected: int | None = None,
    published: int | None = None,
) -> Drift:
    return Drift(code(name), node, driver, why, expected, published)


def _touching(snapshot: Snapshot, name: str, node: str, key: DeviceKey, why: str) -> Drift:
    claims = tuple(str(claim) for claim in usage(snapshot).holders(key))
    return Drift(code(name), node, key[0], why, devices=(key,), claims=claims)


def _differs(owned: Ownership, wanted: int | None) -> bool:
    return owned.owner is Owner.PLUGIN and wanted is not None and owned.plugin != wanted


def _number(found: list[Spot] | None) -> int | None:
    return None if found is None else count(found)


def _node(pool: Pool) -> str:
    names = {piece.reach.node_name for piece in pool.slices}
    return names.pop() if len(names) == 1 else ""


def _shown(marks: frozenset[str]) -> str:
    return ", ".join(sorted(marks))
