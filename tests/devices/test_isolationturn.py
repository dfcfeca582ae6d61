"""A turn of an isolation on the cluster: tried, applied, probed by a Pod, lifted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from devices import cluster
from devices.cluster.gateway import Ref
from devices.fleet import isolationturn
from devices.models import Isolation, IsolationPolicy, Sync
from playground.plane.components import API_SERVER, ETCD
from playground.plane.controlplane import ControlPlane
from portal.alerts.models import Alert
from portal.audit.models import AuditLine
from tests.deploy.ground import rights, until
from tests.deploy.objects import device_class, pod, resource_slice
from tests.devices.demofleet import mirror
from tests.playground.planes import OLDER, built

pytestmark = pytest.mark.django_db(transaction=True)
Obj = dict[str, Any]
MINUTE = timedelta(minutes=1)


class Ground:
    """A node with four devices of a driver of its own, on one control plane."""

    def __init__(self, plane: ControlPlane):
        self.admin = cluster.connect(plane.admin_kubeconfig)
        self.tag = uuid4().hex[:8]
        self.node, self.driver = f"iso-{self.tag}", f"iso-{self.tag}.example.com"
        for obj in rights():
            self.admin.apply(obj, manager="berth-playground", force=True)
        self.worker = cluster.connect(
            plane.service_account_kubeconfig("berth-system", "berth-worker")
        )
        self.ready()
        self.admin.apply(
            resource_slice(f"iso-{self.tag}", driver=self.driver, node=self.node), manager="test"
        )
        made = {"apiVersion": "resource.k8s.io/v1", **device_class(self.node, driver=self.driver)}
        self.admin.apply(made, manager="test")
        until(lambda: self._heard())

    def _heard(self) -> bool:
        """The authorizer learns of new roles within a moment."""
        try:
            self.worker.get(Ref("Node", self.node))
        except cluster.gateway.ClusterError:
            return False
        return True

    def ready(self) -> None:
        """Without a kubelet a node is ready for 40 seconds."""
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": self.node}}
        self.admin.apply(node, manager="test")
        condition = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        amounts = {"cpu": "64", "memory": "256Gi", "pods": "100"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [condition]}
        self.admin.merge(Ref("Node", self.node), {"status": status}, subresource="status")

    def row(self, **changed: Any) -> Isolation:
        """The proposal to close the node's devices."""
        node = self.admin.get(Ref("Node", self.node))
        assert node is not None
        return Isolation.objects.create(
            **{
                "driver": self.driver, "pool": self.node, "node": self.node,
                "node_uid": node["metadata"]["uid"], "device_class": self.node,
                "proposed_at": timezone.now(), "since": timezone.now(),
                "looking_since": timezone.now(), "request_id": "request-1", **changed,
            }
        )  # fmt: skip

    def turn(self, row: Isolation, now: datetime | None = None) -> Isolation:
        isolationturn.turn(row.public_id, gateway=self.worker, now=now or timezone.now())
        row.refresh_from_db()
        return row

    def until_tried(self, row: Isolation) -> Isolation:
        until(lambda: self.turn(row).state == "tried")
        return row

    def rule(self, row: Isolation) -> Obj | None:
        return self.admin.get(Ref("DeviceTaintRule", row.target.rule_name))

    def see(self) -> None:
        """The mirror shows the node and what its driver publishes."""
        node = self.admin.get(Ref("Node", self.node)) or {}
        mirror(
            [
                {"apiVersion": "v1", "kind": "Node", **node},
                resource_slice(f"iso-{self.tag}", driver=self.driver, node=self.node),
            ]
        )

    def clean(self) -> None:
        for row in Isolation.objects.all():
            if self.rule(row) is not None:
                self.admin.delete(Ref("DeviceTaintRule", row.target.rule_name))
        self.admin.delete(Ref("Node", self.node))
        self.admin.delete(Ref("ResourceSlice", f"iso-{self.tag}"))
        self.admin.delete(Ref("DeviceClass", self.node))


@pytest.fixture
def ground(plane: ControlPlane) -> Iterator[Ground]:
    made = Ground(plane)
    yield made
    made.clean()


def wished(row: Isolation, what: str, **changed: Any) -> None:
    asked = {"wish": what, "wished_at": timezone.now(), "wished_why": "It burns", **changed}
    Isolation.objects.filter(pk=row.pk).update(**asked)


