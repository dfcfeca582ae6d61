"""The eviction itself, on a real control plane, with no more rights than Berth's worker has."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
import yaml
from django.utils import timezone

from devices import cluster
from devices.cluster.gateway import BudgetSpent, Conflict, Forbidden, Gateway, Ref
from devices.dra.names import SYSTEM_NAMESPACE
from devices.models import Claim
from migrationplan.makingroom.rooms import latency
from migrationplan.models import MakeRoom, RoomPod
from playground.plane.controlplane import ControlPlane
from portal.alerts.models import Alert
from tenants.access import PlatformAccess
from tests.deploy.ground import DEPLOY, rights
from tests.devices.following import until
from tests.migrationplan.keeping import CLASS
from tests.migrationplan.makingroom.pods import HIGH, RETRYABLE, Obj, proposed, see, turned, world


@pytest.fixture(scope="module")
def worker(plane: ControlPlane) -> Iterator[Gateway]:
    """Berth's worker with the rights of `deploy/`."""
    admin = cluster.connect(plane.admin_kubeconfig)
    for obj in rights():
        admin.apply(obj, manager="test", force=True)
    for name in ("team", "other"):
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        admin.apply(space, manager="test")
        until(lambda name=name: admin.get(Ref("ServiceAccount", "default", name)), what="account")
    found = cluster.connect(plane.service_account_kubeconfig(SYSTEM_NAMESPACE, "berth-worker"))
    until(lambda: _may(found), what="the worker's rights")
    yield found
    for name in ("team", "other"):
        admin.delete(Ref("Namespace", name))


def _may(gateway: Gateway) -> bool:
    try:
        gateway.evict(Ref("Pod", "nobody", "team"), uid="none")
    except Forbidden:
        return False
    return True


@pytest.fixture
def low(plane: ControlPlane, worker: Gateway) -> Iterator[Obj]:
    """A Pod that may be ended, as nobody's kubelet runs it."""
    admin = cluster.connect(plane.admin_kubeconfig)
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "low", "namespace": "team", "labels": {**RETRYABLE, "app": "low"}},
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "nodeSelector": {"no.such": "node"},
            "containers": [{"name": "main", "image": "app:1"}],
        },
    }
    yield admin.create(pod)
    admin.delete(Ref("Pod", "low", "team"), grace_seconds=0)
    admin.delete(Ref("PodDisruptionBudget", "all", "team"))


def real_room(claim: Claim, by: PlatformAccess, low: Obj) -> MakeRoom:
    """A room for the Pod that is there."""
    room = proposed(claim, by)
    uid = low["metadata"]["uid"]
    RoomPod.objects.update(uid=uid)
    return room


@pytest.mark.cluster
@pytest.mark.django_db
def test_a_pod_ends_and_how_long_it_took_is_measured(
    claim: Claim, operator: PlatformAccess, worker: Gateway, low: Obj
) -> None:
    room = turned(real_room(claim, operator, low), worker)
    assert room.state == "evicting" and "1 Pod is to end" in room.why
    until(lambda: worker.get(Ref("Pod", "low", "team")) is None, what="the Pod's end")
    room = turned(room, worker)
    assert room.state == "evicting", "gone, and its devices are still held"
    see(*world(*HIGH))
    room = turned(room, worker)
    assert room.state == "done" and "the scheduler gives them out" in room.why
    [pod] = room.pods.all()
    assert pod.took is not None and latency([CLASS], timezone.now()).count == 1


@pytest.mark.cluster
@pytest.mark.django_db
def test_a_disruption_budget_holds(
    plane: ControlPlane, claim: Claim, operator: PlatformAccess, worker: Gateway, low: Obj
) -> None:
    admin = cluster.connect(plane.admin_kubeconfig)
    admin.merge(
        Ref("Pod", "low", "team"),
        {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}},
        subresource="status",
    )
    admin.create(
        {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "all", "namespace": "team"},
            "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "low"}}},
        }
    )
    uid = low["metadata"]["uid"]

    def refused() -> BudgetSpent | None:
        try:
            worker.evict(Ref("Pod", "low", "team"), uid=uid, dry_run=True)
        except BudgetSpent as spent:
            return spent
        return None

    assert "all" in until(refused, what="the budget").budget
    room = turned(real_room(claim, operator, low), worker)
    assert (room.state, room.code) == ("evicting", "DISRUPTION_BUDGET")
    assert "a disruption budget lets team/low stay for now" in room.why
    MakeRoom.objects.update(since=timezone.now() - timedelta(hours=1))
    room = turned(room, worker)
    assert (room.state, room.code) == ("failed", "DISRUPTION_BUDGET")
    assert Alert.objects.filter(code="DISRUPTION_BUDGET", over_at=None).exists()


@pytest.mark.cluster
@pytest.mark.django_db
def test_a_pod_that_is_another_now_is_left_alone(
    plane: ControlPlane, claim: Claim, operator: PlatformAccess, worker: Gateway, low: Obj
) -> None:
    with pytest.raises(Conflict):
        worker.evict(Ref("Pod", "low", "team"), uid="another")
    admin = cluster.connect(plane.admin_kubeconfig)
    label = {"berth.dev/retryable": None}
    admin.merge(Ref("Pod", "low", "team"), {"metadata": {"labels": label}})
    room = turned(real_room(claim, operator, low), worker)
    assert (room.state, room.code) == ("refused", "ROOM_CHANGED")
    assert admin.get(Ref("Pod", "low", "team")) is not None


@pytest.mark.cluster
@pytest.mark.django_db
def test_without_its_right_it_fails_as_named(
    plane: ControlPlane, claim: Claim, operator: PlatformAccess, worker: Gateway, low: Obj
) -> None:
    admin = cluster.connect(plane.admin_kubeconfig)
    objects = yaml.safe_load_all((DEPLOY / "rbac" / "worker.yaml").read_text())
    [role] = [one for one in objects if one and one["kind"] == "ClusterRole"]
    rules = [one for one in role["rules"] if "pods/eviction" not in one["resources"]]
    assert len(rules) == len(role["rules"]) - 1
    admin.apply({**role, "rules": rules}, manager="test", force=True)
    try:
        until(lambda: not _may(worker), what="the missing right")
        room = turned(real_room(claim, operator, low), worker)
        assert (room.state, room.code) == ("failed", "EVICTION_FORBIDDEN")
        assert 'cannot create resource "pods/eviction"' in room.why
        assert admin.get(Ref("Pod", "low", "team")) is not None
    finally:
        admin.apply(role, manager="test", force=True)
        until(lambda: _may(worker), what="the right again")


def test_nobody_else_of_berth_may_evict() -> None:
    """A right that ends Pods is the worker's alone."""
    having = [
        (path.stem, obj["kind"])
        for path in sorted((DEPLOY / "rbac").glob("*.yaml"))
        for obj in yaml.safe_load_all(path.read_text())
        for rule in (obj or {}).get("rules") or ()
        if {"pods/eviction", "pods/*", "*"} & set(rule.get("resources", ()))
    ]
    assert having == [("worker", "ClusterRole")]
