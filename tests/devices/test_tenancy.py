"""Turns of tenants against the real API server: what may be had stands there, come what may."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from devices import cluster
from devices.cluster.gateway import Forbidden, Gateway, Ref
from devices.dra.namespaces import QUOTA_NAME
from devices.models import Freeze, NamespaceStanding, Observed, Sync, TenantStanding
from devices.models.standing import LEASE
from devices.tenancy import turns
from playground.plane.controlplane import ControlPlane
from portal.audit.models import AuditLine
from portal.outbox.models import OutboxLine
from tenants.access import tenant_for
from tenants.allowance import promise_turn
from tenants.models import Tenant
from tests.factories import GPU_CONTENT, NOON, make_claim, make_person, make_tenant, make_version

pytestmark = [pytest.mark.cluster, pytest.mark.django_db(transaction=True)]

LATER = NOON + timedelta(minutes=1)
Obj = dict[str, Any]


@pytest.fixture(autouse=True)
def classes() -> None:
    """The mirror knows two classes; one has an extended resource."""
    Sync.objects.create(kind="DeviceClass", listed_at=NOON, alive_at=NOON)
    for name, extended in (("gpu", "example.com/gpu"), ("nic", "")):
        spec = {"extendedResourceName": extended} if extended else {}
        observed(name, "DeviceClass", {"metadata": {"name": name}, "spec": spec})


def observed(name: str, kind: str, obj: Obj, **columns: Any) -> Observed:
    return Observed.objects.create(
        uid=f"{kind}-{name}",
        kind=kind,
        api_version="v1",
        name=name,
        resource_version="1",
        raw=json.dumps(obj).encode(),
        seen_at=NOON,
        **columns,
    )


def a_tenant(place: str, **limits: int | None) -> Tenant:
    return make_tenant(namespaces=(place,), limits=limits or None)


def namespace_of(gateway: Gateway, name: str) -> Obj:
    found = gateway.get(Ref("Namespace", name))
    assert found is not None
    return found


def said(gateway: Gateway, name: str, key: str) -> str:
    """What the namespace's annotation says."""
    return str(namespace_of(gateway, name)["metadata"]["annotations"][f"berth.dev/{key}"])


def hard(gateway: Gateway, name: str) -> dict[str, str]:
    found = gateway.get(Ref("ResourceQuota", QUOTA_NAME, name))
    return dict(found["spec"]["hard"]) if found else {}


def standing(name: str) -> NamespaceStanding:
    return NamespaceStanding.objects.get(namespace__name=name)


def repairs() -> list[AuditLine]:
    return list(AuditLine.objects.filter(action="cluster.repaired"))


def test_a_turn_writes_what_the_tenant_may_have_and_the_next_one_nothing(
    gateway: Gateway, place: str
) -> None:
    tenant = a_tenant(place, gpu=4, nic=None)
    promise_turn(tenant, request_id="request-1", now=NOON)
    assert turns.turn(tenant.slug, gateway=gateway, now=NOON)
    made = namespace_of(gateway, place)
    assert made["metadata"]["labels"]["berth.dev/tenant"] == tenant.slug
    assert said(gateway, place, "device-classes") == "gpu,nic"
    assert said(gateway, place, "extended-resources") == "example.com/gpu"
    assert hard(gateway, place) == {
        "gpu.deviceclass.resource.k8s.io/devices": "4",
        "requests.deviceclass.resource.kubernetes.io/gpu": "4",
        "requests.example.com/gpu": "4",
    }
    assert not OutboxLine.objects.exists()
    before = namespace_of(gateway, place)["metadata"]["resourceVersion"]
    assert turns.turn(tenant.slug, gateway=gateway, now=LATER)
    assert namespace_of(gateway, place)["metadata"]["resourceVersion"] == before
    row = standing(place)
    assert AuditLine.objects.get().subject == f"Namespace {place}"
    assert (row.state, row.origin, row.uid) == ("in force", "made", made["metadata"]["uid"])
    assert [line.action for line in AuditLine.objects.all()] == ["namespace.made"]


