"""Objects for one test on a shared control plane: names of its own, removed afterwards."""

from __future__ import annotations

import itertools
import time
import uuid
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from playground.plane.controlplane import ControlPlane
from playground.plane.https import Answer

Obj = dict[str, Any]
T = TypeVar("T")

RESOURCE = "/apis/resource.k8s.io/v1"
ADMISSION = "/apis/admissionregistration.k8s.io/v1"
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "DeviceClass": f"{RESOURCE}/deviceclasses",
    "ResourceSlice": f"{RESOURCE}/resourceslices",
    "ResourcePoolStatusRequest": "/apis/resource.k8s.io/v1alpha3/resourcepoolstatusrequests",
    "ValidatingAdmissionPolicy": f"{ADMISSION}/validatingadmissionpolicies",
    "ValidatingAdmissionPolicyBinding": f"{ADMISSION}/validatingadmissionpolicybindings",
}
IN_NAMESPACE = {
    "Pod": ("/api/v1", "pods"),
    "Event": ("/api/v1", "events"),
    "ResourceQuota": ("/api/v1", "resourcequotas"),
    "ResourceClaim": (RESOURCE, "resourceclaims"),
    "ResourceClaimTemplate": (RESOURCE, "resourceclaimtemplates"),
}


class World:
    """A namespace, and classes, nodes and slices whose names nobody else uses."""

    def __init__(self, plane: ControlPlane, release: str):
        self.plane = plane
        self.release = release
        self.tag = uuid.uuid4().hex[:8]
        self.namespace = f"w-{self.tag}"
        self.driver = f"gpu-{self.tag}.example.com"
        self.device_class = self.driver
        self._made: list[str] = []
        self._numbers = itertools.count()
        self.create("Namespace", {"metadata": {"name": self.namespace}})
        account = f"/api/v1/namespaces/{self.namespace}/serviceaccounts/default"
        self.until(lambda: plane.ask(account).status == 200)

    @property
    def is_136(self) -> bool:
        return self.release.startswith("1.36")

    def path(self, kind: str, name: str = "") -> str:
        if kind == "DeviceTaintRule":
            version = "v1beta2" if self.is_136 else "v1"
            base = f"/apis/resource.k8s.io/{version}/devicetaintrules"
        elif kind in PATHS:
            base = PATHS[kind]
        else:
            prefix, plural = IN_NAMESPACE[kind]
            base = f"{prefix}/namespaces/{self.namespace}/{plural}"
        return f"{base}/{name}" if name else base

    def send(self, kind: str, obj: Obj) -> Answer:
        """Creates, whatever the answer."""
        path = self.path(kind)
        version = path.split("/namespaces/")[0] if kind in IN_NAMESPACE else path.rpartition("/")[0]
        body = {"apiVersion": version.removeprefix("/apis/").removeprefix("/api/"), "kind": kind}
        answer = self.plane.ask(path, method="POST", body=body | obj)
        if answer.status == 201 and kind not in IN_NAMESPACE:
            self._made.append(self.path(kind, answer.json()["metadata"]["name"]))
        return answer

    def create(self, kind: str, obj: Obj) -> Obj:
        answer = self.send(kind, obj)
        assert answer.status == 201, answer.body.decode()
        return answer.json()

    def get(self, kind: str, name: str) -> Obj:
        """The object, {} where there is none."""
        answer = self.plane.ask(self.path(kind, name))
        return answer.json() if answer.status == 200 else {}

    def items(self, kind: str) -> list[Obj]:
        return list(self.plane.ask(self.path(kind)).json()["items"])

    def set_status(self, kind: str, name: str, status: Obj) -> None:
        answer = self.plane.ask(
            self.path(kind, name) + "/status",
            method="PATCH",
            body={"status": status},
            content_type="application/merge-patch+json",
        )
        assert answer.status == 200, answer.body.decode()

    def delete(self, kind: str, name: str, grace: int | None = None) -> None:
        options = "" if grace is None else f"?gracePeriodSeconds={grace}"
        self.plane.ask(self.path(kind, name) + options, method="DELETE")

    def until(self, look: Callable[[], T], seconds: float = 20) -> T:
        """What `look` returns as soon as it is true; fails with the last answer."""
        end = time.monotonic() + seconds
        while not (found := look()):
            assert time.monotonic() < end, f"not within {seconds:.0f} s: {found!r}"
            time.sleep(0.1)
        return found

    # What tests are made of

    def node(self, resources: Mapping[str, str] | None = None, **status: Any) -> str:
        """A Ready Node without a kubelet: it stays Ready for 40 seconds."""
        name = f"n{next(self._numbers)}-{self.tag}"
        labels = {"kubernetes.io/hostname": name, "world": self.tag}
        self.create("Node", {"metadata": {"name": name, "labels": labels}})
        amounts = {"cpu": "16", "memory": "64Gi", "pods": "110", **(resources or {})}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
        ready["lastHeartbeatTime"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.set_status(
            "Node",
            name,
            {"capacity": amounts, "allocatable": amounts, "conditions": [ready], **status},
        )
        self.until(lambda: not self.get("Node", name)["spec"].get("taints"))
        return name

    def offer(self, node: str, devices: int = 1, **more: Any) -> Answer:
        """A slice with devices dev-0, dev-1, … on the node; `more` are fields of each device."""
        return self.send(
            "ResourceSlice",
            {
                "metadata": {"name": f"{node}-slice"},
                "spec": {
                    "driver": self.driver,
                    "nodeName": node,
                    "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
                    "devices": [{"name": f"dev-{number}", **more} for number in range(devices)],
                },
            },
        )

    def a_class(self, **spec: Any) -> Obj:
        selector = {"cel": {"expression": f'device.driver == "{self.driver}"'}}
        return self.create(
            "DeviceClass",
            {"metadata": {"name": self.device_class}, "spec": {"selectors": [selector], **spec}},
        )

    def claim_spec(self, count: int = 1) -> Obj:
        exactly = {"deviceClassName": self.device_class, "count": count}
        return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}

    def pod(self, name: str, *, claims: list[Obj] | None = None, limits: Obj | None = None) -> Obj:
        """A Pod that waits for nothing but its devices; only this world's nodes may take it."""
        resources: Obj = {"limits": limits or {}}
        if claims:
            resources["claims"] = [{"name": claim["name"]} for claim in claims]
        return self.create(
            "Pod",
            {
                "metadata": {"name": name},
                "spec": {
                    "nodeSelector": {"world": self.tag},
                    "containers": [
                        {"name": "main", "image": "example.com/none", "resources": resources}
                    ],
                    "resourceClaims": claims or [],
                },
            },
        )

    def bound(self, name: str) -> str:
        """The Pod's node, once it has one."""
        return self.until(lambda: self.get("Pod", name)["spec"].get("nodeName", ""))

    def unschedulable(self, name: str) -> str:
        """The scheduler's message, once it has judged the Pod."""

        def message() -> str:
            conditions = self.get("Pod", name).get("status", {}).get("conditions", [])
            return next((c.get("message", "") for c in conditions if c["status"] == "False"), "")

        return self.until(message)

    def remove(self) -> None:
        for pod in self.items("Pod"):
            self.delete("Pod", pod["metadata"]["name"], grace=0)
        for path in reversed(self._made):
            self.plane.ask(path, method="DELETE")
