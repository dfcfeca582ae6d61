"""A simulated DRA driver on one node: publishes its devices, prepares claims, can be made to fail.

It lives exactly as long as the container of its DaemonSet's Pod, and writes with that Pod's token.
"""

from __future__ import annotations

import fnmatch
import logging
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from devices.cluster.gateway import Gateway, Ref
from playground.fleet import slices
from playground.fleet.claims import ClaimRefused, Prepared, RpcFailed, devices_of
from playground.fleet.clock import now, stamp
from playground.fleet.spec import Driver, Pool, expand

if TYPE_CHECKING:
    from playground.fleet.kubelet import Kubelet

log = logging.getLogger(__name__)

Obj = dict[str, Any]


@dataclass(slots=True)
class Trouble:
    """What is wrong with one driver on one node, kept apart from it so that it survives restarts.

    `left` is how often preparing still fails: 0 not at all, None for ever.
    """

    refuse: str = ""  # the driver's words about a claim
    broken: str = ""  # the driver's words, with which the whole call fails
    hang: bool = False
    slow: float = 0.0  # seconds of a real node that preparing takes longer
    claims: str = "*"  # "namespace/name", may hold wildcards
    left: int | None = 0
    unprepare: str = ""
    taints: dict[str, list[Obj]] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    health: dict[str, tuple[str, str]] = field(default_factory=dict)
    silent: bool = False  # runs, but publishes nothing any more: its slices are stale

    def hits(self, claim: Obj) -> bool:
        metadata = claim["metadata"]
        return self.left != 0 and fnmatch.fnmatch(
            f"{metadata['namespace']}/{metadata['name']}", self.claims
        )

    def published(self) -> tuple[object, ...]:
        """What of it shows in slices; another value means that they have to change."""
        taints = {device: tuple(map(str, taints)) for device, taints in self.taints.items()}
        return frozenset(self.gone), tuple(sorted(taints.items())), self.silent

    def used(self) -> None:
        if self.left:
            self.left -= 1

    def prepare_works(self) -> None:
        """Takes back all that was wrong with preparing."""
        self.refuse, self.broken, self.hang, self.slow, self.left = "", "", False, 0.0, 0


def pool_devices(pool: Pool, trouble: Trouble, release: str, **known: Any) -> list[Obj]:
    """The devices of a pool as they are published now, in the shape of `release`."""
    found = []
    for template in pool.devices:
        for device in expand(template, **known):
            name = device["name"]
            if name in trouble.gone:
                continue
            if taints := [*device.get("taints", []), *trouble.taints.get(name, [])]:
                device = {**device, "taints": taints}
            found.append(slices.for_release(device, release))
    return found


def pool_counters(pool: Pool, **known: Any) -> list[Obj]:
    return [one for template in pool.counters for one in expand(template, **known)]