@pytest.mark.parametrize(
    ("kind", "patch", "seen"),
    [
        pytest.param(
            "Namespace",
            {"metadata": {"annotations": {"berth.dev/device-classes": "*"}}},
            "berth.dev/device-classes is '*'",
            id="somebody allows himself every class",
        ),
        pytest.param(
            "Namespace",
            {"metadata": {"labels": {"berth.dev/tenant": None}}},
            "berth.dev/tenant is 'missing'",
            id="somebody takes the label off",
        ),
        pytest.param(
            "ResourceQuota",
            {"spec": {"hard": {"gpu.deviceclass.resource.k8s.io/devices": "400"}}},
            "gpu.deviceclass.resource.k8s.io/devices is 400, not 4",
            id="somebody raises the quota",
        ),
        pytest.param(
            "ResourceQuota",
            {"metadata": {"labels": {"berth.dev/managed": None}}},
            "berth.dev/managed is 'missing'",
            id="somebody takes the quota's label off",
        ),
    ],
)
def test_what_others_change_is_put_back_and_audited(
    gateway: Gateway, place: str, kind: str, patch: Obj, seen: str
) -> None:
    tenant = a_tenant(place, gpu=4)
    turns.turn(tenant.slug, gateway=gateway, now=NOON)
    before = (said(gateway, place, "device-classes"), hard(gateway, place))
    ref = Ref("Namespace", place) if kind == "Namespace" else Ref(kind, QUOTA_NAME, place)
    gateway.merge(ref, patch)
    turns.turn(tenant.slug, gateway=gateway, now=LATER)
    assert (said(gateway, place, "device-classes"), hard(gateway, place)) == before
    assert namespace_of(gateway, place)["metadata"]["labels"]["berth.dev/tenant"] == tenant.slug
    (line,) = repairs()
    assert line.subject.startswith(kind) and line.tenant == tenant.slug
    assert line.source == "cluster" and line.person is None
    assert seen in line.facts["seen"][0]
    assert standing(place).repaired_at == LATER


@pytest.fixture
def second(gateway: Gateway, place: str) -> Iterator[str]:
    """Another namespace, gone afterwards."""
    yield f"{place}-b"
    gateway.delete(Ref("Namespace", f"{place}-b"))


def test_two_namespaces_on_one_limit_do_not_both_get_what_one_used_by_hand(
    gateway: Gateway, place: str, second: str
) -> None:
    tenant = make_tenant(namespaces=(place, second), limits={"gpu": 4})
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu", "count": 3}}]
    by_hand = {
        "kind": "ResourceClaim",
        "metadata": {"name": "by-hand", "namespace": place, "uid": "by-hand"},
        "spec": {"devices": {"requests": requests}},
    }
    observed("by-hand", "ResourceClaim", by_hand, namespace=place, classes=["gpu"], counts=[3])
    assert turns.turn(tenant.slug, gateway=gateway, now=NOON)
    key = "gpu.deviceclass.resource.k8s.io/devices"
    assert hard(gateway, place)[key] == "4", "its own three and the one that is left"
    assert hard(gateway, second)[key] == "1", "only the one that is left"


def test_a_quota_that_somebody_deleted_is_made_again(gateway: Gateway, place: str) -> None:
    tenant = a_tenant(place, gpu=4)
    turns.turn(tenant.slug, gateway=gateway, now=NOON)
    gateway.delete(Ref("ResourceQuota", QUOTA_NAME, place))
    turns.turn(tenant.slug, gateway=gateway, now=LATER)
    assert hard(gateway, place)
    assert [line.facts["seen"] for line in repairs()] == [["it is gone"]]


def test_what_berth_itself_changes_is_no_repair(gateway: Gateway, place: str) -> None:
    tenant = a_tenant(place, gpu=4)
    turns.turn(tenant.slug, gateway=gateway, now=NOON)
    tenant.limits.update(amount=6)
    turns.turn(tenant.slug, gateway=gateway, now=LATER)
    assert hard(gateway, place)["requests.example.com/gpu"] == "6"
    assert repairs() == []


