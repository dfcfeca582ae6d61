"""A tenant's namespace on a real control plane, Berth's policies on it, and who is who there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import yaml

from devices import cluster
from devices.cluster.gateway import ClusterError, Gateway, Ref
from devices.dra.names import Manager
from devices.dra.namespaces import (
    Frozen,
    NamespaceSpec,
    frozen_names,
    namespace_patch,
    policy_config,
    quota_object,
)
from playground.plane.controlplane import ControlPlane
from tests.deploy.objects import device_class, pod, request, resource_slice, template

Obj = dict[str, Any]
DEPLOY = Path(__file__).parents[2] / "deploy"
RBAC = "rbac.authorization.k8s.io"
SYSTEM = "berth-system"
DRIVERS = "bypass-drivers"
POLICY_KINDS = ("ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy")
#: Extended-resource names of the classes that have one.
EXPLICIT = {
    "bypass-gpu": "bypass.example/gpu",
    "bypass-h100": "bypass.example/h100",
    "bypass-slow": "bypass.example/slow",
    "bypass-stop": "bypass.example/stop",
    "bypass-via": "bypass.example/via",
}
DRIVER = "bypass-gpu.example.com"
OTHER_DRIVER = "bypass-nic.example.com"


def policies() -> list[Obj]:
    """Every object of `deploy/policies`."""
    return [
        obj
        for path in sorted((DEPLOY / "policies").glob("*.yaml"))
        for obj in yaml.safe_load_all(path.read_text())
        if obj
    ]


def rights() -> list[Obj]:
    """Every object of `deploy/rbac`, namespaces first."""
    found = [
        obj
        for path in sorted((DEPLOY / "rbac").glob("*.yaml"))
        for obj in yaml.safe_load_all(path.read_text())
        if obj
    ]
    return sorted(found, key=lambda obj: obj["kind"] != "Namespace")


def until(seen: Callable[[], Any], seconds: float = 45.0) -> Any:
    """What `seen` returns once it is true; fails after `seconds`."""
    end = time.monotonic() + seconds
    while not (found := seen()):
        assert time.monotonic() < end, "not seen in time"
        time.sleep(0.05)
    return found


class Ground:
    """One release's control plane, with a namespace of the tenant *tide*.

    It may have the classes gpu, slow, stop and via's extended resource; slow is frozen, stop
    strictly so, h100 is another tenant's. The claim `crowded` is full.
    """

    def __init__(self, plane: ControlPlane):
        self.plane = plane
        self.namespace = "bypass-tide"
        self.other = "bypass-nobodys"
        self.admin = cluster.connect(plane.admin_kubeconfig)
        self.nodes = {name: self.node(name) for name in ("bypass-n1", "bypass-n2")}

    # Who is who

    @property
    def tenant(self) -> Gateway:
        """A person with the role `edit` in the tenant's namespace and in nobody's."""
        return cluster.connect(self.plane.kubeconfig("tess", ["tide"]))

    @property
    def careless(self) -> Gateway:
        """The same person where a platform gave away more than it should: cluster-wide writes."""
        return cluster.connect(self.plane.kubeconfig("tess", ["tide", "careless"]))

    @property
    def worker(self) -> Gateway:
        """Berth's own worker."""
        return cluster.connect(self.plane.service_account_kubeconfig(SYSTEM, "berth-worker"))

    @property
    def break_glass(self) -> Gateway:
        """An administrator in an emergency."""
        groups = ["system:masters", "berth:break-glass"]
        return cluster.connect(self.plane.kubeconfig("glenn", groups))

    def driver(self, account: str, node: str = "") -> Gateway:
        """A driver's account, by a token that names a node where one is given."""
        bound = None
        if node:
            uid = self.nodes[node]["metadata"]["uid"]
            bound = {"kind": "Node", "name": node, "uid": uid}
        return cluster.connect(
            self.plane.service_account_kubeconfig(DRIVERS, account, bound_to=bound)
        )

    def kubelet(self, node: str) -> Gateway:
        return cluster.connect(self.plane.kubeconfig(f"system:node:{node}", ["system:nodes"]))

    # Set-up and the way back

    def prepare(self) -> None:
        """Namespaces, rights, classes and devices; no policy of Berth's yet."""
        for obj in rights():
            self.admin.apply(obj, manager="berth-playground", force=True)
        for obj in _READER:
            self.admin.apply(obj, manager="test")
        for name in (self.namespace, self.other, DRIVERS):
            namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            self.admin.apply(namespace, manager="test")
        for name in (self.namespace, self.other):
            self._bind("RoleBinding", "edit", "edit", group="tide", namespace=name)
        self._role("bypass-careless", _CARELESS)
        self._role("bypass-binder", _BINDER)
        self._bind(
            "RoleBinding", "binder", "bypass-binder", group="binder", namespace=self.namespace
        )
        self._bind("ClusterRoleBinding", "bypass-careless", "bypass-careless", group="careless")
        for account, verb in _PUBLISHERS.items():
            self._driver(account, verb)
        for name, extended in EXPLICIT.items():
            obj = device_class(name, driver=DRIVER, extended=extended)
            self.admin.apply({"apiVersion": "resource.k8s.io/v1", **obj}, manager="test")
        for name, node in self.nodes.items():
            self.admin.apply(
                resource_slice(f"{name}-gpu", driver=DRIVER, node=name, owner=node), manager="test"
            )
        until(lambda: self._served_by_rbac())

    def let(self, **changes: Any) -> None:
        """What Berth lets the tenant have, written with Berth's own rights."""
        allowed: dict[str, Any] = {
            "classes": ("bypass-gpu", "bypass-slow", "bypass-stop"),
            "extended_resources": (
                "bypass.example/gpu",
                "bypass.example/slow",
                "bypass.example/stop",
                "bypass.example/via",
            ),
            "full_claims": ("crowded",),
            "explicit": tuple(sorted(EXPLICIT.items())),
            "devices": (("bypass-gpu", 50),),
            **changes,
        }
        spec = NamespaceSpec(name=self.namespace, tenant="tide", **allowed)
        worker = self.worker
        worker.apply(policy_config(EXPLICIT), manager=Manager.TENANT, force=True)
        worker.apply(namespace_patch(spec), manager=Manager.TENANT, force=True)
        worker.apply(quota_object(spec), manager=Manager.TENANT, force=True)

    def fill(self) -> None:
        """What the tenant had before anything was frozen."""
        for name in ("slow", "stop"):
            obj = template(name, request(f"bypass-{name}"))
            self._put(obj)
        for name in ("crowded", "roomy"):
            self._put(claim_of_gpu(name))
        self._put(pod("waits", nodeSelector={"example.com/no-such": "node"}))

    def freeze(self) -> None:
        """From now on slow takes no new work, and stop nothing at all."""
        freezes = (Frozen("bypass-slow"), Frozen("bypass-stop", strict=True))
        self.let(frozen=frozen_names(freezes, EXPLICIT))

    def install(self) -> None:
        for obj in policies():
            self.admin.apply(obj, manager="berth-playground", force=True)

    def uninstall(self) -> None:
        for kind in POLICY_KINDS:
            for obj in policies():
                if obj["kind"] == kind:
                    self.admin.delete(Ref(kind, obj["metadata"]["name"]))

    def tear_down(self) -> None:
        """Takes everything away, and waits until the namespaces can be made anew."""
        self.uninstall()
        namespaces = [Ref("Namespace", one) for one in (self.namespace, self.other, DRIVERS)]
        for ref in namespaces:
            self.admin.delete(ref)
        for name in self.nodes:
            self.admin.delete(Ref("Node", name))
            self.admin.delete(Ref("ResourceSlice", f"{name}-gpu"))
        for name in EXPLICIT:
            self.admin.delete(Ref("DeviceClass", name))
        until(lambda: not any(map(self.admin.get, namespaces)), seconds=90.0)

    # Inside

    def _put(self, obj: Obj) -> None:
        obj["metadata"]["namespace"] = self.namespace
        self.admin.apply(obj, manager="test")

    def node(self, name: str) -> Obj:
        """A node that is ready now; without a kubelet it is so for 40 seconds."""
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}}
        made = self.admin.apply(node, manager="test")
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        amounts = {"cpu": "64", "memory": "256Gi", "pods": "100"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [ready]}
        self.admin.merge(Ref("Node", name), {"status": status}, subresource="status")
        return made

    def _role(self, name: str, rules: list[Obj]) -> None:
        self.admin.apply(
            {
                "apiVersion": f"{RBAC}/v1",
                "kind": "ClusterRole",
                "metadata": {"name": name},
                "rules": rules,
            },
            manager="test",
        )

    def _bind(
        self, kind: str, name: str, role: str, *, group: str = "", namespace: str = "", sa: str = ""
    ) -> None:
        subject = (
            {"kind": "Group", "apiGroup": RBAC, "name": group}
            if group
            else {"kind": "ServiceAccount", "name": sa, "namespace": DRIVERS}
        )
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        self.admin.apply(
            {
                "apiVersion": f"{RBAC}/v1",
                "kind": kind,
                "metadata": metadata,
                "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
                "subjects": [subject],
            },
            manager="test",
        )

    def _driver(self, account: str, publishes: Obj) -> None:
        self.admin.apply(
            {
                "apiVersion": "v1",
                "kind": "ServiceAccount",
                "metadata": {"name": account, "namespace": DRIVERS},
            },
            manager="test",
        )
        slices = {
            "apiGroups": ["resource.k8s.io"],
            "resources": ["resourceslices"],
            "verbs": ["get", "list", "create", "update", "patch", "delete"],
        }
        self._role(f"bypass-{account}", [slices, *([publishes] if publishes else [])])
        self._bind("ClusterRoleBinding", f"bypass-{account}", f"bypass-{account}", sa=account)

    def _served_by_rbac(self) -> bool:
        """The authorizer learns of new roles within a moment."""
        try:
            self.tenant.list("Pod", namespace=self.namespace)
            self.careless.list("Node")
            self.driver("publisher").list("ResourceSlice")
            self.worker.get(Ref("ResourceQuota", "berth", self.namespace))
        except ClusterError:
            return False
        return True


