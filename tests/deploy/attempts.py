"""Ways round the portal: who tries what, and the code that must stop them. All are dry runs.

Admission judges a dry run as it judges the real thing, and nothing is left to clean up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from devices.cluster.gateway import Forbidden, Gateway, Ref, Rejected
from devices.cluster.live import Transport
from tests.deploy.ground import DRIVER, OTHER_DRIVER, Ground
from tests.deploy.objects import IMPLICIT, claim, pod, request, resource_slice, template

Obj = dict[str, Any]
Act = Callable[[Ground], object]
ADMIN_ACCESS = "resource.kubernetes.io/admin-access"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way round, in words; `code` is what the denial says, empty for what must pass."""

    words: str
    act: Act
    code: str = ""

    def __str__(self) -> str:
        return self.words


def denied(ground: Ground, attempt: Attempt) -> str:
    """What the API server says against it; empty where it would let it pass.

    Raises `Forbidden` where it was the caller's rights that were missing: then nothing was judged.
    """
    try:
        attempt.act(ground)
    except Forbidden:
        raise
    except Rejected as error:
        return error.message
    return ""


def make(obj: Obj, *, who: str = "tenant", where: str = "namespace") -> Act:
    """Creates an object as somebody, in the tenant's namespace or another."""

    def act(ground: Ground) -> object:
        placed = {**obj, "metadata": {**obj["metadata"], "namespace": getattr(ground, where)}}
        return _gateway(ground, who).create(placed, dry_run=True)

    return act


def make_wide(obj: Obj, *, who: str = "careless") -> Act:
    """Creates an object that lies in no namespace."""
    return lambda ground: _gateway(ground, who).create(obj, dry_run=True)


def change(kind: str, name: str, patch: Obj, *, who: str = "careless", sub: str = "") -> Act:
    """Merges a patch into an object of the whole cluster; {namespace} in its name is filled in."""
    return lambda ground: _gateway(ground, who).merge(
        Ref(kind, name.format(namespace=ground.namespace)), patch, subresource=sub, dry_run=True
    )


def change_here(kind: str, name: str, patch: Obj, *, who: str = "careless", sub: str = "") -> Act:
    """Merges a patch into an object of the tenant's namespace."""
    return lambda ground: _gateway(ground, who).merge(
        Ref(kind, name, ground.namespace), patch, subresource=sub, dry_run=True
    )


def bind(place: str) -> Act:
    """Binds a Pod to a node past the scheduler; `place` is the end of the address."""
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "waits"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "bypass-n1"},
    }

    def act(ground: Ground) -> object:
        path = f"/api/v1/namespaces/{ground.namespace}/{place}"
        transport = Transport(str(ground.plane.kubeconfig("tess", ["tide", "binder"])))
        return transport.send("POST", path, query={"dryRun": "All"}, body=body, doing="bind")

    return act


def as_driver(account: str, node: str, obj: Obj) -> Act:
    return lambda ground: ground.driver(account, node).create(obj, dry_run=True)


def _gateway(ground: Ground, who: str) -> Gateway:
    gateway: Gateway = getattr(ground, who)
    return gateway


def labels(**values: str | None) -> Obj:
    return {"metadata": {"labels": {f"berth.dev/{key}": value for key, value in values.items()}}}


def annotation(key: str, value: str | None) -> Obj:
    return {"metadata": {"annotations": {f"berth.dev/{key}": value}}}


def mine() -> Obj:
    """The label of a request, which tenants may not put on their own objects."""
    return {"labels": {"berth.dev/claim": "k3x9p2mw"}}


GPU, H100, SLOW, STOP = "bypass-gpu", "bypass-h100", "bypass-slow", "bypass-stop"
QUIESCING = {"key": "berth.dev/quiescing", "operator": "Exists", "effect": "NoSchedule"}
OWN_SLICE = resource_slice("new", driver=DRIVER, node="bypass-n1")