def test_a_turn_that_died_after_writing_takes_its_work_for_its_own(
    gateway: Gateway, place: str
) -> None:
    tenant = a_tenant(place, gpu=4)
    turns.turn(tenant.slug, gateway=gateway, now=NOON)
    applied = standing(place).applied
    tenant.limits.update(amount=6)
    turns.turn(tenant.slug, gateway=gateway, now=NOON)
    # As if the second turn had written to the cluster and died before it could record that.
    row = NamespaceStanding.objects.filter(namespace__name=place)
    row.update(applied=applied, intended=standing(place).applied)
    turns.turn(tenant.slug, gateway=gateway, now=LATER)
    assert repairs() == []


def test_a_namespace_that_berth_did_not_make_is_not_made_again(
    gateway: Gateway, place: str
) -> None:
    gateway.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}})
    tenant = a_tenant(place, gpu=4)
    turns.turn(tenant.slug, gateway=gateway, now=NOON)
    assert standing(place).origin == "adopted"
    gone(gateway, place)
    turns.turn(tenant.slug, gateway=gateway, now=LATER)
    row = standing(place)
    assert (row.state, row.code) == ("missing", "NAMESPACE_MISSING")
    assert "Berth did not make it" in row.why
    assert gateway.get(Ref("Namespace", place)) is None


def test_a_namespace_that_berth_made_is_made_again(gateway: Gateway, place: str) -> None:
    tenant = a_tenant(place, gpu=4)
    turns.turn(tenant.slug, gateway=gateway, now=NOON)
    gone(gateway, place)
    turns.turn(tenant.slug, gateway=gateway, now=LATER)
    assert said(gateway, place, "device-classes") == "gpu"
    assert standing(place).state == "in force"


def gone(gateway: Gateway, place: str) -> None:
    gateway.delete(Ref("Namespace", place))
    end = time.monotonic() + 20
    while gateway.get(Ref("Namespace", place)):
        assert time.monotonic() < end
        time.sleep(0.1)


def test_another_tenants_namespace_is_not_overruled(gateway: Gateway, place: str) -> None:
    labels = {"berth.dev/tenant": "somebody-else"}
    metadata = {"name": place, "labels": labels}
    gateway.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    tenant = a_tenant(place, gpu=4)
    turns.turn(tenant.slug, gateway=gateway, now=NOON)
    assert namespace_of(gateway, place)["metadata"]["labels"]["berth.dev/tenant"] == "somebody-else"
    assert standing(place).code == "NAMESPACE_OF_ANOTHER"


def test_freezes_are_written_with_every_name_that_leads_to_a_class(
    gateway: Gateway, place: str
) -> None:
    tenant = a_tenant(place, gpu=4)
    common: Obj = {"reason": "r", "frozen_by": "00000000-0000-4000-8000-000000000001"}
    common |= {"frozen_at": NOON, "request_id": "request-1"}
    Freeze.objects.create(scope="class", target="gpu", strict=True, **common)
    Freeze.objects.create(scope="tenant", target="somebody-else", **common)
    Freeze.objects.create(scope="class", target="nic", until=NOON, **common)
    turns.turn(tenant.slug, gateway=gateway, now=NOON)
    assert said(gateway, place, "frozen") == (
        "deviceclass.resource.kubernetes.io/gpu!,example.com/gpu!,gpu!"
    )


def test_a_tenant_that_is_closing_may_ask_for_nothing_new(gateway: Gateway, place: str) -> None:
    tenant = a_tenant(place, gpu=4)
    turns.turn(tenant.slug, gateway=gateway, now=NOON)
    Tenant.objects.update(state=Tenant.State.CLOSING)
    turns.turn(tenant.slug, gateway=gateway, now=NOON)
    assert (said(gateway, place, "device-classes"), said(gateway, place, "extended-resources")) == (
        "",
        "",
    )
    assert hard(gateway, place)["requests.example.com/gpu"] == "4"


