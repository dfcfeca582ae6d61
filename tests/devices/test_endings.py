"""Asks that end by themselves: told before, extended in time, released once, nothing evicted."""

from __future__ import annotations

import threading
from datetime import timedelta

import pytest
from django.db import connection

from devices.asks.claims import (
    AlreadyReleased,
    TenantClosing,
    describe_claim,
    extend_claim,
    release_claim,
)
from devices.asks.endings import expire_due, warn_due
from devices.dra.lifecycle import State
from devices.models import Claim, ClaimEvent
from portal.alerts.models import Alert
from portal.audit.models import AuditLine
from portal.audit.record import all_breaks
from portal.errors import Invalid, NotPermitted
from portal.outbox.models import OutboxLine
from tenants.access import Access, tenant_for
from tenants.models import Tenant
from tests.factories import GPU_CONTENT, NOON, make_access, make_claim, make_version

DAY = timedelta(days=1)
ASKED = {"request_id": "request-0001", "now": NOON}


def lines(action: str) -> list[AuditLine]:
    return list(AuditLine.objects.filter(action=action))


@pytest.mark.django_db
def test_at_its_end_an_ask_is_released_once_by_berth() -> None:
    claim = make_claim(make_access(), days=3)
    assert claim.expires_at == NOON + 3 * DAY
    assert expire_due(NOON + 3 * DAY - timedelta(seconds=1)) == 0
    OutboxLine.objects.all().delete()
    assert [expire_due(NOON + 3 * DAY) for _ in range(2)] == [1, 0]
    claim.refresh_from_db()
    assert (claim.state, claim.expired, claim.wanted) == (State.RELEASING, True, False)
    assert OutboxLine.objects.get().key == claim.public_id, "a turn takes it out of the cluster"
    event = ClaimEvent.objects.filter(claim=claim)[0]
    assert (event.code, event.text) == ("EXPIRED", "Its time was over.")
    (line,) = lines("claim.expired")
    assert (line.person, line.tenant, line.subject) == (
        None,
        "tidewater",
        f"claim {claim.public_id}",
    )
    assert list(all_breaks()) == []


@pytest.mark.django_db
@pytest.mark.parametrize("state", list(State))
def test_what_has_gone_does_not_go_again(state: State) -> None:
    claim = make_claim(make_access(), days=3)
    if state != State.REQUESTED:
        Claim.objects.filter(pk=claim.pk).update(state=state)
    if state == State.RELEASING:
        Claim.objects.filter(pk=claim.pk).update(released_at=NOON)
    expected = 0 if state in {State.RELEASING, State.RELEASED} else 1
    assert expire_due(NOON + 4 * DAY) == expected


@pytest.mark.django_db
def test_an_ask_without_an_end_stays() -> None:
    claim = make_claim(make_access())
    assert claim.expires_at is None
    assert (expire_due(NOON + 900 * DAY), warn_due(NOON + 900 * DAY)) == (0, 0)


@pytest.mark.django_db
def test_its_people_are_told_a_week_and_a_day_before() -> None:
    access = make_access()
    claim = make_claim(access, days=30)
    told = [(day, warn_due(NOON + day * DAY)) for day in range(31) if day < 30]
    assert [day for day, count in told if count] == [23, 29]
    texts = ClaimEvent.objects.filter(claim=claim, code="ENDS_SOON").values_list("text", flat=True)
    assert set(texts) == {"Ends 2 Dec 12:00 UTC unless somebody extends it."}
    assert ClaimEvent.objects.filter(claim=claim, code="ENDS_SOON").count() == 2
    alert = Alert.objects.get(code="ENDS_SOON")
    assert (alert.tenant, alert.severity, alert.times) == ("tidewater", "warning", 2)
    assert alert.over_at is None
    extend_claim(
        access=tenant_for(access.user, "tidewater"),
        public_id=claim.public_id,
        days=30,
        request_id="request-0002",
        now=NOON + 29 * DAY,
    )
    alert.refresh_from_db()
    assert alert.over_at is not None