CLASS_ATTEMPTS = (
    Attempt("a claim of another class", make(claim("c", request(H100))), "CLASS_NOT_ALLOWED"),
    Attempt(
        "a claim whose second request is of another class",
        make(claim("c", request(GPU), {**request(H100), "name": "r2"})),
        "CLASS_NOT_ALLOWED",
    ),
    Attempt("a template of another class", make(template("t", request(H100))), "CLASS_NOT_ALLOWED"),
    Attempt(
        "another class as an alternative",
        make(claim("c", request(GPU, H100))),
        "CLASS_NOT_ALLOWED",
    ),
    Attempt(
        "another class as an alternative in a template",
        make(template("t", request(GPU, H100))),
        "CLASS_NOT_ALLOWED",
    ),
    Attempt(
        "a claim in the older form of the API",
        make(
            {
                "apiVersion": "resource.k8s.io/v1beta2",
                "kind": "ResourceClaim",
                "metadata": {"name": "c"},
                "spec": {"devices": {"requests": [request(H100)]}},
            }
        ),
        "CLASS_NOT_ALLOWED",
    ),
    Attempt(
        "a claim that says it is the scheduler's own",
        make(
            claim(
                "c",
                request(H100),
                annotations={"resource.kubernetes.io/extended-resource-claim": "true"},
            )
        ),
        "CLASS_NOT_ALLOWED",
    ),
    Attempt(
        "a Pod with the implicit name of another class",
        make(pod("p", limits={f"{IMPLICIT}{H100}": "1"})),
        "CLASS_NOT_ALLOWED",
    ),
    Attempt(
        "a Pod with the explicit name of another class",
        make(pod("p", limits={"bypass.example/h100": "1"})),
        "CLASS_NOT_ALLOWED",
    ),
    Attempt(
        "the same in an init container",
        make(pod("p", init_limits={"bypass.example/h100": "1"})),
        "CLASS_NOT_ALLOWED",
    ),
    Attempt(
        "the implicit name in an init container",
        make(pod("p", init_limits={f"{IMPLICIT}{H100}": "1"})),
        "CLASS_NOT_ALLOWED",
    ),
)

FROZEN_ATTEMPTS = (
    Attempt("a claim of a frozen class", make(claim("c", request(SLOW))), "FROZEN"),
    Attempt("a template of a frozen class", make(template("t", request(SLOW))), "FROZEN"),
    Attempt("a frozen class as an alternative", make(claim("c", request(GPU, SLOW))), "FROZEN"),
    Attempt("a claim of a strictly frozen class", make(claim("c", request(STOP))), "FROZEN"),
    Attempt(
        "a bare Pod with the explicit name of a frozen class",
        make(pod("p", limits={"bypass.example/slow": "1"})),
        "FROZEN",
    ),
    Attempt(
        "a bare Pod with the implicit name of a frozen class",
        make(pod("p", limits={f"{IMPLICIT}{SLOW}": "1"})),
        "FROZEN",
    ),
    Attempt(
        "a bare Pod that says a controller owns it",
        make(
            pod(
                "p",
                limits={"bypass.example/slow": "1"},
                metadata={
                    "ownerReferences": [
                        {
                            "apiVersion": "apps/v1",
                            "kind": "ReplicaSet",
                            "name": "r",
                            "uid": "00000000-0000-4000-8000-000000000000",
                            "controller": True,
                        }
                    ]
                },
            )
        ),
        "FROZEN",
    ),
)

ADMIN_ATTEMPTS = (
    Attempt(
        "the label for administrative access on the own namespace",
        change("Namespace", "{namespace}", {"metadata": {"labels": {ADMIN_ACCESS: "true"}}}),
        "ADMIN_ACCESS",
    ),
    Attempt(
        "the same by the namespace's status",
        change(
            "Namespace",
            "{namespace}",
            {"metadata": {"labels": {ADMIN_ACCESS: "true"}}},
            sub="status",
        ),
        "ADMIN_ACCESS",
    ),
    Attempt(
        "a new namespace with that label",
        make_wide(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": "watchers", "labels": {ADMIN_ACCESS: "true"}},
            }
        ),
        "ADMIN_ACCESS",
    ),
)

