"""Rooms as rows, pages and API: who has to say yes, once and as it was shown."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.utils import timezone

from devices.models import Claim
from migrationplan.makingroom.rooms import NoRoom, propose
from migrationplan.models import MakeRoom, RoomPod
from portal.approvals.models import Approval
from portal.audit.models import AuditLine
from portal.errors import Invalid
from tenants.access import PlatformAccess
from tenants.models import Tenant
from tests.devices.pages import client_of, text
from tests.migrationplan.keeping import on_platform
from tests.migrationplan.makingroom.pods import HIGH, a_holder, proposed, see, turned, world


@pytest.mark.django_db
def test_one_s_own_pods_need_no_approval(claim: Claim, operator: PlatformAccess) -> None:
    room = proposed(claim, operator)
    assert (room.state, room.approval) == ("evicting", None)
    assert [str(one) for one in room.pods.all()] == ["team/low"]
    line = AuditLine.objects.get(action="room.proposed")
    assert (line.tenant, line.facts["needs_approval"]) == ("tide", False)


@pytest.mark.django_db
def test_pods_of_others_end_after_a_yes_only(claim: Claim, operator: PlatformAccess) -> None:
    room = turned(proposed(claim, operator, theirs=True))
    approval = Approval.objects.get()
    assert (room.state, room.approval) == ("asked", approval.pk)
    assert "End 1 Pod on n1" in approval.title and approval.platform_roles == ["approver"]
    with transaction.atomic():
        Approval.objects.filter(pk=approval.pk).update(state="denied", ended_at=timezone.now())
    room = turned(room)
    assert (room.state, room.code) == ("refused", "ROOM_NOT_APPROVED")
    assert proposed(claim, operator).state == "evicting", "another way may be taken then"


@pytest.mark.django_db
def test_room_is_made_once_and_as_it_was_shown(claim: Claim, operator: PlatformAccess) -> None:
    proposed(claim, operator)
    with pytest.raises(NoRoom, match="already"):
        proposed(claim, operator)
    MakeRoom.objects.update(state="done", ended_at=timezone.now())
    seen = see(*world(*a_holder("low", "gpu-0"), *HIGH))
    given = {"access": operator, "request_id": "r", "now": timezone.now()}
    with pytest.raises(NoRoom, match="choose again"):
        propose(claim, "n1:u-another", seen, reason="x", **given)
    with pytest.raises(Invalid):
        propose(claim, "n1:u-low", seen, reason=" ", **given)


@pytest.mark.django_db
def test_what_was_chosen_never_changes(claim: Claim, operator: PlatformAccess) -> None:
    proposed(claim, operator)
    for act in (
        lambda: MakeRoom.objects.update(holders=["team/other"]),
        lambda: MakeRoom.objects.all().delete(),
        lambda: RoomPod.objects.all().delete(),
    ):
        with pytest.raises(DatabaseError), transaction.atomic():
            act()


@pytest.mark.django_db
def test_nobody_is_ended_for_who_waits_no_more(claim: Claim, operator: PlatformAccess) -> None:
    room = proposed(claim, operator)
    Claim.objects.filter(pk=claim.pk).update(state="allocated")
    room = turned(room)
    assert (room.state, room.code) == ("refused", "ROOM_CHANGED")


@pytest.mark.django_db
def test_the_pages_are_honest(claim: Claim, operator: PlatformAccess) -> None:
    see(*world(*a_holder("low", "gpu-0"), *HIGH))
    client = client_of(operator.user)
    assert f"/platform/claims/{claim.public_id}/make-room/" in text(client.get("/platform/rooms/"))
    path = f"/platform/claims/{claim.public_id}/make-room/"
    page = text(client.get(path))
    assert "Kubernetes does not preempt for devices." in page and "never measured" in page
    answer = client.post(path, {"choice": "n1:u-low", "reason": ""})
    assert answer.status_code == 422 and "Say why it cannot wait" in text(answer)
    answer = client.post(path, {"choice": "n1:u-low", "reason": "a deadline"})
    room = MakeRoom.objects.get()
    assert answer["Location"] == f"/platform/rooms/{room.public_id}/"
    assert "low" in text(client.get(answer["Location"]))
    assert "being made already" in text(client.get(path))
    Tenant.objects.update(priority="continuity")
    MakeRoom.objects.update(state="done", ended_at=timezone.now())
    assert "nothing is proposed for eviction" in text(client.get(path))


@pytest.mark.django_db
def test_an_auditor_sees_and_ends_nobody(claim: Claim) -> None:
    see(*world(*a_holder("low", "gpu-0"), *HIGH))
    client = client_of(on_platform("ada", "auditor").user)
    path = f"/platform/claims/{claim.public_id}/make-room/"
    assert "to make room for requests that wait one must be" in text(client.get(path))
    assert client.post(path, {"choice": "n1:u-low", "reason": "x"}).status_code == 403


@pytest.mark.django_db
def test_the_api_names_the_ways_and_takes_one_once(claim: Claim, operator: PlatformAccess) -> None:
    see(*world(*a_holder("low", "gpu-0"), *HIGH))
    client = client_of(operator.user)
    ways = client.get(f"/api/v1/platform/claims/{claim.public_id}/room").json()
    [way] = ways["ways"]
    assert (way["choice"], way["needs_approval"]) == ("n1:u-low", False)
    assert "does not preempt" in ways["no_preemption"]
    body = {"ask": claim.public_id, "choice": way["choice"], "reason": "a deadline"}

    def post() -> Any:
        return client.post(
            "/api/v1/platform/rooms", body, content_type="application/json",
            headers={"Idempotency-Key": "k"},
        )  # fmt: skip

    first = post()
    assert first.status_code == 201 and post().json() == first.json()
    assert client.get(f"/api/v1/platform/rooms/{first.json()['id']}").json()["state"] == "evicting"
