"""Whoever goes round the portal meets the same limits: each way round, on both real API servers.

`test_without_policies.py` makes the same attempts again: a suite that could not fail would prove
nothing.
"""

from __future__ import annotations

from functools import partial

import pytest

from devices.cluster.gateway import Ref
from tests.deploy.acts import ADMIN_ACCESS, Attempt, denied, make
from tests.deploy.attempts import ATTEMPTS
from tests.deploy.ground import DRIVER, Ground, policies, until
from tests.deploy.neighbours import NEIGHBOURS
from tests.deploy.objects import (
    IMPLICIT,
    claim,
    daemonset,
    deployment,
    pod,
    request,
    resource_slice,
    template,
)


@pytest.mark.parametrize("attempt", ATTEMPTS, ids=str)
def test_a_way_round_is_closed(ground: Ground, attempt: Attempt) -> None:
    said = denied(ground, attempt)
    assert f"Berth {attempt.code}:" in said
    assert "denied request" in said


@pytest.mark.parametrize("neighbour", NEIGHBOURS, ids=str)
def test_what_is_right_passes(ground: Ground, neighbour: Attempt) -> None:
    neighbour.act(ground)


def test_policies_are_well_typed(ground: Ground) -> None:
    """The controller-manager checks them against the schemas of what they match."""
    for obj in policies():
        if obj["kind"] != "ValidatingAdmissionPolicy":
            continue
        name = obj["metadata"]["name"]
        seen = until(partial(checked, ground, name))
        assert not seen["typeChecking"].get("expressionWarnings"), name


def checked(ground: Ground, name: str) -> dict[str, object]:
    found = ground.admin.get(Ref("ValidatingAdmissionPolicy", name)) or {}
    status = found.get("status") or {}
    current = status.get("observedGeneration") == found["metadata"]["generation"]
    return status if current and "typeChecking" in status else {}


# What the parts of Kubernetes write for real, with the policies in effect.


def closed(ground: Ground, attempt: Attempt) -> bool:
    return f"Berth {attempt.code}:" in denied(ground, attempt)


def make_real(ground: Ground, obj: dict[str, object]) -> None:
    placed = {**obj, "metadata": {**obj["metadata"], "namespace": ground.namespace}}  # type: ignore[dict-item]
    ground.tenant.create(placed)


def pod_events(ground: Ground, name: str) -> str:
    fields = f"involvedObject.name={name}"
    events = ground.admin.list("Event", namespace=ground.namespace, fields=fields).items
    return " ".join(event["message"] for event in events)


def owned_pods(ground: Ground, app: str) -> list[str]:
    pods = ground.admin.list("Pod", namespace=ground.namespace, labels=f"app={app}").items
    return [one["metadata"]["name"] for one in pods]


def test_a_replacement_gets_its_claim_from_a_template_of_a_frozen_class(ground: Ground) -> None:
    make_real(ground, pod("replaced", templates={"c": "slow"}))
    made = until(lambda: ground.admin.list("ResourceClaim", namespace=ground.namespace).items)
    assert until(lambda: [one for one in claims(ground) if one.startswith("replaced-c-")]), made


def test_a_strict_freeze_stops_replacements_and_the_pod_says_so(ground: Ground) -> None:
    make_real(ground, pod("stopped", templates={"c": "stop"}))
    assert until(lambda: "Berth FROZEN: device class bypass-stop" in pod_events(ground, "stopped"))
    assert not [one for one in claims(ground) if one.startswith("stopped-c-")]


def claims(ground: Ground) -> list[str]:
    found = ground.admin.list("ResourceClaim", namespace=ground.namespace).items
    return [one["metadata"]["name"] for one in found]


def test_a_workloads_pods_with_a_frozen_resource_pass_unless_the_freeze_is_strict(
    ground: Ground,
) -> None:
    make_real(ground, deployment("goes-on", limits={"bypass.example/slow": "1"}))
    make_real(ground, deployment("stops", limits={"bypass.example/stop": "1"}))
    assert until(lambda: owned_pods(ground, "goes-on"))
    sets = until(lambda: replica_sets(ground, "stops"))
    assert until(lambda: "Berth FROZEN: bypass.example/stop" in pod_events(ground, sets[0]))
    assert not owned_pods(ground, "stops")


