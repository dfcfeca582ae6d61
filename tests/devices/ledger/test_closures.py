"""Where an admin lets it, Pods that nobody asked Berth for wait for a safe ledger as well."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.utils import timezone

from devices import cluster
from devices.cluster.gateway import Gateway, Ref
from devices.dra.gates import gates
from devices.dra.ledgerclosures import rule_name, rule_object, standing, wanted
from devices.dra.snapshot import Snapshot, read
from devices.ledger import closures
from devices.models import LedgerNode, LedgerPolicy
from playground.plane.controlplane import ControlPlane
from portal.audit.models import AuditLine
from portal.errors import NotPermitted
from tenants.access import platform_access
from tenants.models import PlatformRole, User
from tests.deploy.ground import rights
from tests.devices.ledger.clusters import Cluster
from tests.devices.ledger.settling import DRIVER, GATE, KINDS, Place, until
from tests.devices.pages import client_of, text
from tests.factories import NOON, make_person

Obj = dict[str, Any]
KEY = ("d.example.com", "n1")
UNSAFE = {"n1": "LEDGER_OVERCOMMITTED"}


def two_nodes(*more: Obj) -> Snapshot:
    made = Cluster()
    for node in ("n1", "n2"):
        made.node(node, cpu="16")
        made.slices(node, mapping="2")
    return read([*made.objects, *more], gates=gates("1.37", {GATE: True}))


def a_person(role: str) -> User:
    person = make_person(role)
    PlatformRole.objects.create(user=person, role=role)
    return person


# --- the rules ---


def test_pools_of_unsafe_nodes_are_closed_and_no_others() -> None:
    assert wanted(two_nodes(), UNSAFE) == (KEY,)
    assert wanted(two_nodes(), {}) == ()


def test_devices_that_cost_their_node_nothing_stay_open() -> None:
    made = Cluster()
    made.node("n1", cpu="16")
    made.slices("n1")
    assert wanted(made.read(), UNSAFE) == ()


@pytest.mark.parametrize(
    ("value", "closed"),
    [
        pytest.param("m-1234", (), id="a node that moves is closed already"),
        pytest.param("freeze-f1", (KEY,), id="a freeze is another matter"),
    ],
)
def test_a_canary_of_a_move_gets_its_device(value: str, closed: tuple[Any, ...]) -> None:
    made = Cluster()
    made.node("n1", cpu="16")
    made.slices("n1", mapping="2")
    taint = {"key": "berth.dev/quiescing", "value": value, "effect": "NoSchedule"}
    made._found["Node", "n1"]["spec"] = {"taints": [taint]}
    assert wanted(made.read(), UNSAFE) == closed


def test_what_stands_is_known_by_its_name_and_checked_by_what_it_closes() -> None:
    rule = rule_object(KEY)
    assert standing(two_nodes(rule)) == {rule_name(KEY): KEY}
    rule["spec"]["taint"]["effect"] = "None"
    assert standing(two_nodes(rule)) == {rule_name(KEY): None}
    rule = rule_object(KEY)
    rule["spec"]["deviceSelector"]["pool"] = "n2"
    assert standing(two_nodes(rule)) == {rule_name(KEY): None}
    rule["metadata"]["name"] = "berth-isolation-1"
    assert standing(two_nodes(rule)) == {}


# --- people and pages ---


@pytest.mark.django_db
def test_the_policy_is_an_admins_and_off_until_then() -> None:
    admin, operator = a_person("admin"), a_person("operator")
    by: dict[str, Any] = {"closes": True, "request_id": "r", "now": NOON}
    with pytest.raises(NotPermitted):
        closures.set_policy(access=platform_access(operator), **by)
    assert not LedgerPolicy.current().closes
    for _ in range(2):
        closures.set_policy(access=platform_access(admin), **by)
    assert AuditLine.objects.filter(action="ledger.policy set").count() == 1

    page, path = "/platform/ledger/", "/api/v1/platform/ledger/policy"
    assert "Every Pod waits." in text(client_of(operator).get(page))
    assert client_of(operator).post(f"{page}policy/", {}).status_code == 403
    client = client_of(admin)
    assert client.post(f"{page}policy/", {}, follow=True).status_code == 200
    assert client.get(path).json()["closes"] is False
    assert client.put(path, {"closes": True}, "application/json").json()["closes"] is True
    assert "checked" in client.get(page).content.decode()


# --- on the cluster ---


class Ground:
    """A place, its ledger's rows, and turns of the worker with the rights of `deploy/`."""

    def __init__(self, plane: ControlPlane) -> None:
        admin = cluster.connect(plane.admin_kubeconfig)
        self.place = Place(admin, f"ledger-shut-{uuid4().hex[:6]}", plane.release, seed=7)
        self.admin: Gateway = self.place.gateway
        for obj in rights():
            self.admin.apply(obj, manager="berth-playground", force=True)
        self.worker = cluster.connect(
            plane.service_account_kubeconfig("berth-system", "berth-worker")
        )
        self.place.build()
        self.node = self.place.nodes[0]
        self.key = (DRIVER, self.node)

    def see(self, **on: bool) -> Snapshot:
        objects: list[Obj] = []
        for kind in (*KINDS, "DeviceTaintRule"):
            objects += ({"kind": kind, **obj} for obj in self.admin.list(kind).items)
        given = {GATE: True, "DRADeviceTaintRules": True, **on}
        return read(objects, gates=gates(self.place.release, given))

    def turn(self, minutes: float = 0, **on: bool) -> LedgerPolicy:
        """One turn; the authorizer learns of new roles within a moment."""

        def done() -> bool:
            now = timezone.now() + timedelta(minutes=minutes)
            closures.turn(self.see(**on), gateway=self.worker, now=now)
            return not LedgerPolicy.current().answer.startswith("devicetaintrules")

        until(done, "the turn was never let")
        return LedgerPolicy.objects.get()

    def rule(self) -> Obj | None:
        return self.admin.get(Ref("DeviceTaintRule", rule_name(self.key)))

    def state(self, state: str, code: str = "") -> None:
        LedgerNode.objects.update_or_create(
            node=self.node, defaults={"state": state, "code": code, "since": timezone.now()}
        )

    def pod(self, name: str) -> str:
        """Made with kubectl, past Berth, with a claim for a core of the node."""
        place = self.place
        claim = {"name": name, "namespace": place.name}
        self.admin.create(
            {"kind": "ResourceClaim", "metadata": claim, "spec": place._asking("core")}
        )
        spec = place._pinned([place._container("m", ["core"])], self.node)
        spec["resourceClaims"] = [{"name": "core", "resourceClaimName": name}]
        return place._pod(name, spec)

    def where(self, pod: str) -> str:
        found = self.admin.get(Ref("Pod", pod, self.place.name)) or {}
        if found.get("spec", {}).get("nodeName"):
            return "placed"
        conditions = found.get("status", {}).get("conditions", ())
        return " ".join(one.get("message", "") for one in conditions)