class NodeAgent:
    """The driver's Pod on one node."""

    def __init__(self, spec: Driver, kubelet: Kubelet, pod: Obj, trouble: Trouble) -> None:
        self.name = spec.name
        self.spec = spec
        self.trouble = trouble
        self._kubelet = kubelet
        self._site = kubelet.site
        self._pod = pod
        self._gateway: Gateway | None = None
        self._key = ("publish", kubelet.name, spec.name)
        self._index = kubelet.group.node_names().index(kubelet.name)

    # Life

    def start(self) -> None:
        takes = self._site.pace.of(self.spec.publish_seconds)
        self._site.turns.add(self._key, self._publish, after=takes)

    def stop(self) -> None:
        """The container ends: no farewell, the kubelet notices that the socket is gone."""
        self._site.turns.drop(self._key)
        self._kubelet.driver_gone(self)

    @property
    def gateway(self) -> Gateway:
        """Opened at first use, with a token bound to the Pod (it names the node too)."""
        if self._gateway is None:
            self._gateway = self._site.identities.of_pod(self._pod)
        return self._gateway

    # Publishing

    def _publish(self) -> float | None:
        if self._kubelet.drivers.get(self.name) is not self:
            self._kubelet.register_driver(self)
        if self.trouble.silent:
            return None
        pools = [pool for pool in self.spec.pools if pool.group == self._kubelet.group.name]
        if not pools:
            return None
        node = self.gateway.get(Ref("Node", self._kubelet.name))
        if node is None:
            return 1.0
        owner = {
            "apiVersion": "v1",
            "kind": "Node",
            "name": self._kubelet.name,
            "uid": node["metadata"]["uid"],
            "controller": True,
        }
        fields = f"spec.nodeName={self._kubelet.name},spec.driver={self.name}"
        found = self.gateway.list("ResourceSlice", fields=fields).items
        for pool in pools:
            name = pool.name.format(node=self._kubelet.name, node_index=self._index)
            plan = slices.publication(
                [one for one in found if one["spec"]["pool"]["name"] == name],
                self.wanted(pool),
                pool=name,
                driver=self.name,
                scope={"nodeName": self._kubelet.name},
                owner=owner,
            )
            perform(self.gateway, plan)
        return None

    def wanted(self, pool: Pool) -> list[Obj]:
        """The contents of a pool's slices."""
        known = {"node": self._kubelet.name, "node_index": self._index, "seed": self.name}
        devices = pool_devices(pool, self.trouble, self._site.release, **known)
        return slices.contents(
            devices, pool_counters(pool, **known), per_slice=pool.devices_per_slice
        )

    # The kubelet's calls

    def prepare_seconds(self, claim: Obj) -> float:
        takes = self.spec.prepare_seconds
        if self.trouble.hits(claim):
            if self.trouble.hang:
                return self._site.pace.rpc_timeout * 2
            takes += self.trouble.slow
        return self._site.pace.of(takes)

    def prepare(self, claim: Obj) -> tuple[Prepared, ...]:
        if self.trouble.hits(claim):
            refuse, broken = self.trouble.refuse, self.trouble.broken
            if refuse or broken:
                self.trouble.used()
                if broken:  # how the upstream helper and gRPC hand on a driver's error
                    words = f"code = Unknown desc = prepare resource claims: {broken}"
                    raise RpcFailed(f"rpc error: {words}")
                raise ClaimRefused(refuse)
        devices = devices_of(claim, self.name)
        if self.spec.device_status and devices:
            self._tell(claim, devices)
        return devices

    def unprepare(self, claim_uid: str) -> None:
        if self.trouble.unprepare:
            raise ClaimRefused(self.trouble.unprepare)

    def health(self, pool: str, device: str) -> tuple[str, str]:
        return self.trouble.health.get(device, ("Healthy", ""))

    def _tell(self, claim: Obj, devices: tuple[Prepared, ...]) -> None:
        """Writes status.devices of the claim, as drivers of network devices do (KEP-4817)."""
        results = claim["status"]["allocation"]["devices"]["results"]
        told = []
        for device, result in zip(
            devices, (one for one in results if one["driver"] == self.name), strict=True
        ):
            told.append(
                {
                    "driver": device.driver,
                    "pool": device.pool,
                    "device": device.device,
                    **({"shareID": result["shareID"]} if result.get("shareID") else {}),
                    "conditions": [
                        {
                            "type": "Ready",
                            "status": "True",
                            "reason": "Prepared",
                            "message": "",
                            "lastTransitionTime": stamp(now()),
                        }
                    ],
                    **({"networkData": _network(device.device)} if self.spec.network else {}),
                }
            )
        metadata = claim["metadata"]
        self.gateway.apply(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": metadata["name"], "namespace": metadata["namespace"]},
                "status": {"devices": told},
            },
            manager=self.name,
            force=True,
            status=True,
        )


def _network(device: str) -> Obj:
    """An address out of the ranges that are set aside for documentation."""
    dice = random.Random(device)
    octets = [0x02, 0x00, *(dice.randrange(256) for _ in range(4))]
    return {
        "interfaceName": device[:15],
        "ips": [f"198.51.100.{dice.randrange(1, 255)}/24"],
        "hardwareAddress": ":".join(f"{octet:02x}" for octet in octets),
    }


def perform(gateway: Gateway, plan: slices.Publication) -> None:
    """Makes the calls of a publication, in its order."""
    for name in plan.deletes:
        gateway.delete(Ref("ResourceSlice", name))
    for name, spec in plan.updates:
        gateway.merge(Ref("ResourceSlice", name), {"spec": spec})
    for body in plan.creates:
        gateway.create(body)