def test_the_rule_is_tried_applied_kept_and_lifted(ground: Ground) -> None:
    claim = {"name": "work", "namespace": "berth-system"}
    request = {"name": "r", "exactly": {"deviceClassName": ground.node}}
    ground.admin.create(
        {
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": claim,
            "spec": {"devices": {"requests": [request]}},
        }
    )  # fmt: skip
    user = pod(
        "work", claims={"gpu": "work"}, nodeSelector={}, metadata={"namespace": "berth-system"}
    )
    user["metadata"]["name"] = "work"
    try:
        ground.admin.create(user)
        ref = Ref("Pod", "work", "berth-system")
        until(lambda: (ground.admin.get(ref) or {})["spec"].get("nodeName"))
        row = ground.until_tried(ground.row())
        assert row.found is not None and not row.found.computed and not row.node_taint
        assert (row.found.pods, row.found.allocated, row.found.published) == (1, 1, 4)
        assert row.found.sentence == "1 Pod holds these devices and stays."
        rule = ground.rule(row)
        assert rule is not None and rule["spec"]["taint"]["effect"] == "None"

        wished(row, "look")
        ground.turn(row)
        assert (row.state, row.looks) == ("proposed", 2)
        ground.until_tried(row)

        wished(row, "apply")
        assert ground.turn(row).state == "tried", "what is not seen is not closed"
        assert row.code == "ISOLATION_SHARE_REACHED"
        ground.see()
        wished(row, "apply")
        assert ground.turn(row).code == "ISOLATION_SHARE_REACHED", "4 of 4 are too many"
        IsolationPolicy.objects.create(pk=1, share=100)
        wished(row, "apply")
        for _ in range(2):
            assert ground.turn(row).state == "applied"
        rule = ground.rule(row)
        assert rule is not None and rule["spec"]["taint"]["effect"] == "NoSchedule"
        assert "deletionTimestamp" not in (ground.admin.get(ref) or {})["metadata"], "it stays"
        assert Alert.objects.get(over_at=None).code == "DEVICES_ISOLATED"

        ground.admin.delete(Ref("DeviceTaintRule", row.target.rule_name))
        ground.turn(row)
        assert ground.rule(row) is not None, "who takes it away goes round Berth"

        wished(row, "lift", end="lifted")
        for _ in range(2):
            ground.turn(row)
        assert (row.state, row.end, ground.rule(row)) == ("ended", "lifted", None)
        assert not Alert.objects.filter(over_at=None).exists()
        assert AuditLine.objects.filter(action="isolation.ended").count() == 1
    finally:
        ground.admin.delete(Ref("Pod", "work", "berth-system"), grace_seconds=0)
        ground.admin.delete(Ref("ResourceClaim", "work", "berth-system"))


def test_a_trial_pod_enters_past_the_isolation_and_opens_it(ground: Ground) -> None:
    row = ground.row(state="applied", applied_at=timezone.now(), device="d0")
    ground.turn(row)
    wished(row, "probe", device="")
    for _ in range(2):
        ground.turn(row)
    ref = Ref("Pod", row.canary, "berth-system")
    assert row.canary and ground.admin.get(ref) is not None
    ground.ready()
    until(lambda: (ground.admin.get(ref) or {})["spec"].get("nodeName") == ground.node)
    assert ground.turn(row).state == "applied", "placed is not run"
    running = {"running": {"startedAt": "2026-11-30T12:00:00Z"}}
    seen = {"name": "wait", "state": running, "ready": True, "restartCount": 0}
    seen |= {"image": "pause", "imageID": "pause"}
    status = {"phase": "Running", "containerStatuses": [seen]}
    ground.admin.merge(ref, {"status": status}, subresource="status")
    ground.turn(row)
    assert (row.state, row.end) == ("ended", "probed")
    assert ground.rule(row) is None
    ground.admin.delete(ref, grace_seconds=0)
    assert ground.admin.get(Ref("ResourceClaim", ref.name, "berth-system")) is None or (
        until(lambda: ground.admin.get(Ref("ResourceClaim", ref.name, "berth-system")) is None)
    )


def test_a_trial_that_does_not_run_leaves_it_closed_and_nothing_behind(ground: Ground) -> None:
    row = ground.row(state="applied", applied_at=timezone.now())
    wished(row, "probe")
    for _ in range(2):
        ground.turn(row)
    name = row.canary
    ground.turn(row, now=timezone.now() + isolationturn.TRIAL_PATIENCE + MINUTE)
    assert (row.state, row.wish, row.canary) == ("applied", "", "")
    assert "did not run" in row.trial and ground.rule(row) is not None
    ground.admin.delete(Ref("Pod", name, "berth-system"), grace_seconds=0)
    until(lambda: ground.admin.get(Ref("ResourceClaim", name, "berth-system")) is None)


def test_a_node_that_is_gone_ends_it(ground: Ground) -> None:
    row = ground.until_tried(ground.row())
    ground.admin.delete(Ref("Node", ground.node))
    ground.turn(row)
    assert (row.end, ground.rule(row)) == ("lost", None)


@pytest.fixture(scope="module")
def as_it_comes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """The older release as it comes: it serves no DeviceTaintRule."""
    folder: Path = tmp_path_factory.mktemp("as-it-comes")
    off = {"DRADeviceTaintRules": False}
    plane = ControlPlane(folder, built(OLDER), gates=off, components=(ETCD, API_SERVER))
    yield plane.start(tied=True)
    plane.stop()


@pytest.mark.cluster136
def test_where_rules_are_not_served_the_node_is_closed_to_every_pod(
    as_it_comes: ControlPlane,
) -> None:
    ground = Ground(as_it_comes)
    others = [{"key": "dedicated", "value": "x", "effect": "NoSchedule"}]
    ground.admin.merge(Ref("Node", ground.node), {"spec": {"taints": others}})
    ground.see()
    Sync.objects.filter(kind="DeviceTaintRule").update(served=False)
    IsolationPolicy.objects.create(pk=1, share=100)
    row = ground.turn(ground.row())
    assert (row.state, row.node_taint) == ("tried", True)
    assert row.found is not None and row.found.computed
    assert "the node itself is closed: to every Pod" in row.found.text

    def taints() -> list[Obj]:
        node = ground.admin.get(Ref("Node", ground.node)) or {}
        return [
            {key: one.get(key) for key in ("key", "value", "effect")}
            for one in node["spec"].get("taints", [])
            if not one["key"].startswith("node.kubernetes.io/")
        ]

    wished(row, "apply")
    for _ in range(2):
        assert ground.turn(row).state == "applied"
    ours = {"key": "berth.dev/isolated", "value": row.public_id, "effect": "NoSchedule"}
    assert taints() == [*others, ours]
    wished(row, "lift", end="lifted")
    for _ in range(2):
        ground.turn(row)
    assert (row.state, taints()) == ("ended", others)
