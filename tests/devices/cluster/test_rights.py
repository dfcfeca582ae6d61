"""Each process's rights (deploy/rbac) are enough for it and not more; a lack is named."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from devices.cluster import connect
from devices.cluster.gateway import Forbidden, NotServed, Ref
from devices.cluster.kinds import KINDS
from devices.dra.isolationobjects import Target, taint_rule
from devices.dra.names import Manager
from devices.dra.taints import Effect
from devices.mirror.kinds import MIRRORED
from tests.devices.cluster.objects import a_claim, a_config_map, a_node, a_pod, until

DEPLOY = Path(__file__).parents[3] / "deploy" / "rbac"
SYSTEM = "berth-system"


def objects():
    for path in sorted(DEPLOY.glob("*.yaml")):
        yield from (obj for obj in yaml.safe_load_all(path.read_text()) if obj)


@pytest.fixture
def account(plane, gateway):
    """A gateway with the rights of one of Berth's accounts."""
    for obj in sorted(objects(), key=lambda obj: obj["kind"] != "Namespace"):
        gateway.apply(obj, manager="berth-playground", force=True)
    return lambda name: connect(plane.service_account_kubeconfig(SYSTEM, name))


def test_the_watch_process_may_follow_every_kind_of_the_mirror_and_write_nothing(
    account, namespace
):
    watch = account("berth-watch")
    for mirrored in MIRRORED.values():
        try:
            listing = watch.list(mirrored.kind, namespace=mirrored.namespace)
        except NotServed:
            assert mirrored.kind == "DeviceTaintRule"
            continue
        watch.stream(mirrored.kind, listing.version, namespace=mirrored.namespace).close()
    assert watch.text("/readyz") == "ok"
    assert "kubernetes_feature_enabled" in watch.text("/metrics")
    assert watch.served().release
    assert watch.get(Ref("Namespace", "kube-system")) is not None
    for kind in ("Secret", "ConfigMap", "ServiceAccount"):
        with pytest.raises(Forbidden, match=f"list {kind}"):
            watch.list(kind)
    with pytest.raises(Forbidden, match="create ResourceClaim"):
        watch.create(a_claim("a", namespace))


def test_a_worker_may_make_and_remove_claims_and_keep_namespaces_and_quotas(account, namespace):
    worker = account("berth-worker")
    claim = worker.apply(a_claim("a", namespace), manager="berth-claim")
    ref = Ref("ResourceClaim", "a", namespace)
    assert worker.get(ref) == claim
    assert worker.list("ResourceClaim", namespace=namespace).items
    worker.delete(ref, uid=claim["metadata"]["uid"])
    labels = {"berth.dev/tenant": "apollo"}
    worker.apply(
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": namespace, "labels": labels},
        },
        manager="berth-tenant",
    )
    quota = {"kind": "ResourceQuota", "metadata": {"name": "berth", "namespace": namespace}}
    worker.apply({"apiVersion": "v1", **quota, "spec": {"hard": {}}}, manager="berth-tenant")
    assert worker.get(Ref("ResourceQuota", "berth", namespace)) is not None
    parameter = {"kind": "ConfigMap", "metadata": {"name": "berth-policy", "namespace": SYSTEM}}
    worker.apply({"apiVersion": "v1", **parameter}, manager="berth-tenant")
    assert worker.get(Ref("ConfigMap", "berth-policy", SYSTEM)) is not None


def test_a_worker_may_close_devices_look_and_open_them_again_and_change_no_status(account):
    worker = account("berth-worker")
    target = Target("rights", "gpu.example.com", "nowhere")
    ref = Ref("DeviceTaintRule", target.rule_name)
    try:
        worker.apply(taint_rule(target, Effect.NONE, 1), manager=Manager.ISOLATION)
    except NotServed:
        return  # a worker closes the node by a taint there, which it may: `patch nodes`
    worker.apply(taint_rule(target, Effect.NO_SCHEDULE, 2), manager=Manager.ISOLATION)
    found = worker.get(ref)
    assert found is not None and found["spec"]["taint"]["effect"] == "NoSchedule"
    with pytest.raises(Forbidden, match="devicetaintrules/status"):
        worker.merge(ref, {"status": {}}, subresource="status")
    for other in ("berth-watch", "berth-web", "berth-beat"):
        with pytest.raises(Forbidden, match="devicetaintrules"):
            account(other).delete(ref)
    worker.delete(ref)
    assert worker.get(ref) is None


