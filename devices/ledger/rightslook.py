"""Asking a cluster which drivers there are and what they may do; as somebody who may read roles."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

from devices.cluster.gateway import Gateway
from devices.ledger.driverrights import Account, Finding, Fleet, check, rights_by_account
from devices.models import DriverRights, NodePool

ROLES: Final = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")


def look(gateway: Gateway) -> tuple[tuple[str, ...], tuple[Finding, ...]]:
    """The drivers that were looked at, and what is wrong. Raises ClusterError."""
    fleets = fleets_of(
        gateway.list("ResourceSlice").items,
        gateway.list("ResourceClaim").items,
        gateway.list("DaemonSet").items,
        _sets(),
    )
    roles = [{"kind": kind, **one} for kind in ROLES for one in gateway.list(kind).items]
    names = tuple(fleet.driver for fleet in fleets)
    return names, check(fleets, rights_by_account(roles))


def keep(drivers: Iterable[str], findings: Iterable[Finding], now: datetime) -> None:
    """Keeps what was found for the page and the API."""
    DriverRights.objects.update_or_create(
        name="ledger",
        defaults={
            "at": now, "drivers": list(drivers), "findings": [asdict(one) for one in findings],
        },
    )  # fmt: skip


def fleets_of(
    slices: Iterable[Mapping[str, Any]],
    claims: Iterable[Mapping[str, Any]],
    daemon_sets: Iterable[Mapping[str, Any]],
    sets: Mapping[str, str],
) -> list[Fleet]:
    """Every driver that publishes. `sets` says whose each DaemonSet (namespace/name) is."""
    everywhere: dict[str, bool] = {}
    for one in slices:
        spec = one["spec"]
        driver = str(spec["driver"])
        everywhere[driver] = everywhere.get(driver, False) or not spec.get("nodeName")
    tells = {
        str(told["driver"])
        for claim in claims
        for told in (claim.get("status") or {}).get("devices") or ()
    }
    accounts: dict[str, set[Account]] = defaultdict(set)
    for one in daemon_sets:
        meta = one["metadata"]
        driver = sets.get(f"{meta['namespace']}/{meta['name']}", "")
        if driver:
            account = one["spec"]["template"]["spec"].get("serviceAccountName") or "default"
            accounts[driver].add((meta["namespace"], account))
    return [
        Fleet(driver, network, driver in tells, frozenset(accounts[driver]))
        for driver, network in sorted(everywhere.items())
    ]


def _sets() -> dict[str, str]:
    rows = NodePool.objects.values_list("driver", "driver_sets")
    return {name: driver for driver, names in rows for name in names}
