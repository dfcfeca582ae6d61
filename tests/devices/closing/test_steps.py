"""Closing a tenant step by step: new work stops, Pods are waited for, claims reclaimed, let go."""

from __future__ import annotations

from datetime import timedelta

import pytest

from devices.asks import reconcile
from devices.cluster.gateway import Gateway, Ref
from devices.dra.closing import Phase
from devices.dra.lifecycle import State
from devices.dra.namespaces import QUOTA_NAME
from devices.models import Closure
from devices.tenancy import closures, turns
from devices.tenancy.receipts import proved
from portal.audit.models import AuditLine
from tenants import grants
from tenants.access import Access, PlatformAccess, tenant_for
from tenants.members import invite
from tenants.models import ApiToken, Grant, Invitation, Tenant, TenantNamespace
from tenants.tokens import make_token
from tests.devices.closing.acts import Clock, applied, begin, berths_names, codes, turn, waiting_pod
from tests.factories import GPU_CONTENT, NOON, make_claim, make_person, make_tenant

pytestmark = [pytest.mark.cluster, pytest.mark.django_db(transaction=True)]


def test_an_empty_tenant_is_closed_in_one_turn_with_a_receipt(
    gateway: Gateway, access: Access, admin: PlatformAccess, place: str, clock: Clock
) -> None:
    turns.turn("tidewater", gateway=gateway, now=NOON)
    assert berths_names(gateway, place)
    begin(access, admin)
    closure = turn(gateway, clock.tick())
    assert closure.phase == Phase.CLOSED
    assert closure.tenant.state == Tenant.State.CLOSED
    assert berths_names(gateway, place) == []
    assert gateway.get(Ref("ResourceQuota", QUOTA_NAME, place)) is None
    assert gateway.get(Ref("Namespace", place)) is not None, "the namespace itself stays"
    kinds = [item["kind"] for item in closure.receipt["items"]]
    assert kinds == ["ResourceQuota", "Namespace"]
    assert "gpu.deviceclass.resource.k8s.io/devices=8" in closure.receipt["items"][0]["what"]
    assert proved(closure) == []
    assert not TenantNamespace.objects.exists() and TenantNamespace.ever.count() == 1


def test_it_stops_new_work_first_waits_for_pods_and_then_reclaims(
    gateway: Gateway, access: Access, admin: PlatformAccess, place: str, clock: Clock
) -> None:
    turns.turn("tidewater", gateway=gateway, now=NOON)
    shared, single = applied(access, gateway), applied(access, gateway, GPU_CONTENT, "batch")
    pod = waiting_pod(gateway, shared)
    begin(access, admin)
    closure = turn(gateway, clock.tick())
    annotations = (gateway.get(Ref("Namespace", place)) or {})["metadata"]["annotations"]
    assert annotations["berth.dev/device-classes"] == ""
    assert annotations["berth.dev/extended-resources"] == ""
    assert annotations["berth.dev/full-claims"] == "*"
    assert closure.phase == Phase.WAITING
    (blocker,) = closure.blockers
    assert blocker["code"] == "POD_RUNNING"
    assert blocker["subject"] == f"Pod {place}/worker-0"
    assert blocker["ends_at"] == "2026-11-02T18:00:00+00:00"
    assert gateway.get(Ref("ResourceClaim", shared.object_name, place)) is not None
    assert gateway.get(Ref("ResourceClaimTemplate", single.object_name, place)) is not None

    gateway.delete(pod, grace_seconds=0)
    closure = turn(gateway, clock.tick())
    closure = closure if closure.over else turn(gateway, clock.tick())
    assert closure.phase == Phase.CLOSED
    for claim, kind in ((shared, "ResourceClaim"), (single, "ResourceClaimTemplate")):
        claim.refresh_from_db()
        assert claim.state == State.RELEASED
        assert gateway.get(Ref(kind, claim.object_name, place)) is None
    found = {item["name"]: item["how"] for item in closure.receipt["items"]}
    assert found[shared.object_name] == found[single.object_name] == "reclaimed"
    assert not access.tenant.budget_lines.filter(given_back_at=None).exists()


def test_a_pod_that_comes_back_while_claims_are_reclaimed_keeps_its_claim(
    gateway: Gateway, access: Access, admin: PlatformAccess, place: str, clock: Clock
) -> None:
    turns.turn("tidewater", gateway=gateway, now=NOON)
    kept, other = applied(access, gateway), applied(access, gateway, name="other")
    closure = begin(access, admin)
    # The last look saw no Pod; now one is there, as an administrator may start one.
    for phase in (Phase.WAITING, Phase.RECLAIMING):
        Closure.objects.filter(pk=closure.pk).update(phase=phase, empty_at=NOON)
    pod = waiting_pod(gateway, kept)
    closure = turn(gateway, clock.tick())
    assert closure.phase == Phase.RECLAIMING and "POD_RUNNING" in codes(closure)
    kept.refresh_from_db()
    other.refresh_from_db()
    assert kept.wanted and gateway.get(Ref("ResourceClaim", kept.object_name, place))
    assert other.state == State.RELEASED
    gateway.delete(pod, grace_seconds=0)
    for _ in range(3):
        closure = turn(gateway, clock.tick())
    assert closure.phase == Phase.CLOSED