@pytest.mark.parametrize(
    "act, says",
    [
        pytest.param(
            lambda gateway, namespace: gateway.merge(
                Ref("ResourceClaim", "a", namespace), {"status": {}}, subresource="status"
            ),
            "resourceclaims/status",
            id="allocating",
        ),
        pytest.param(
            lambda gateway, namespace: gateway.create(a_pod("p", namespace)),
            "create Pod",
            id="making Pods",
        ),
        pytest.param(
            lambda gateway, namespace: gateway.create(a_node("n")), "create Node", id="making nodes"
        ),
        pytest.param(
            lambda gateway, namespace: gateway.delete(Ref("Namespace", namespace)),
            "delete Namespace",
            id="deleting namespaces",
        ),
        pytest.param(
            lambda gateway, namespace: gateway.list("Secret"), "list Secret", id="reading secrets"
        ),
        pytest.param(
            lambda gateway, namespace: gateway.create(a_config_map("m", namespace)),
            "create ConfigMap",
            id="writing ConfigMaps",
        ),
        pytest.param(
            lambda gateway, namespace: gateway.get(Ref("ConfigMap", "other", SYSTEM)),
            "get ConfigMap",
            id="reading other ConfigMaps of its own namespace",
        ),
        pytest.param(
            lambda gateway, namespace: gateway.delete(Ref("Namespace", namespace)),
            "delete Namespace",
            id="deleting namespaces",
        ),
        pytest.param(
            lambda gateway, namespace: gateway.list("ValidatingAdmissionPolicy"),
            "list ValidatingAdmissionPolicy",
            id="touching the policies",
        ),
    ],
)
def test_a_worker_may_not_do_more(account, namespace, act, says):
    with pytest.raises(Forbidden, match=says):
        act(account("berth-worker"), namespace)


@pytest.mark.parametrize("name", ["berth-web", "berth-beat", "berth-node-probe"])
def test_processes_that_never_talk_to_the_cluster_may_read_nothing_of_it(account, name):
    gateway = account(name)
    for kind in ("DeviceClass", "ResourceClaim", "Pod", "Node", "Secret"):
        with pytest.raises(Forbidden, match=f"list {kind}"):
            gateway.list(kind)


def _mirrored_rules():
    """(kind, verb) of every right that the mirror needs."""
    return [
        pytest.param(mirrored.kind, verb, id=f"{verb} {mirrored.kind}")
        for mirrored in MIRRORED.values()
        for verb in ("list", "watch")
    ]


@pytest.mark.cluster
@pytest.mark.parametrize("kind, verb", _mirrored_rules())
def test_a_right_that_the_watch_process_lacks_fails_by_its_name(plane_137, kind, verb):
    """The same roles without one verb on one resource, for a user of their own."""
    admin = connect(plane_137.admin_kubeconfig)
    user = f"watch-without-{verb}-{kind.lower()}"
    for obj in objects():
        if obj["kind"] in {"ClusterRole", "Role"} and obj["metadata"]["name"] == "berth-watch":
            admin.apply(_without(obj, kind, verb, user), manager="m", force=True)
            binding = {
                "apiVersion": "rbac.authorization.k8s.io/v1",
                "kind": f"{obj['kind']}Binding",
                "metadata": {**obj["metadata"], "name": user},
                "roleRef": {
                    "apiGroup": "rbac.authorization.k8s.io",
                    "kind": obj["kind"],
                    "name": user,
                },
                "subjects": [
                    {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": user}
                ],
            }
            admin.apply(binding, manager="m", force=True)
    gateway = connect(plane_137.kubeconfig(user))
    other = "Node" if kind != "Node" else "DeviceClass"
    until(lambda: _allowed(lambda: gateway.list(other)))
    namespace = MIRRORED[kind].namespace
    with pytest.raises(Forbidden, match=rf'{verb} {kind}: .* cannot {verb} resource "'):
        if verb == "list":
            gateway.list(kind, namespace=namespace)
        else:
            gateway.stream(kind, "1", namespace=namespace)


def _allowed(act) -> bool:
    """The authorizer learns of new roles within a moment."""
    try:
        act()
    except Forbidden:
        return False
    return True


def _without(role, kind, verb, name):
    plural = KINDS[kind].plural
    rules = []
    for rule in role["rules"]:
        if plural not in rule.get("resources", ()) or verb not in rule["verbs"]:
            rules.append(rule)
            continue
        others = [resource for resource in rule["resources"] if resource != plural]
        if others:
            rules.append({**rule, "resources": others})
        rules.append(
            {**rule, "resources": [plural], "verbs": [v for v in rule["verbs"] if v != verb]}
        )
    rules = [rule for rule in rules if rule["verbs"]]
    return {**role, "metadata": {**role["metadata"], "name": name}, "rules": rules}