NAME_ATTEMPTS = (
    Attempt(
        "taking the namespace out of the tenant",
        change("Namespace", "{namespace}", labels(tenant=None)),
        "OWN_NAMES",
    ),
    Attempt(
        "the same by the namespace's status",
        change("Namespace", "{namespace}", labels(tenant=None), sub="status"),
        "OWN_NAMES",
    ),
    Attempt(
        "allowing oneself every class",
        change("Namespace", "{namespace}", annotation("device-classes", "*")),
        "OWN_NAMES",
    ),
    Attempt(
        "lifting a freeze by hand",
        change("Namespace", "{namespace}", annotation("frozen", None)),
        "OWN_NAMES",
    ),
    Attempt(
        "a namespace that says it is another tenant's",
        make_wide(
            {
                "apiVersion": "v1",
                "kind": "Namespace",
                "metadata": {"name": "mine", "labels": {"berth.dev/tenant": "reef"}},
            }
        ),
        "OWN_NAMES",
    ),
    Attempt(
        "moving a node to another path",
        change("Node", "bypass-n1", {"metadata": {"labels": {"berth.dev/path.p": "dra"}}}),
        "OWN_NAMES",
    ),
    Attempt(
        "the same by the node's status",
        change(
            "Node", "bypass-n1", {"metadata": {"labels": {"berth.dev/path.p": "dra"}}}, sub="status"
        ),
        "OWN_NAMES",
    ),
    Attempt(
        "the quiescing taint on a node",
        change(
            "Node",
            "bypass-n1",
            {"spec": {"taints": [{"key": "berth.dev/quiescing", "effect": "NoSchedule"}]}},
        ),
        "OWN_NAMES",
    ),
    Attempt(
        "a claim that says it is another request's",
        make(claim("c", request(GPU), **mine())),
        "OWN_NAMES",
    ),
    Attempt(
        "a template that says it is another request's",
        make(template("t", request(GPU), **mine())),
        "OWN_NAMES",
    ),
    Attempt(
        "a template whose claims say so",
        make(template("t", request(GPU), of_claims=mine())),
        "OWN_NAMES",
    ),
    Attempt(
        "the label put on a claim that is there",
        change_here("ResourceClaim", "roomy", labels(claim="k3x9p2mw"), who="tenant"),
        "OWN_NAMES",
    ),
    Attempt(
        "a quota of one's own that looks like Berth's",
        make(
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "q", "labels": {"berth.dev/managed": "true"}},
                "spec": {"hard": {}},
            },
            who="careless",
        ),
        "OWN_NAMES",
    ),
    Attempt(
        "a Pod with a role of Berth's",
        make(pod("p", metadata={"labels": {"berth.dev/role": "probe"}})),
        "OWN_NAMES",
    ),
    Attempt(
        "raising the quota",
        change_here("ResourceQuota", "berth", {"spec": {"hard": {"pods": "9"}}}),
        "OWN_OBJECTS",
    ),
    Attempt(
        "deleting the quota",
        lambda ground: ground.careless.delete(
            Ref("ResourceQuota", "berth", ground.namespace), dry_run=True
        ),
        "OWN_OBJECTS",
    ),
    Attempt(
        "emptying the list of guarded names",
        lambda ground: ground.careless.merge(
            Ref("ConfigMap", "berth-policy", "berth-system"), {"data": None}, dry_run=True
        ),
        "OWN_OBJECTS",
    ),
)

SLICE_ATTEMPTS = (
    Attempt(
        "a driver's token of one node for another node",
        as_driver("publisher", "bypass-n2", OWN_SLICE),
        "SLICE_OF_ANOTHER_NODE",
    ),
    Attempt(
        "a driver's token of no node",
        as_driver("publisher", "", OWN_SLICE),
        "SLICE_OF_ANOTHER_NODE",
    ),
    Attempt(
        "a node's driver that publishes for all nodes",
        as_driver("publisher", "bypass-n1", resource_slice("new", driver=DRIVER)),
        "SLICE_OF_ANOTHER_NODE",
    ),
    Attempt(
        "a driver that publishes another's devices",
        as_driver(
            "publisher", "bypass-n1", resource_slice("new", driver=OTHER_DRIVER, node="bypass-n1")
        ),
        "SLICE_OF_ANOTHER_DRIVER",
    ),
    Attempt(
        "an account that is no driver's",
        as_driver("nobody", "bypass-n1", OWN_SLICE),
        "SLICE_OF_ANOTHER_DRIVER",
    ),
    Attempt("a person", make_wide(OWN_SLICE), "SLICE_OF_ANOTHER_DRIVER"),
    Attempt(
        "deleting the slice of another node",
        lambda ground: ground.driver("publisher", "bypass-n2").delete(
            Ref("ResourceSlice", "bypass-n1-gpu"), dry_run=True
        ),
        "SLICE_OF_ANOTHER_NODE",
    ),
    Attempt(
        "changing the slice of another node",
        lambda ground: ground.driver("publisher", "bypass-n2").merge(
            Ref("ResourceSlice", "bypass-n1-gpu"), {"spec": {"devices": []}}, dry_run=True
        ),
        "SLICE_OF_ANOTHER_NODE",
    ),
)

POD_ATTEMPTS = (
    Attempt("a Pod that names its node", make(pod("p", nodeName="bypass-n1")), "NODE_CHOSEN"),
    Attempt("binding a Pod to a node", bind("pods/waits/binding"), "NODE_CHOSEN"),
    Attempt("the same by the older address", bind("bindings"), "NODE_CHOSEN"),
    Attempt(
        "a Pod that tolerates the quiescing taint",
        make(pod("p", tolerations=[QUIESCING])),
        "QUIESCING_TOLERATED",
    ),
    Attempt(
        "a Pod that tolerates everything",
        make(pod("p", tolerations=[{"operator": "Exists"}])),
        "QUIESCING_TOLERATED",
    ),
    Attempt(
        "a Pod that tolerates the taint of one wave",
        make(pod("p", tolerations=[{"key": "berth.dev/quiescing", "value": "w1"}])),
        "QUIESCING_TOLERATED",
    ),
    Attempt(
        "one Pod more on a full claim",
        make(pod("p", claims={"c": "crowded"})),
        "CLAIM_FULL",
    ),
)