def test_grants_tokens_and_invitations_end_only_once_there_is_no_way_back(
    gateway: Gateway, access: Access, admin: PlatformAccess, place: str, clock: Clock
) -> None:
    other = make_tenant("basalt", ("basalt-runs",), {"gpu": 8})
    taker = tenant_for(make_person("basil", other, "owner"), "basalt")
    turns.turn("tidewater", gateway=gateway, now=NOON)
    claim = applied(access, gateway)
    given = grants.offer(
        access=access,
        namespace="basalt-runs",
        template="gpu",
        device_class="gpu",
        count=2,
        pays="giver",
        ends_at=NOON + timedelta(days=90),
        words="",
        request_id="request-g",
        now=NOON,
    )
    grants.accept(access=taker, public_id=given.public_id, request_id="request-g", now=NOON)
    token = make_token(
        access=access,
        name="nightly",
        scopes=["read"],
        expires_at=NOON + timedelta(days=90),
        now=NOON,
        request_id="request-t",
    ).row
    invited = invite(
        access=access,
        role="member",
        note="Tansy",
        lasts=timedelta(days=20),
        now=NOON,
        request_id="request-i",
    ).row
    pod = waiting_pod(gateway, claim)
    begin(access, admin)
    turn(gateway, clock.tick())
    assert Grant.objects.get().state == "accepted"
    assert ApiToken.objects.get().revoked_at is None

    gateway.delete(pod, grace_seconds=0)
    for _ in range(2):
        closure = turn(gateway, clock.tick())
    assert closure.phase == Phase.CLOSED
    assert Grant.objects.get().state == "revoked"
    assert ApiToken.objects.get().revoked_at is not None
    assert Invitation.objects.get().revoked_at is not None
    named = {item["kind"]: item["name"] for item in closure.receipt["items"]}
    assert named["Grant"] == given.public_id
    assert (named["ApiToken"], named["Invitation"]) == (token.prefix, invited.prefix)
    sides = AuditLine.objects.filter(action="grant.revoked").values_list("tenant", flat=True)
    assert sorted(sides) == ["basalt", "tidewater"]


def test_cancelled_while_it_waits_all_is_as_before(
    gateway: Gateway, access: Access, admin: PlatformAccess, place: str, clock: Clock
) -> None:
    turns.turn("tidewater", gateway=gateway, now=NOON)
    claim = applied(access, gateway)
    asked = make_claim(access, name="late")
    pod = waiting_pod(gateway, claim)
    begin(access, admin)
    turn(gateway, clock.tick())
    asked.refresh_from_db()
    assert (asked.state, asked.code) == (State.HELD, "TENANT_CLOSING")
    closures.cancel(access=admin, tenant=access.tenant, request_id="request-c", now=clock.tick())
    turns.turn("tidewater", gateway=gateway, now=clock.now)
    reconcile.turn(asked.public_id, gateway=gateway, now=clock.now)
    annotations = (gateway.get(Ref("Namespace", place)) or {})["metadata"]["annotations"]
    assert annotations["berth.dev/device-classes"] == "gpu"
    assert annotations["berth.dev/full-claims"] == ""
    asked.refresh_from_db()
    assert asked.state == State.APPLIED
    gateway.delete(pod, grace_seconds=0)
    assert turn(gateway, clock.tick()).phase == Phase.CANCELLED
    assert Tenant.objects.get(slug="tidewater").state == Tenant.State.ACTIVE


def test_a_turn_done_twice_changes_nothing(
    gateway: Gateway, access: Access, admin: PlatformAccess, place: str, clock: Clock
) -> None:
    turns.turn("tidewater", gateway=gateway, now=NOON)
    claim = applied(access, gateway)
    pod = waiting_pod(gateway, claim)
    begin(access, admin)
    turn(gateway, clock.tick())
    before = (gateway.get(Ref("Namespace", place)) or {})["metadata"]["resourceVersion"]
    lines = AuditLine.objects.count()
    for _ in range(3):
        turn(gateway, clock.tick())
    after = (gateway.get(Ref("Namespace", place)) or {})["metadata"]["resourceVersion"]
    assert (after, AuditLine.objects.count()) == (before, lines)
    gateway.delete(pod, grace_seconds=0)
    for _ in range(5):
        closure = turn(gateway, clock.tick())
    assert closure.phase == Phase.CLOSED
    assert AuditLine.objects.filter(action="tenant.closed").count() == 1