def claim_of_gpu(name: str) -> Obj:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name},
        "spec": {"devices": {"requests": [request("bypass-gpu")]}},
    }


_CARELESS = [
    {
        "apiGroups": ["", "resource.k8s.io"],
        "resources": [
            "namespaces",
            "namespaces/status",
            "namespaces/finalize",
            "nodes",
            "nodes/status",
            "resourcequotas",
            "resourcequotas/status",
            "configmaps",
            "resourceslices",
            "devicetaintrules",
        ],
        "verbs": ["*"],
    }
]


_BINDER = [
    {"apiGroups": [""], "resources": ["pods/binding", "bindings"], "verbs": ["create"]},
]


#: An API server that no binding names a ConfigMap to for a second never reads one again, and judges
#: by what it read last (kubernetes#130887). This pair denies nothing, and outlives the ground.
_READER: tuple[Obj, ...] = (
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "bypass-reads-on"},
        "spec": {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["configmaps"],
                        "resourceNames": ["bypass-reads-on"],
                    }
                ]
            },
            "validations": [{"expression": "true"}],
        },
    },
    {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "bypass-reads-on"},
        "spec": {
            "policyName": "bypass-reads-on",
            "paramRef": {
                "name": "bypass-reads-on",
                "namespace": "default",
                "parameterNotFoundAction": "Allow",
            },
            "validationActions": ["Deny"],
        },
    },
)


def _publisher(group: str, resource: str, verb: str) -> Obj:
    return {
        "apiGroups": [group],
        "resources": [resource],
        "verbs": [verb],
        "resourceNames": [DRIVER],
    }


#: Accounts of drivers and what lets them publish; the last has nothing.
_PUBLISHERS: dict[str, Obj] = {
    "publisher": _publisher("berth.dev", "drivers", "publish"),
    "status-writer": _publisher(
        "resource.k8s.io", "resourceclaims/driver", "associated-node:update"
    ),
    "central": _publisher("berth.dev", "drivers", "publish-anywhere"),
    "nobody": {},
}


def grounds(plane: ControlPlane) -> Iterator[Ground]:
    """A ground, ready for attempts, and the control plane as it was afterwards."""
    ground = Ground(plane)
    try:
        ground.prepare()
        ground.let()
        ground.fill()
        ground.freeze()
        ground.install()
        yield ground
    finally:
        ground.tear_down()
