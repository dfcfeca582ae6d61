"""What stands beside each way round, and is right: it must pass."""

from __future__ import annotations

from devices.cluster.gateway import Ref
from tests.deploy.acts import (
    ADMIN_ACCESS,
    GPU,
    H100,
    ISOLATED,
    OWN_SLICE,
    Attempt,
    annotation,
    as_driver,
    change,
    change_here,
    labels,
    make,
    mine,
    tolerant,
)
from tests.deploy.ground import DRIVER
from tests.deploy.objects import IMPLICIT, claim, pod, request, resource_slice, template

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
        "a claim that tolerates other taints of devices",
        make(
            claim(
                "c",
                tolerant(
                    {"key": "gpu.example.com/unhealthy", "operator": "Exists"},
                    {"operator": "Exists", "effect": "NoExecute"},
                ),
            )
        ),
    ),
    Attempt(
        "a toleration of isolated devices in a namespace of nobody's",
        make(claim("c", tolerant(ISOLATED)), where="other"),
    ),
    Attempt(
        "Berth's own claim with a toleration that was reviewed",
        make(claim("c", tolerant({"operator": "Exists"})), who="worker"),
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
