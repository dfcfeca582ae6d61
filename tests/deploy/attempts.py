"""Ways round the portal: who tries what, and the code that must stop them."""

from __future__ import annotations

from devices.cluster.gateway import Ref
from tests.deploy.acts import (
    ADMIN_ACCESS,
    GPU,
    H100,
    ISOLATED,
    OWN_SLICE,
    OWNER,
    QUIESCING,
    SLOW,
    STOP,
    Attempt,
    alternatives_of,
    annotation,
    as_driver,
    bind,
    change,
    change_here,
    delete_all,
    labels,
    make,
    make_wide,
    mine,
    tolerant,
)
from tests.deploy.ground import DRIVER, OTHER_DRIVER
from tests.deploy.objects import IMPLICIT, claim, pod, request, resource_slice, template

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
        "deleting all quotas at once",
        delete_all("/api/v1/namespaces/{namespace}/resourcequotas"),
        "OWN_OBJECTS",
    ),
    Attempt(
        "raising what the quota counts against, by its status",
        change_here("ResourceQuota", "berth", {"status": {"hard": {"pods": "9"}}}, sub="status"),
        "OWN_OBJECTS",
    ),
    Attempt(
        "saying by its status that nothing is used",
        change_here("ResourceQuota", "berth", {"status": {"used": None}}, sub="status"),
        "OWN_OBJECTS",
    ),
    Attempt(
        "emptying the list of guarded names",
        lambda ground: ground.careless.merge(
            Ref("ConfigMap", "berth-policy", "berth-system"), {"data": None}, dry_run=True
        ),
        "OWN_OBJECTS",
    ),
    Attempt(
        "deleting it among all ConfigMaps",
        delete_all("/api/v1/namespaces/berth-system/configmaps"),
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
        "a Pod that tolerates the taint of nodes that keep failing",
        make(pod("p", tolerations=[ISOLATED])),
        "QUIESCING_TOLERATED",
    ),
    Attempt(
        "one Pod more on a full claim",
        make(pod("p", claims={"c": "crowded"})),
        "CLAIM_FULL",
    ),
)

DEVICE_ATTEMPTS = tuple(
    Attempt(f"a toleration of devices that keep failing: {words}", make(obj), "ISOLATION_TOLERATED")
    for words, obj in (
        ("in a claim", claim("c", tolerant(ISOLATED))),
        (
            "of one isolation by its value",
            claim("c", tolerant({**ISOLATED, "operator": "Equal", "value": "k3x9"})),
        ),
        ("of every taint", claim("c", tolerant({"operator": "Exists"}))),
        ("in the second request", claim("c", request(GPU), {**tolerant(ISOLATED), "name": "r2"})),
        ("in an alternative", claim("c", alternatives_of(ISOLATED))),
        ("in a template", template("t", tolerant(ISOLATED))),
        ("in an alternative of a template", template("t", alternatives_of(ISOLATED))),
        (
            "in the older form of the API",
            {**claim("c", tolerant(ISOLATED)), "apiVersion": "resource.k8s.io/v1beta2"},
        ),
        (
            "in a claim that says a template made it",
            claim("c", tolerant(ISOLATED), ownerReferences=[OWNER]),
        ),
    )
)

ATTEMPTS = (
    *CLASS_ATTEMPTS,
    *FROZEN_ATTEMPTS,
    *ADMIN_ATTEMPTS,
    *NAME_ATTEMPTS,
    *SLICE_ATTEMPTS,
    *POD_ATTEMPTS,
    *DEVICE_ATTEMPTS,
)
