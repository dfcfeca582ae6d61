"""One fleet per release and run, on a control plane of its own that loses nodes quickly."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from devices.cluster.gateway import Gateway, Ref
from playground.fleet.fleet import Fleet
from playground.plane.components import Tuning
from playground.plane.controlplane import ControlPlane
from tests.playground.planes import NEWEST, OLDER, built

Obj = dict[str, Any]

FLEET_FILE = Path(__file__).parent / "fleet.yaml"
NODE_GRACE = 8  # seconds; heartbeats come every second
_number = itertools.count(1)


class Ground:
    """A fleet with a namespace of the test's own, and what tests look for in it."""

    def __init__(self, fleet: Fleet, namespace: str) -> None:
        self.fleet = fleet
        self.namespace = namespace
        self.admin: Gateway = fleet.admin

    def make(self, *objects: Obj) -> None:
        """Creates objects, in the test's namespace where they have none."""
        for obj in objects:
            self.admin.create({**obj, "metadata": {"namespace": self.namespace, **obj["metadata"]}})

    def get(self, kind: str, name: str) -> Obj | None:
        return self.admin.get(Ref(kind, name, self.namespace))

    def pod(self, name: str) -> Obj:
        found = self.get("Pod", name)
        assert found is not None, f"Pod {name} is gone"
        return found

    def delete(self, kind: str, name: str, *, grace_seconds: int | None = None) -> None:
        self.admin.delete(Ref(kind, name, self.namespace), grace_seconds=grace_seconds)

    def wait(self, what: str, seen: Callable[[], Any], *, seconds: float = 20.0) -> Any:
        """What `seen` returns as soon as it is true; fails with `what` did not happen."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if found := seen():
                return found
            time.sleep(0.03)
        pytest.fail(f"within {seconds:.0f} s not seen: {what}\n{self.story()}")

    def ready(self, name: str, *, seconds: float = 20.0) -> Obj:
        """The Pod, once it is Ready."""
        return dict(self.wait(f"Pod {name} Ready", lambda: self._if_ready(name), seconds=seconds))

    def _if_ready(self, name: str) -> Obj | None:
        found = self.get("Pod", name)
        return found if found and condition(found, "Ready") == "True" else None

    def gone(self, kind: str, name: str, *, seconds: float = 20.0) -> None:
        self.wait(f"{kind} {name} gone", lambda: self.get(kind, name) is None, seconds=seconds)

    def events(self, name: str) -> list[tuple[str, str]]:
        """(reason, message) of an object's events."""
        fields = f"involvedObject.name={name}"
        found = self.admin.list("Event", namespace=self.namespace, fields=fields).items
        return [(one["reason"], one["message"]) for one in found]

    def said(self, name: str, reason: str) -> str:
        """The message of the first event with that reason; "" where there is none yet."""
        return next((text for why, text in self.events(name) if why == reason), "")

    def slices(self, node: str, driver: str = "gpu.helios.example") -> list[Obj]:
        fields = f"spec.nodeName={node},spec.driver={driver}"
        return list(self.admin.list("ResourceSlice", fields=fields).items)

    def devices(self, node: str, driver: str = "gpu.helios.example") -> set[str]:
        """Names of the devices that a driver publishes on a node."""
        return {
            device["name"]
            for one in self.slices(node, driver)
            for device in one["spec"].get("devices", ())
        }

    def node(self, name: str) -> Obj:
        """The Node, or {} while there is none."""
        return self.admin.get(Ref("Node", name)) or {}

    def results(self, claim: str) -> list[Obj]:
        """What a claim holds."""
        found = self.get("ResourceClaim", claim) or {}
        allocation = found.get("status", {}).get("allocation") or {}
        return list(allocation.get("devices", {}).get("results", ()))

    def empty(self) -> None:
        """Deletes the namespace's Pods, and waits until the last one is gone."""
        for pod in self.admin.list("Pod", namespace=self.namespace).items:
            self.delete("Pod", pod["metadata"]["name"])
        left = lambda: self.admin.list("Pod", namespace=self.namespace).items  # noqa: E731
        self.wait("the namespace empty", lambda: not left())

    def story(self) -> str:
        """Pods and events of the namespace, for a failing test."""
        lines = []
        for pod in self.admin.list("Pod", namespace=self.namespace).items:
            lines.append(f"Pod {pod['metadata']['name']}: {pod.get('status')}")
        for event in self.admin.list("Event", namespace=self.namespace).items:
            lines.append(f"{event['involvedObject']['name']}: {event['message']}")
        return "\n".join(lines)


def condition(obj: Obj, kind: str) -> str:
    """A condition's status, "" where there is none."""
    conditions = obj.get("status", {}).get("conditions", ())
    return next((one["status"] for one in conditions if one["type"] == kind), "")


def a_claim(
    name: str, device_class: str = "h100", *, template: bool = False, **exactly: Any
) -> Obj:
    """A claim for one device of a class, or a template for such claims."""
    request = {"name": "gpu", "exactly": {"deviceClassName": device_class, **exactly}}
    spec: Obj = {"devices": {"requests": [request]}}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate" if template else "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"spec": spec} if template else spec,
    }


def a_pod(
    name: str,
    *,
    claim: str = "",
    template: str = "",
    node: str = "",
    bound: str = "",
    limits: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> Obj:
    """A Pod with one container. `node` by affinity as people ask for it, `bound` past the
    scheduler."""
    entry = {"name": "gpu"}
    if claim or template:
        key = "resourceClaimName" if claim else "resourceClaimTemplateName"
        spec["resourceClaims"] = [{**entry, key: claim or template}]
    if node:
        spec["nodeSelector"] = {"kubernetes.io/hostname": node}
    if bound:
        spec["nodeName"] = bound
    resources: Obj = {"limits": limits or {}}
    if claim or template:
        resources["claims"] = [entry]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": {
            "containers": [{"name": "main", "image": "app:1", "resources": resources}],
            **spec,
        },
    }


# What a simulated kubelet does by its release is held to real ones of both in `situations`; here
# the second release would repeat the first.
FLEET_RELEASES = [
    pytest.param(NEWEST, marks=pytest.mark.cluster, id=NEWEST),
    pytest.param(OLDER, marks=[pytest.mark.cluster136, pytest.mark.long], id=OLDER),
]


@pytest.fixture(scope="package", params=FLEET_RELEASES)
def fleet(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Fleet]:
    """The machines of `fleet.yaml`, all drivers and plugins at work."""
    release = built(request.param)
    folder = tmp_path_factory.mktemp(f"fleet-{release}")
    plane = ControlPlane(folder, release, tuning=Tuning(node_grace=NODE_GRACE, audit=False))
    with plane:
        made = Fleet(FLEET_FILE, plane)
        made.start()
        yield made
        made.stop()


@pytest.fixture
def ground(fleet: Fleet) -> Iterator[Ground]:
    """A fleet with everything well, and an empty namespace; emptied again afterwards."""
    name = f"test-{next(_number)}"
    found = Ground(fleet, name)
    found.admin.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    account = lambda: found.get("ServiceAccount", "default")  # noqa: E731
    found.wait("the namespace's account", account)
    found.wait("gpu-1's slices", lambda: len(found.devices("gpu-1")) == 4)
    found.wait("gpu-2's slices", lambda: len(found.devices("gpu-2")) == 4)
    yield found
    found.empty()