def test_a_shared_claim_is_full_with_as_many_pods_as_its_template_allows(
    gateway: Gateway, place: str
) -> None:
    tenant = a_tenant(place)
    access = tenant_for(make_person("avocet", tenant), tenant.slug)
    version = make_version(content={**GPU_CONTENT, "shared": True, "pods": 2})
    claim = make_claim(access, version)
    for number, phase in enumerate(("Running", "Succeeded", "Pending")):
        observed(
            f"p{number}", "Pod", {}, namespace=place, phase=phase, uses=[claim.object_name, "other"]
        )
    observed("elsewhere", "Pod", {}, namespace="other", uses=[claim.object_name])
    turns.turn(tenant.slug, gateway=gateway, now=NOON)
    assert said(gateway, place, "full-claims") == claim.object_name
    Observed.objects.filter(name="p0").update(phase="Failed")
    turns.turn(tenant.slug, gateway=gateway, now=LATER)
    assert said(gateway, place, "full-claims") == ""


def test_without_the_classes_nothing_is_written_and_the_promise_stands(
    gateway: Gateway, place: str
) -> None:
    """Unknown is not none: names would lose their guard, and quotas their keys."""
    Sync.objects.all().delete()
    tenant = a_tenant(place, gpu=4)
    promise_turn(tenant, request_id="request-1", now=NOON)
    assert not turns.turn(tenant.slug, gateway=gateway, now=NOON)
    assert not turns.turn_policy(gateway=gateway, now=NOON)
    assert gateway.get(Ref("Namespace", place)) is None
    assert OutboxLine.objects.exists()


def test_a_missing_right_is_named_and_tried_again(
    plane_137: ControlPlane, gateway: Gateway, place: str
) -> None:
    tenant = a_tenant(place, gpu=4)
    promise_turn(tenant, request_id="request-1", now=NOON)
    nobody = cluster.connect(plane_137.kubeconfig("nobody-in-particular"))
    with pytest.raises(Forbidden):
        turns.turn(tenant.slug, gateway=nobody, now=NOON)
    row = standing(place)
    assert (row.state, row.code) == ("waiting", "RIGHTS_MISSING")
    assert OutboxLine.objects.exists()
    turns.turn(tenant.slug, gateway=gateway, now=NOON)
    assert standing(place).state == "in force"


def test_one_turn_at_a_time_and_the_next_is_called_for(gateway: Gateway, place: str) -> None:
    tenant = a_tenant(place, gpu=4)
    promise_turn(tenant, request_id="request-1", now=NOON)
    row = TenantStanding.objects.create(tenant=tenant)
    assert row.take_lease("dead", NOON)
    assert not turns.turn(tenant.slug, gateway=gateway, now=NOON)
    assert OutboxLine.objects.get().due_at <= NOON + LEASE
    assert row.drop_lease("dead"), "somebody came meanwhile"
    assert turns.turn(tenant.slug, gateway=gateway, now=NOON)


def test_tenants_that_nobody_looked_at_are_found(gateway: Gateway, place: str) -> None:
    tenant = a_tenant(place, gpu=4)
    window = timedelta(minutes=10)
    assert turns.unseen(NOON, older_than=window) == [tenant.slug]
    turns.turn(tenant.slug, gateway=gateway, now=NOON)
    assert turns.unseen(NOON + window, older_than=window) == []
    assert turns.unseen(NOON + window * 2, older_than=window) == [tenant.slug]


def test_the_policies_parameter_is_kept(gateway: Gateway) -> None:
    system = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "berth-system"}}
    gateway.apply(system, manager="test-namespaces")
    ref = Ref("ConfigMap", "berth-policy", "berth-system")
    assert turns.turn_policy(gateway=gateway, now=NOON)
    assert turns.turn_policy(gateway=gateway, now=NOON)
    gateway.merge(ref, {"data": {"extended-resources": ""}})
    assert turns.turn_policy(gateway=gateway, now=NOON)
    told = AuditLine.objects.filter(action="cluster.parameter_written").order_by("pk")
    assert [line.facts["seen"] for line in told][-1] == ["extended-resources differs"]
    assert len(told) <= 2, "written where it differs, and told each time"
    found = gateway.get(ref)
    assert found is not None and found["data"] == {
        "extended-resources": "example.com/gpu",
        "frozen-changes": "",
    }
