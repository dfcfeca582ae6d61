"""The account that asks the API server by dry runs: it is answered, and can write nothing."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from devices import cluster
from devices.cluster.gateway import Forbidden, Gateway, Ref, Rejected
from tests.deploy.ground import RBAC, SYSTEM, Ground, policies, until
from tests.deploy.objects import claim, device_class, request, resource_slice, template

Obj = dict[str, Any]

ACCOUNT = "berth-probe"
DRIVER = "probe.berth.dev"
V1 = "resource.k8s.io/v1"


def wide(obj: Obj) -> Obj:
    return {"apiVersion": V1, **obj}


def placed(obj: Obj) -> Obj:
    return {**obj, "metadata": {**obj["metadata"], "namespace": SYSTEM}}


OBJECTS = [
    pytest.param(placed(claim("asked", request("bypass-gpu"))), id="a claim"),
    pytest.param(placed(template("asked", request("bypass-gpu"))), id="a template"),
    pytest.param(wide(device_class("asked", driver=DRIVER)), id="a class"),
    pytest.param(wide(resource_slice("asked", driver=DRIVER, node="bypass-n1")), id="a slice"),
]


@pytest.fixture
def probe(ground: Ground) -> Gateway:
    return cluster.connect(ground.plane.service_account_kubeconfig(SYSTEM, ACCOUNT))


def refused(act: Any) -> str:
    """The words of a denial; empty where the API server took it."""
    try:
        act()
    except Rejected as error:
        return error.message
    return ""


@pytest.mark.parametrize("obj", OBJECTS)
def test_what_it_asks_is_answered_and_what_it_writes_is_denied(
    ground: Ground, probe: Gateway, obj: Obj
) -> None:
    answered = probe.create(obj, dry_run=True)
    assert answered["spec"]
    said = until(lambda: refused(lambda: probe.create(obj)))
    assert "Berth PROBE_DRY_RUN: berth-probe asks and never writes." in said
    metadata = obj["metadata"]
    assert (
        ground.admin.get(Ref(obj["kind"], metadata["name"], metadata.get("namespace", ""))) is None
    )


def test_it_has_no_right_beyond_asking(probe: Gateway) -> None:
    with pytest.raises(Forbidden):
        probe.list("ResourceClaim", namespace=SYSTEM)
    with pytest.raises(Forbidden):
        probe.create(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": "c", "namespace": SYSTEM},
            },
            dry_run=True,
        )
    with pytest.raises(Rejected, match="SLICE_OF_ANOTHER_DRIVER"):
        probe.create(resource_slice("s", driver="gpu.example.com", node="n"), dry_run=True)


def test_more_rights_let_it_write_no_more(ground: Ground, probe: Gateway) -> None:
    """Also of kinds that nobody thought of, and by other ways than creating."""
    name = "probe-with-too-much"
    role = {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cluster-admin"}
    subject = {"kind": "ServiceAccount", "name": ACCOUNT, "namespace": SYSTEM}
    ground.admin.apply(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": role,
            "subjects": [subject],
        },
        manager="test",
    )
    try:
        node = Ref("Node", "bypass-n1")
        label = {"metadata": {"labels": {"team": "probe"}}}
        until(lambda: "team" in str(_dry(probe, node, label)))
        for act in (
            partial(probe.merge, node, label),
            partial(probe.delete, node),
            partial(probe.create, {**NAMESPACE}),
        ):
            assert "Berth PROBE_DRY_RUN:" in refused(act)
    finally:
        ground.admin.delete(Ref("ClusterRoleBinding", name))


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "bypass-probe"}}


def _dry(probe: Gateway, node: Ref, label: Obj) -> Obj:
    try:
        return probe.merge(node, label, dry_run=True)
    except Forbidden:
        return {}


def test_without_the_policy_it_would_write(ground: Ground, probe: Gateway) -> None:
    """What holds it is the policy, and nothing else."""
    [binding] = [
        one
        for one in policies()
        if one["kind"] == "ValidatingAdmissionPolicyBinding" and one["metadata"]["name"] == ACCOUNT
    ]
    obj = placed(claim("written", request("bypass-gpu")))
    until(lambda: refused(lambda: probe.create(obj)))
    ground.admin.delete(Ref(binding["kind"], ACCOUNT))
    try:
        until(lambda: not refused(lambda: probe.create(obj)))
    finally:
        ground.admin.apply(binding, manager="berth-playground", force=True)
        ground.admin.delete(Ref("ResourceClaim", "written", SYSTEM))
