"""What all simulated parts share: control plane, fleet file, pace, turns, eyes, identities."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devices.cluster.apiserver import ApiServer
from devices.cluster.gateway import Gateway
from devices.cluster.live import Transport
from playground.fleet.clock import Pace
from playground.fleet.sight import Sight
from playground.fleet.spec import FleetSpec
from playground.fleet.turns import Turns
from playground.plane.controlplane import ControlPlane

Obj = dict[str, Any]

NODES = "system:nodes"


def gateway(kubeconfig: Path) -> Gateway:
    """A gateway of its own. `devices.cluster.connect` remembers the last 64, enough for a product
    that is one person; a fleet is hundreds."""
    return ApiServer(Transport(str(kubeconfig)))


class Identities:
    """Gateways by identity. Every part writes with its own, so that a missing right shows."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._nodes: dict[str, Gateway] = {}
        self._lock = threading.Lock()
        self.admin: Gateway = gateway(plane.admin_kubeconfig)

    def node(self, name: str) -> Gateway:
        """The kubelet of a node: a client certificate for `system:node:NAME`."""
        with self._lock:
            if name not in self._nodes:
                path = self._plane.kubeconfig(f"system:node:{name}", [NODES])
                self._nodes[name] = gateway(path)
            return self._nodes[name]

    def of_pod(self, pod: Obj) -> Gateway:
        """A Pod's own account: a token that dies with the Pod and names its node."""
        metadata = pod["metadata"]
        path = self._plane.service_account_kubeconfig(
            metadata["namespace"],
            pod["spec"].get("serviceAccountName", "default"),
            bound_to={"kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]},
        )
        return gateway(path)


@dataclass(frozen=True, slots=True)
class Site:
    """The ground that the machines of one fleet stand on."""

    plane: ControlPlane
    spec: FleetSpec
    pace: Pace
    turns: Turns
    sight: Sight
    identities: Identities
    release: str
