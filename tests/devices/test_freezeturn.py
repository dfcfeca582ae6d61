"""Frozen node pools, drivers and driver changes: who may, what the cluster holds, how it ends."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from devices import cluster
from devices.cluster.gateway import Conflict, Ref
from devices.models import Freeze, FreezeHold, NodePool, Observed, OwnershipLine
from devices.tenancy import freezeturn
from devices.tenancy.freezes import AlreadyFrozen, end_for, frozen_for, lift, standing_for
from devices.tenancy.namespaces import specs_of
from devices.tenancy.turns import locks_of
from playground.plane.controlplane import ControlPlane
from portal.audit.models import AuditLine
from portal.errors import Invalid
from portal.outbox.models import OutboxLine
from tests.deploy.ground import rights, until
from tests.deploy.objects import device_class, pod, resource_slice
from tests.devices.demofleet import mirror
from tests.devices.pages import client_of, text
from tests.devices.test_freezes import freeze_it, somebody
from tests.factories import NOON, make_access

pytestmark = pytest.mark.django_db(transaction=True)
Obj = dict[str, Any]
SYSTEM = "berth-system"


def a_pool(slug: str = "h100", driver: str = "gpu.example.com", **changed: Any) -> NodePool:
    fields = {
        "name": slug.upper(), "selector": {"pool": slug}, "resource": "example.com/gpu",
        "driver": driver, "device_class": "gpu", "plugin_label": "example.com/plugin=on",
        "driver_label": "example.com/driver=on", "plugin_sets": ["gpu/plugin"],
        "driver_sets": ["gpu/driver"], "devices_per_node": 4, "made_by": uuid4(), "made_at": NOON,
    }  # fmt: skip
    return NodePool.objects.create(slug=slug, **{**fields, **changed})


# --- verbs ---


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        pytest.param({"scope": "pool", "target": "l4"}, "target", id="no such node pool"),
        pytest.param({"scope": "change", "target": "l4"}, "target", id="no such pool to change"),
        pytest.param({"scope": "driver", "target": "Not A Driver"}, "target", id="no driver"),
        pytest.param({"scope": "pool", "target": "h100", "path": "x"}, "path", id="no such path"),
        pytest.param({"scope": "class", "path": "dra"}, "path", id="a class has no path"),
        pytest.param(
            {"scope": "pool", "target": "h100", "strict": True}, "strict", id="taints are strict"
        ),
    ],
)
def test_what_cannot_be_frozen_is_said_by_its_field(asked: Obj, field: str) -> None:
    a_pool()
    with pytest.raises(Invalid) as refused:
        freeze_it(**asked)
    assert field in refused.value.fields and not Freeze.objects.exists()


def test_a_frozen_place_wakes_its_own_turn_and_holds_no_request_back() -> None:
    a_pool()
    tenant = make_access("tess", "owner", slug="tide").tenant
    operator = somebody("operator")
    made = freeze_it(operator, scope="pool", target="h100", path="dra")
    assert made.words == "node pool h100, nodes of dra"
    assert list(OutboxLine.objects.values_list("task", "key")) == [
        ("devices.tasks.turn_freeze", made.public_id)
    ]
    assert not any(spec.frozen for spec in specs_of(tenant, {}, NOON))
    assert [one.target for one in frozen_for(tenant, NOON)] == ["h100"]
    with pytest.raises(AlreadyFrozen):
        freeze_it(operator, scope="pool", target="h100")
    lift(access=operator, public_id=made.public_id, request_id="request-l", now=NOON)
    assert FreezeHold.objects.get().state == "opening"


def test_driver_changes_are_the_platforms_own_and_stand_in_the_policys_parameter() -> None:
    a_pool()
    tenant = make_access("tess", "owner", slug="tide").tenant
    made = freeze_it(scope="change", target="h100", until=NOON + timedelta(hours=1))
    assert frozen_for(tenant, NOON) == [] == standing_for(["tide"], [], NOON)
    assert standing_for([], ["auditor"], NOON) == [made]
    assert locks_of(NOON) == [
        "daemonset gpu/driver",
        "daemonset gpu/plugin",
        "class gpu",
        "switch pool=h100 example.com/driver example.com/plugin",
    ]
    assert locks_of(NOON + timedelta(hours=1)) == [], "its time is over"


def test_what_berth_froze_for_a_reason_ends_with_it() -> None:
    a_pool()
    mine = freeze_it(scope="pool", target="h100", reason="P-1, wave 2 rolls back")
    other = freeze_it(somebody("admin"), scope="driver", target="gpu.example.com")
    assert end_for("P-1, wave 2 rolls back", request_id="request-e", now=NOON) == 1
    mine.refresh_from_db()
    other.refresh_from_db()
    assert (mine.end, mine.ended_by, other.ended_at) == ("done", None, None)
    assert AuditLine.objects.filter(action="freeze.done").count() == 1


def test_operators_freeze_a_node_pool_on_the_page_and_tenants_read_what_still_works() -> None:
    a_pool()
    operator, owner = somebody("operator"), make_access("tess", "owner", slug="tide")
    page = client_of(operator.user)
    asked = {"what": "pool:h100:dra", "reason": "The fans", "until": ""}
    assert page.post("/platform/freezes/", asked).status_code == 302
    FreezeHold.objects.update(
        state="closed", wanted=3, reach={"devices": 12, "nodes": 0, "pods": 1}
    )
    shown = text(page.get("/platform/freezes/"))
    assert "Node pool h100, nodes of dra" in shown
    assert "Closed by 3 taint rules. 1 Pod stays." in shown
    banner = text(client_of(owner.user).get("/t/tide/freezes/"))
    assert "Node pool h100 takes no new work by DRA." in banner
    assert "What runs keeps its devices." in banner


# --- what the cluster holds ---


class Ground:
    """A node of DRA and one of the plugin in one node pool, on one control plane."""

    def __init__(self, plane: ControlPlane):
        self.admin = cluster.connect(plane.admin_kubeconfig)
        self.tag = f"frz-{uuid4().hex[:8]}"
        self.driver = f"{self.tag}.example.com"
        self.dra, self.plugin = f"{self.tag}-d", f"{self.tag}-p"
        for obj in rights():
            self.admin.apply(obj, manager="berth-playground", force=True)
        self.worker = cluster.connect(plane.service_account_kubeconfig(SYSTEM, "berth-worker"))
        for name in (self.dra, self.plugin):
            self.ready(name)
        self.slice = resource_slice(f"{self.tag}-s", driver=self.driver, node=self.dra)
        self.admin.apply(self.slice, manager="test")
        made = {"apiVersion": "resource.k8s.io/v1", **device_class(self.tag, driver=self.driver)}
        self.admin.apply(made, manager="test")
        until(self._heard)
        self.pool = a_pool(self.tag, self.driver, device_class=self.tag)
        for name, kind, owner in (
            (self.dra, self.driver, "dra"),
            (self.plugin, "example.com/gpu", "plugin"),
        ):
            OwnershipLine.objects.create(
                node=name, node_uid=self.node(name)["metadata"]["uid"], type=kind, owner=owner,
                published=0, since=NOON,
            )  # fmt: skip

    def _heard(self) -> bool:
        """The authorizer learns of new roles within a moment."""
        try:
            self.worker.get(Ref("Node", self.dra))
        except cluster.gateway.ClusterError:
            return False
        return True

    def ready(self, name: str) -> None:
        """Without a kubelet a node is ready for 40 seconds."""
        labels = {"pool": self.tag}
        node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}}
        self.admin.apply(node, manager="test")
        condition = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        amounts = {"cpu": "64", "memory": "256Gi", "pods": "100"}
        status = {"capacity": amounts, "allocatable": amounts, "conditions": [condition]}
        self.admin.merge(Ref("Node", name), {"status": status}, subresource="status")

    def node(self, name: str) -> Obj:
        return self.admin.get(Ref("Node", name)) or {}

    def rules(self) -> list[Obj]:
        return list(self.admin.list("DeviceTaintRule", labels="berth.dev/freeze").items)

    def taints(self, name: str) -> list[str]:
        return [
            f"{one['key']}={one.get('value', '')}"
            for one in self.node(name)["spec"].get("taints", ())
            if not one["key"].startswith("node.kubernetes.io/")
        ]

    def see(self) -> None:
        """The mirror shows what the API server has."""
        Observed.objects.all().delete()
        nodes = [
            {"apiVersion": "v1", "kind": "Node", **self.node(n)} for n in (self.dra, self.plugin)
        ]
        rules = [{"kind": "DeviceTaintRule", **one} for one in self.rules()]
        mirror([*nodes, self.slice, *rules])

    def turn(self, frozen: Freeze) -> FreezeHold:
        try:
            freezeturn.turn(frozen.public_id, gateway=self.worker, now=timezone.now())
        except Conflict:  # somebody wrote the Node since it was seen: Celery has it tried again
            self.see()
            freezeturn.turn(frozen.public_id, gateway=self.worker, now=timezone.now())
        return FreezeHold.objects.get(freeze=frozen)

    def scheduled(self, name: str) -> Obj:
        """How the scheduler stands to a Pod that asks for one device."""
        found = self.admin.get(Ref("Pod", name, SYSTEM)) or {}
        said = {one["type"]: one for one in found["status"].get("conditions", ())}
        return said.get("PodScheduled", {})

    def ask(self, name: str) -> None:
        request = {"name": "r", "exactly": {"deviceClassName": self.tag}}
        meta = {"name": name, "namespace": SYSTEM}
        self.admin.create(
            {
                "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": meta,
                "spec": {"devices": {"requests": [request]}},
            }
        )  # fmt: skip
        made = pod(name, claims={"gpu": name}, nodeSelector={})
        made["metadata"] |= {"namespace": SYSTEM}
        self.admin.create(made)

    def clean(self) -> None:
        for one in ("before", "after"):
            self.admin.delete(Ref("Pod", f"{self.tag}-{one}", SYSTEM), grace_seconds=0)
            self.admin.delete(Ref("ResourceClaim", f"{self.tag}-{one}", SYSTEM))
        for rule in self.rules():
            self.admin.delete(Ref("DeviceTaintRule", rule["metadata"]["name"]))
        for name in (self.dra, self.plugin):
            self.admin.delete(Ref("Node", name))
        self.admin.delete(Ref("ResourceSlice", f"{self.tag}-s"))
        self.admin.delete(Ref("DeviceClass", self.tag))


@pytest.fixture
def ground(plane: ControlPlane) -> Iterator[Ground]:
    made = Ground(plane)
    yield made
    made.clean()


def test_a_node_pool_is_closed_kept_closed_and_opened_and_what_runs_stays(ground: Ground) -> None:
    ground.ask(before := f"{ground.tag}-before")
    until(lambda: ground.scheduled(before).get("status") == "True")
    ground.see()
    frozen = freeze_it(scope="pool", target=ground.tag)
    assert ground.turn(frozen).state == "closing", "closed is what the mirror shows closed"
    (rule,) = ground.rules()
    assert rule["spec"]["taint"]["effect"] == "NoSchedule"
    assert ground.taints(ground.plugin) == [f"berth.dev/quiescing=freeze-{frozen.public_id}"]
    assert ground.taints(ground.dra) == [], "its devices are closed, and the node takes other work"
    ground.see()
    hold = ground.turn(frozen)
    assert (hold.state, hold.wanted, hold.by_node, hold.reach["nodes"]) == ("closed", 2, False, 1)

    for name in (ground.dra, ground.plugin):
        ground.ready(name)
    ground.ask(after := f"{ground.tag}-after")
    until(lambda: ground.scheduled(after).get("status") == "False")
    assert (
        "deletionTimestamp" not in (ground.admin.get(Ref("Pod", before, SYSTEM)) or {})["metadata"]
    )

    ground.admin.delete(Ref("DeviceTaintRule", rule["metadata"]["name"]))
    ground.see()
    ground.turn(frozen)
    assert len(ground.rules()) == 1, "who takes it away goes round Berth"

    lift(
        access=somebody("admin"), public_id=frozen.public_id, request_id="request-l",
        now=timezone.now(),
    )  # fmt: skip
    hold = ground.turn(frozen)
    assert (hold.state, hold.closures) == ("open", [])
    assert ground.rules() == [] and ground.taints(ground.plugin) == []
    assert not OutboxLine.objects.filter(task="devices.tasks.turn_freeze").exists()
    for name in (ground.dra, ground.plugin):
        ground.ready(name)
    until(lambda: ground.scheduled(after).get("status") == "True")


def test_a_node_that_leaves_the_pool_or_moves_is_opened_again(ground: Ground) -> None:
    ground.see()
    frozen = freeze_it(scope="pool", target=ground.tag, path="plugin")
    ground.turn(frozen)
    assert ground.taints(ground.plugin) and not ground.rules()
    OwnershipLine.objects.filter(node=ground.plugin).update(until=NOON)
    ground.see()
    hold = ground.turn(frozen)
    assert ground.taints(ground.plugin) == [] and hold.closures == []


def test_a_driver_is_closed_by_one_rule(ground: Ground) -> None:
    ground.see()
    frozen = freeze_it(scope="driver", target=ground.driver)
    ground.turn(frozen)
    (rule,) = ground.rules()
    assert rule["spec"]["deviceSelector"] == {"driver": ground.driver}