@pytest.fixture
def ground(plane: ControlPlane) -> Iterator[Ground]:
    made = Ground(plane)
    yield made
    made.admin.delete(Ref("DeviceTaintRule", rule_name(made.key)))
    made.place.remove()


@pytest.mark.django_db(transaction=True)
def test_pods_made_past_berth_wait_until_the_ledger_is_safe(ground: Ground) -> None:
    before = ground.pod("before")
    until(lambda: ground.where(before) == "placed", "the first Pod was never placed")
    ground.state("unsafe", "LEDGER_OVERCOMMITTED")
    LedgerPolicy.objects.create()
    assert (ground.turn().closed, ground.rule()) == ([], None), "off until an admin says so"

    LedgerPolicy.objects.update(closes=True)
    [closed] = ground.turn().closed
    assert (closed["pool"], closed["code"]) == (ground.node, "LEDGER_OVERCOMMITTED")
    rule = ground.rule()
    assert rule is not None and rule["spec"]["taint"]["effect"] == "NoSchedule"
    waits = ground.pod("waits")
    until(
        lambda: "cannot allocate all claims" in ground.where(waits), "the second Pod does not wait"
    )
    assert ground.where(before) == "placed", "what runs keeps its devices"
    ground.admin.delete(Ref("DeviceTaintRule", rule_name(ground.key)))
    ground.turn()
    assert ground.rule() is not None, "who takes it away goes round Berth"
    ground.state("rebuilding", "LEDGER_REBUILDING")
    assert ground.turn().closed[0]["since"] == closed["since"], "closed until it is safe"

    ground.state("safe")
    assert (ground.turn().closed, ground.rule()) == ([], None)
    until(lambda: ground.where(waits) == "placed", "the second Pod was never placed")
    lines = AuditLine.objects.filter(action__in=["ledger.closed", "ledger.opened"])
    assert list(lines.order_by("pk").values_list("action", flat=True)) == [
        "ledger.closed", "ledger.opened",
    ]  # fmt: skip


@pytest.mark.django_db(transaction=True)
def test_a_driver_may_restart_and_a_policy_may_end(ground: Ground) -> None:
    LedgerPolicy.objects.create(closes=True)
    ground.state("rebuilding", "LEDGER_REBUILDING")
    assert ground.turn().closed == [], "a driver that restarts is back within a minute"
    assert len(ground.turn(minutes=2).closed) == 1 and ground.rule() is not None
    LedgerPolicy.objects.update(closes=False)
    assert (ground.turn().closed, ground.rule()) == ([], None)


@pytest.mark.django_db(transaction=True)
def test_where_rules_are_not_served_it_says_so(ground: Ground) -> None:
    LedgerPolicy.objects.create(closes=True)
    ground.state("unsafe", "LEDGER_OVERCOMMITTED")
    assert ground.turn(DRADeviceTaintRules=False).answer == closures.NOT_SERVED
    assert ground.rule() is None
    ground.turn()
    assert LedgerPolicy.objects.get().answer == ""