ATTEMPTS = (
    *CLASS_ATTEMPTS,
    *FROZEN_ATTEMPTS,
    *ADMIN_ATTEMPTS,
    *NAME_ATTEMPTS,
    *SLICE_ATTEMPTS,
    *POD_ATTEMPTS,
)

NEIGHBOURS = (
    Attempt("a claim of an offered class", make(claim("c", request(GPU)))),
    Attempt("a template of an offered class", make(template("t", request(GPU)))),
    Attempt(
        "a Pod with an offered extended resource",
        make(pod("p", limits={"bypass.example/gpu": "1"})),
    ),
    Attempt(
        "a Pod with the implicit name of an offered class",
        make(pod("p", limits={f"{IMPLICIT}{GPU}": "1"})),
    ),
    Attempt("a Pod without any device", make(pod("p", limits={"cpu": "1"}))),
    Attempt(
        "a Pod with an extended resource that is no device",
        make(pod("p", limits={"example.com/licence": "1"})),
    ),
    Attempt(
        "a Pod that names a template of a frozen class", make(pod("p", templates={"c": "slow"}))
    ),
    Attempt("a Pod on a claim with room", make(pod("p", claims={"c": "roomy"}))),
    Attempt(
        "a Pod that tolerates other taints",
        make(
            pod(
                "p",
                tolerations=[
                    {"key": "gpu", "operator": "Exists"},
                    {"operator": "Exists", "effect": "NoExecute"},
                ],
            )
        ),
    ),
    Attempt(
        "a Pod with what Berth's snippets put on it",
        make(
            pod(
                "p",
                metadata={
                    "labels": {"berth.dev/claim": "k3x9p2mw", "berth.dev/retryable": "true"},
                    "annotations": {"berth.dev/expected-end": "2026-12-01T00:00:00Z"},
                },
            )
        ),
    ),
    Attempt(
        "any class in a namespace of nobody's",
        make(claim("c", request(H100)), where="other"),
    ),
    Attempt(
        "a node's name in a namespace of nobody's",
        make(pod("p", nodeName="bypass-n1"), where="other"),
    ),
    Attempt(
        "an administrator who names a node",
        make(pod("p", nodeName="bypass-n1"), who="admin"),
    ),
    Attempt(
        "labels of the platform's own on a node and a namespace",
        lambda ground: [
            ground.careless.merge(ref, {"metadata": {"labels": {"team": "tide"}}}, dry_run=True)
            for ref in (Ref("Node", "bypass-n1"), Ref("Namespace", ground.namespace))
        ],
    ),
    Attempt(
        "a quota of the platform's own",
        make(
            {
                "apiVersion": "v1",
                "kind": "ResourceQuota",
                "metadata": {"name": "q"},
                "spec": {"hard": {"pods": "9"}},
            },
            who="careless",
        ),
    ),
    Attempt(
        "deleting one's own claim",
        lambda ground: ground.tenant.delete(
            Ref("ResourceClaim", "roomy", ground.namespace), dry_run=True
        ),
    ),
    Attempt(
        "Berth's own claim of any class, with its labels",
        make(claim("c", request(H100), **mine()), who="worker"),
    ),
    Attempt(
        "Berth's own change of the namespace",
        change("Namespace", "{namespace}", annotation("device-classes", "*"), who="worker"),
    ),
    Attempt(
        "Berth's own change of the quota",
        change_here("ResourceQuota", "berth", {"spec": {"hard": {"pods": "9"}}}, who="worker"),
    ),
    Attempt(
        "an administrator's emergency",
        change("Namespace", "{namespace}", labels(tenant=None), who="break_glass"),
    ),
    Attempt(
        "administrative access given in an emergency",
        change(
            "Namespace",
            "{namespace}",
            {"metadata": {"labels": {ADMIN_ACCESS: "true"}}},
            who="break_glass",
        ),
    ),
    Attempt("a driver on its own node", as_driver("publisher", "bypass-n1", OWN_SLICE)),
    Attempt(
        "a driver with Kubernetes' own right to device status",
        as_driver("status-writer", "bypass-n1", OWN_SLICE),
    ),
    Attempt(
        "a central driver for all nodes",
        as_driver("central", "", resource_slice("new", driver=DRIVER)),
    ),
    Attempt("a central driver for one node", as_driver("central", "", OWN_SLICE)),
    Attempt(
        "a kubelet that removes a slice of its node",
        lambda ground: ground.kubelet("bypass-n1").delete(
            Ref("ResourceSlice", "bypass-n1-gpu"), dry_run=True
        ),
    ),
    Attempt(
        "a kubelet's heartbeat",
        lambda ground: ground.kubelet("bypass-n1").merge(
            Ref("Node", "bypass-n1"),
            {"status": {"daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}}}},
            subresource="status",
            dry_run=True,
        ),
    ),
)