def replica_sets(ground: Ground, app: str) -> list[str]:
    path = f"/apis/apps/v1/namespaces/{ground.namespace}/replicasets?labelSelector=app%3D{app}"
    answer = ground.plane.ask(path)
    return [one["metadata"]["name"] for one in answer.json()["items"]]


def test_the_schedulers_own_claim_is_judged_at_the_pod(ground: Ground) -> None:
    """Its class is not in the list, the Pod's resource is: what counts is what the Pod asks for."""
    fresh = ground.node("bypass-fresh")
    gpus = resource_slice("bypass-fresh-gpu", driver=DRIVER, node="bypass-fresh", owner=fresh)
    ground.admin.create(gpus)
    make_real(ground, pod("via", limits={"bypass.example/via": "1"}))
    made = until(
        lambda: [one for one in claims(ground) if one.startswith("via-extended-resources")]
    )
    assert len(made) == 1
    ground.admin.delete(Ref("Node", "bypass-fresh"))


def test_claims_of_a_template_that_berth_made_may_tolerate_what_it_says(ground: Ground) -> None:
    tolerant = template("tolerant", request("bypass-gpu", tolerations=[{"operator": "Exists"}]))
    tolerant["metadata"]["namespace"] = ground.namespace
    ground.worker.create(tolerant)
    make_real(ground, pod("tolerant", templates={"c": "tolerant"}))
    assert until(lambda: [one for one in claims(ground) if one.startswith("tolerant-c-")])


def test_a_daemonset_chooses_no_node_either(ground: Ground) -> None:
    """Its controller may bind Pods, and copies the node's name from the tenant's template."""
    ground.node("bypass-daemons")
    make_real(ground, daemonset("chosen", nodeName="bypass-daemons"))
    assert until(lambda: "Berth NODE_CHOSEN" in pod_events(ground, "chosen"))
    assert not owned_pods(ground, "chosen")
    make_real(ground, daemonset("everywhere"))
    assert until(lambda: owned_pods(ground, "everywhere"))
    ground.admin.delete(Ref("Node", "bypass-daemons"))


def test_slices_go_with_their_node(ground: Ground) -> None:
    node = ground.admin.apply(
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bypass-leaving"}}, manager="test"
    )
    made = resource_slice("bypass-leaving-gpu", driver=DRIVER, node="bypass-leaving", owner=node)
    ground.admin.create(made)
    ground.admin.delete(Ref("Node", "bypass-leaving"))
    assert until(lambda: ground.admin.get(Ref("ResourceSlice", "bypass-leaving-gpu")) is None)


def test_no_tenant_has_administrative_access_even_with_the_namespaces_label(ground: Ground) -> None:
    place = Ref("Namespace", ground.namespace)
    ground.break_glass.merge(place, {"metadata": {"labels": {ADMIN_ACCESS: "true"}}})
    try:
        watching = request("bypass-gpu", adminAccess=True)
        for obj in (claim("watch", watching), template("watch", watching)):
            attempt = Attempt("watching others' devices", make(obj), "ADMIN_ACCESS")
            until(partial(closed, ground, attempt))
    finally:
        ground.admin.merge(place, {"metadata": {"labels": {ADMIN_ACCESS: None}}})


def test_kubernetes_own_quota_holds_what_the_policies_let_pass(ground: Ground) -> None:
    """The limit of 50 devices is counted by claims and by extended resources alike."""
    for obj in (
        claim("many", request("bypass-gpu", allocationMode="ExactCount", count=51)),
        pod("many", limits={"bypass.example/gpu": "51"}),
        pod("many", limits={f"{IMPLICIT}bypass-gpu": "51"}),
    ):
        attempt = Attempt("more than the limit", make(obj))
        assert "exceeded quota: berth" in denied(ground, attempt)
