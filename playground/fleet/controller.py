"""A simulated driver's central controller: publishes the cluster's pools, attaches their devices.

Devices on a fabric belong to no node until they are claimed: the scheduler waits for their binding
conditions (KEP-5007), which this controller writes once the device is attached to the node.
"""

from __future__ import annotations

import time
from typing import Any

from devices.cluster.gateway import Gateway
from playground.fleet import slices
from playground.fleet.claims import Obj
from playground.fleet.clock import now, stamp
from playground.fleet.driver import Trouble, perform, pool_counters, pool_devices
from playground.fleet.site import Site
from playground.fleet.spec import Driver, Pool


class Controller:
    """The one Pod of the controller's Deployment, wherever it runs."""

    def __init__(self, spec: Driver, site: Site, pod: Obj, trouble: Trouble) -> None:
        self.name = spec.name
        self.spec = spec
        self.trouble = trouble
        self._site = site
        self._pod = pod
        self._gateway: Gateway | None = None
        self._running = False
        self._since: dict[tuple[str, str], float] = {}

    @property
    def gateway(self) -> Gateway:
        if self._gateway is None:
            self._gateway = self._site.identities.of_pod(self._pod)
        return self._gateway

    @property
    def _publishing(self) -> tuple[str, str]:
        return "publish-pools", self.name

    def start(self) -> None:
        self._running = True
        takes = self._site.pace.of(self.spec.publish_seconds)
        self._site.turns.add(self._publishing, self._publish, after=takes)
        for claim in self._site.sight.objects("ResourceClaim"):
            self.see(claim, gone=False)

    def stop(self) -> None:
        """Its slices stay: no kubelet feels responsible for pools of the cluster."""
        self._running = False
        self._site.turns.drop(self._publishing)

    def _publish(self) -> float | None:
        if self.trouble.silent:
            return None
        found = self.gateway.list("ResourceSlice", fields=f"spec.driver={self.name}").items
        for pool in (pool for pool in self.spec.pools if not pool.group):
            plan = slices.publication(
                [one for one in found if one["spec"]["pool"]["name"] == pool.name],
                self.wanted(pool),
                pool=pool.name,
                driver=self.name,
                scope=_scope(pool),
                owner=None,
            )
            perform(self.gateway, plan)
        return None

    def wanted(self, pool: Pool) -> list[Obj]:
        known = {"node": pool.name, "node_index": 0, "seed": self.name}
        devices = pool_devices(pool, self.trouble, self._site.release, **known)
        return slices.contents(
            devices, pool_counters(pool, **known), per_slice=pool.devices_per_slice
        )

    # Attaching

    def see(self, claim: Obj, *, gone: bool) -> None:
        """News of a claim; only allocations of this driver's devices that wait are of interest."""
        if not self._running:
            return
        key = ("attach", claim["metadata"]["uid"])
        if gone or not self._waiting(claim):
            self._site.turns.drop(key)
            return
        namespace, name = claim["metadata"]["namespace"], claim["metadata"]["name"]
        self._site.turns.add(key, lambda: self._attach(namespace, name))

    def _waiting(self, claim: Obj) -> list[Obj]:
        """Allocated devices of this driver whose binding conditions are not all told yet."""
        status = claim.get("status", {})
        told = {
            (one["driver"], one["pool"], one["device"]): {
                c["type"] for c in one.get("conditions", ())
            }
            for one in status.get("devices", ())
        }
        return [
            one
            for one in self._bound(claim)
            if not told.get((one["driver"], one["pool"], one["device"]), set())
            & {*one["bindingConditions"], *one.get("bindingFailureConditions", ())}
        ]

    def _bound(self, claim: Obj) -> list[Obj]:
        """Allocated devices of this driver that have binding conditions."""
        allocation = claim.get("status", {}).get("allocation") or {}
        results = allocation.get("devices", {}).get("results", ())
        return [
            one for one in results if one["driver"] == self.name and one.get("bindingConditions")
        ]

    def _attach(self, namespace: str, name: str) -> float | None:
        claim = self._site.sight.get("ResourceClaim", name, namespace)
        waiting = self._waiting(claim) if claim and self._running else []
        if claim is None or not waiting:
            return None
        metadata = claim["metadata"]
        key = (metadata["uid"], waiting[0]["device"])
        since = self._since.setdefault(key, time.monotonic())
        takes = self._site.pace.of(self.spec.attach_seconds)
        hanging = self.trouble.hang and self.trouble.hits(claim)
        left = takes - (time.monotonic() - since)
        if left > 0 or hanging:
            return max(left, 0.5)
        self._since.pop(key, None)
        failure = self.trouble.refuse if self.trouble.hits(claim) else ""
        if failure:
            self.trouble.used()
        self.gateway.apply(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": name, "namespace": namespace},
                # All of this driver's entries: apply takes away what is no longer sent.
                "status": {"devices": [_told(one, failure) for one in self._bound(claim)]},
            },
            manager=self.name,
            force=True,
            status=True,
        )
        return None


def _scope(pool: Pool) -> Obj:
    if not pool.selector:
        return {"allNodes": True}
    expressions = [
        {"key": key, "operator": "In", "values": values} for key, values in pool.selector.items()
    ]
    return {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}


def _told(result: Obj, failure: str) -> dict[str, Any]:
    """One device's entry of status.devices: all conditions true, or the failure with its words."""
    kinds = (
        result.get("bindingFailureConditions", [])[:1] if failure else result["bindingConditions"]
    )
    return {
        "driver": result["driver"],
        "pool": result["pool"],
        "device": result["device"],
        **({"shareID": result["shareID"]} if result.get("shareID") else {}),
        "conditions": [
            {
                "type": kind,
                "status": "True",
                "reason": "AttachFailed" if failure else "Attached",
                "message": failure,
                "lastTransitionTime": stamp(now()),
            }
            for kind in kinds
        ],
    }
