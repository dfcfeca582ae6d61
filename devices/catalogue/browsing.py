"""Classes, pools, nodes and devices as one person may see them: a tenant's people see who of theirs
holds what and how many others do, people of the platform see all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.urls import reverse

from devices.dra.claims import Claim, DeviceKey
from devices.dra.hardwarefacts import (
    DeviceFacts,
    NodeFacts,
    PoolFacts,
    device_facts,
    is_extended,
    node_facts,
    pool_facts,
    pools_by_node,
)
from devices.dra.hardwareholders import Held, held
from devices.dra.hardwarewords import validity
from devices.dra.names import CLAIM_LABEL
from devices.dra.pools import Pool, pools
from devices.dra.snapshot import Snapshot
from devices.forecasts.warm import warm
from devices.models import Offer
from tenants.access import Access, PlatformAccess
from tenants.models import Tenant

#: States of pools and of nodes by which lists may be narrowed, with their words.
POOL_STATES: Final = {"incomplete": "Incomplete", "invalid": "Invalid", "complete": "Complete"}
NODE_STATES: Final = {
    "devices": "With devices",
    "not-ready": "Not ready",
    "closed": "Closed to new Pods",
    "unknown": "Known by slices only",
}


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks: somebody of a tenant, or of the platform. ``namespaces`` are the tenant's own;
    None for whoever may know every claim.
    """

    access: Access | None = None
    platform: PlatformAccess | None = None
    namespaces: frozenset[str] | None = None

    @property
    def tenant(self) -> Tenant | None:
        return self.access.tenant if self.access is not None else None

    def url(self, name: str, *args: str) -> str:
        """The address of a page of this viewer's, such as `pool` with its driver and name."""
        if self.access is not None:
            return reverse(name, args=[self.access.tenant.slug, *args])
        return reverse(f"platform-{name}", args=args)


def of_tenant(access: Access) -> Viewer:
    """Somebody of a tenant; one query."""
    names = access.tenant.namespaces.values_list("name", flat=True)
    return Viewer(access, None, frozenset(names))


def of_platform(platform: PlatformAccess) -> Viewer:
    """Somebody of the platform."""
    return Viewer(None, platform)


@dataclass(frozen=True, slots=True)
class Health:
    """How a driver does: a state of `devices.dra.driverhealth.Health`, and a sentence."""

    driver: str
    state: str
    sentence: str


@dataclass(frozen=True, slots=True)
class Look:
    """The cluster at one moment, for pages."""

    snapshot: Snapshot
    as_of: datetime


def look() -> Look | None:
    """None where the cluster was never seen, or a large one is being read for the first time.

    What depends on devices alone is computed with the picture's empty twin, which outlives claims.
    """
    seen = warm()
    if seen is None:
        return None
    pools(seen.empty)
    pools_by_node(seen.empty)
    return Look(seen.prepared(), seen.as_of)


# --- lists: cheap keys of all, dear facts of the few that a page shows ---


def pools_listed(here: Look, *, driver: str = "", state: str = "", text: str = "") -> list[Pool]:
    """Pools by driver and name; `text` is looked for in both."""
    asked = text.lower().split()
    return [
        pool
        for pool in pools(here.snapshot).values()
        if (not driver or pool.driver == driver)
        and (not state or validity(pool)[0] == state)
        and all(word in f"{pool.driver} {pool.name}".lower() for word in asked)
    ]


def pool_rows(here: Look, found: Sequence[Pool]) -> list[PoolFacts]:
    """What a page says of these pools."""
    return [pool_facts(here.snapshot, pool) for pool in found]


def drivers_of(here: Look) -> list[str]:
    """Every driver that publishes."""
    return sorted({driver for driver, _ in pools(here.snapshot)})


def nodes_listed(here: Look, *, state: str = "", text: str = "") -> list[str]:
    """Names of nodes, sorted; `text` is looked for in them."""
    asked = text.lower().split()
    fits = _NODE_TESTS.get(state, lambda snapshot, name: True)
    return [
        name
        for name in here.snapshot.node_names
        if all(word in name.lower() for word in asked) and fits(here.snapshot, name)
    ]


def node_rows(here: Look, names: Sequence[str]) -> list[NodeFacts]:
    """What a page says of these nodes."""
    found = (node_facts(here.snapshot, name) for name in names)
    return [facts for facts in found if facts is not None]


def _has_devices(snapshot: Snapshot, name: str) -> bool:
    if name in pools_by_node(snapshot):
        return True
    node = snapshot.nodes.get(name)
    return node is not None and any(
        is_extended(resource) and amount for resource, amount in node.allocatable.items()
    )


_NODE_TESTS: Final[dict[str, Callable[[Snapshot, str], bool]]] = {
    "devices": _has_devices,
    "not-ready": lambda s, name: name in s.nodes and s.nodes[name].ready is False,
    "closed": lambda s, name: name in s.nodes and s.nodes[name].unschedulable,
    "unknown": lambda s, name: name not in s.nodes,
}


# --- one thing ---


def pool_of(here: Look, driver: str, name: str) -> Pool | None:
    """One pool; None where nobody publishes it."""
    return pools(here.snapshot).get((driver, name))


def node_of(here: Look, name: str) -> NodeFacts | None:
    """One node; None where nobody knows it."""
    return node_facts(here.snapshot, name)


def device_of(here: Look, key: DeviceKey) -> DeviceFacts | None:
    """One device; None where nobody publishes or holds it."""
    return device_facts(here.snapshot, key)


def health_of(drivers: Sequence[str]) -> dict[str, Health]:
    """How these drivers do, as it was counted last; one query."""
    found = {
        one["driver"]: Health(one["driver"], one["state"], one["sentence"])
        for counts in Offer.objects.values_list("counts", flat=True)
        for one in counts.get("drivers") or ()
        if isinstance(one, dict)
    }
    return {driver: found[driver] for driver in drivers if driver in found}


def held_for(viewer: Viewer, claims: Sequence[Claim]) -> Held:
    """Who holds something, as far as the viewer may know."""
    return held(claims, viewer.namespaces)


def ask_of(claim: Claim) -> str:
    """The public id of the ask behind a claim of the cluster; empty where Berth did not make it."""
    return claim.meta.labels.get(CLAIM_LABEL, "")


def claim_json(claim: Claim) -> dict[str, Any]:
    """A holder as the API names it."""
    return {
        "namespace": claim.meta.namespace,
        "name": claim.meta.name,
        "id": ask_of(claim) or None,
    }