@pytest.mark.django_db
def test_extending_moves_the_end_and_the_warnings() -> None:
    access = make_access()
    claim = make_claim(access, days=8)
    assert warn_due(NOON + 2 * DAY) == 1
    later = {"request_id": "request-0002", "now": NOON + 2 * DAY}
    claim = extend_claim(access=access, public_id=claim.public_id, days=30, **later)
    assert (claim.expires_at, claim.warned, claim.revision) == (NOON + 32 * DAY, None, 2)
    assert expire_due(NOON + 9 * DAY) == 0
    assert warn_due(NOON + 26 * DAY) == 1
    (line,) = lines("claim.extended")
    assert line.facts == {
        "before": (NOON + 8 * DAY).isoformat(),
        "after": (NOON + 32 * DAY).isoformat(),
    }
    claim = extend_claim(access=access, public_id=claim.public_id, days=None, **later)
    assert claim.expires_at is None
    assert ClaimEvent.objects.filter(claim=claim)[0].text == "It no longer ends by itself."


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("tenant_days", "template_days", "days", "expected"),
    [
        pytest.param(None, None, None, None, id="nothing asks for an end"),
        pytest.param(14, None, None, 14, id="the tenant's maximum where nothing is said"),
        pytest.param(14, 7, None, 7, id="the stricter one counts"),
        pytest.param(None, 7, 5, 5, id="less than the maximum is what was asked for"),
        pytest.param(14, 7, 8, "from 1 to 7", id="more than the template allows"),
        pytest.param(5, None, 6, "from 1 to 5", id="more than the tenant may"),
        pytest.param(None, None, 0, "from 1 to 730", id="no time at all"),
    ],
)
def test_a_maximum_of_the_template_or_the_tenant_binds_asking_and_extending(
    tenant_days: int | None,
    template_days: int | None,
    days: int | None,
    expected: int | str | None,
) -> None:
    access = make_access()
    Tenant.objects.update(longest_days=tenant_days)
    version = make_version(content={**GPU_CONTENT, "longest_days": template_days})
    if isinstance(expected, str):
        with pytest.raises(Invalid) as refused:
            make_claim(access, version, days=days)
        assert expected in refused.value.fields["days"]
        assert not Claim.objects.exists()
        claim = make_claim(access, version)
        with pytest.raises(Invalid) as refused:
            extend_claim(access=access, public_id=claim.public_id, days=days, **ASKED)
        assert expected in refused.value.fields["days"]
        return
    claim = make_claim(access, version, days=days)
    assert claim.expires_at == (None if expected is None else NOON + expected * DAY)


@pytest.mark.django_db
def test_where_there_is_a_maximum_the_end_cannot_be_taken_away() -> None:
    access = make_access()
    Tenant.objects.update(longest_days=14)
    claim = make_claim(access)
    with pytest.raises(Invalid) as refused:
        extend_claim(access=access, public_id=claim.public_id, days=None, **ASKED)
    assert "must end" in refused.value.fields["days"]


def released(access: Access, claim: Claim) -> None:
    release_claim(access=access, public_id=claim.public_id, **ASKED)


def over(access: Access, claim: Claim) -> None:
    assert expire_due(NOON + 9 * DAY) == 1


def closing(access: Access, claim: Claim) -> None:
    Tenant.objects.update(state=Tenant.State.CLOSING)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("before", "refusal", "said"),
    [
        pytest.param(released, AlreadyReleased, "it was released", id="released by a person"),
        pytest.param(over, AlreadyReleased, "its time was over", id="its time is over"),
        pytest.param(closing, TenantClosing, "is being closed", id="the tenant is being closed"),
    ],
)
def test_what_cannot_be_extended_says_why(before, refusal, said) -> None:  # type: ignore[no-untyped-def]
    access = make_access()
    claim = make_claim(access, days=8)
    before(access, claim)
    with pytest.raises(refusal, match=said):
        extend_claim(access=access, public_id=claim.public_id, days=3, **ASKED)


@pytest.mark.django_db
def test_a_viewer_neither_extends_nor_writes_notes_and_a_stranger_finds_nothing() -> None:
    access = make_access()
    claim = make_claim(access)
    viewer = Access(access.tenant, "viewer", access.user)
    stranger = make_access("basil", slug="basalt", namespaces=("basalt-a",))
    asks = {"public_id": claim.public_id, **ASKED}
    for act in (
        lambda who: extend_claim(access=who, days=3, **asks),
        lambda who: describe_claim(access=who, note="mine", **asks),
    ):
        with pytest.raises(NotPermitted):
            act(viewer)
        with pytest.raises(Claim.DoesNotExist):
            act(stranger)


@pytest.mark.django_db
def test_a_note_is_text_that_its_tenant_reads() -> None:
    access = make_access()
    claim = make_claim(access, note="  for the review <b>of May</b> ")
    assert claim.note == "for the review <b>of May</b>"
    asks = {"access": access, "public_id": claim.public_id, **ASKED}
    assert describe_claim(note="", **asks).note == ""
    assert describe_claim(note="", **asks).revision == 2, "twice changes nothing"
    with pytest.raises(Invalid, match="Nothing was written"):
        describe_claim(note="x" * 241, **asks)
    assert [line.facts for line in lines("claim.described")] == [{"note": ""}]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("round_", range(6))
def test_extending_at_the_last_moment_either_comes_first_or_is_refused(round_: int) -> None:
    """Both at once: never an ask that was extended and goes, nor one that was refused and stays."""
    access = make_access(slug=f"tidewater-{round_}", namespaces=(f"tide-{round_}",))
    claim = make_claim(access, days=1)
    end, start = NOON + DAY, threading.Barrier(2)
    outcome: dict[str, object] = {}

    def extend() -> None:
        start.wait()
        try:
            extend_claim(
                access=access,
                public_id=claim.public_id,
                days=5,
                request_id="request-0002",
                now=end,
            )
            outcome["extended"] = True
        except AlreadyReleased:
            outcome["extended"] = False
        finally:
            connection.close()

    def sweep() -> None:
        start.wait()
        try:
            outcome["ended"] = expire_due(end)
        finally:
            connection.close()

    threads = [threading.Thread(target=one) for one in (extend, sweep)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    claim.refresh_from_db()
    assert outcome == (
        {"extended": True, "ended": 0} if claim.wanted else {"extended": False, "ended": 1}
    )
    assert claim.expired is not claim.wanted
    assert (claim.expires_at == end + 5 * DAY) is claim.wanted
