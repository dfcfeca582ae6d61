"""What is forgotten with time, and what never is."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.core.management import call_command

from devices.models import Claim, ClaimEvent, LeakRow
from devices.retention import BATCH, in_batches
from portal import retention
from portal.audit.models import AuditLine
from portal.settings import CELERY_BEAT_SCHEDULE
from portal.tasks import forget_old
from tests.factories import NOON, make_access, make_claim

pytestmark = pytest.mark.django_db
LONG_AGO = NOON - timedelta(days=800)


def test_events_go_only_of_asks_that_are_over_and_only_when_they_are_old():
    kept = make_claim(make_access(), now=LONG_AGO)
    other = make_access("plover", slug="reef", namespaces=("reef",))
    over = make_claim(other, kept.version, now=LONG_AGO)
    for step in ("applied", "releasing", "released"):
        Claim.objects.filter(pk=over.pk).update(state=step, since=LONG_AGO)
    ClaimEvent.objects.update(at=LONG_AGO)
    ClaimEvent.objects.create(claim=over, at=NOON, state="released")
    gone = retention.forget(NOON)
    assert gone["events of asks that are over"] == 1
    assert ClaimEvent.objects.filter(claim=kept).exists()
    assert ClaimEvent.objects.filter(claim=over).get().at == NOON
    assert Claim.objects.count() == 2, "asks themselves are the record"
    assert AuditLine.objects.exists()


def test_leaks_and_sessions_that_are_over_go():
    for key, gone_at in (("a", LONG_AGO), ("b", NOON - timedelta(days=1)), ("c", None)):
        LeakRow.objects.create(
            key=key, code="LEAK_UNRESERVED", claims=["n/c"], first_seen_at=LONG_AGO,
            seen_at=LONG_AGO, gone_at=gone_at,
        )  # fmt: skip
    Session.objects.create(session_key="old", expire_date=NOON - timedelta(seconds=1))
    Session.objects.create(session_key="new", expire_date=NOON + timedelta(hours=1))
    gone = retention.forget(NOON)
    assert gone["leaks that are gone"] == gone["sessions"] == 1
    assert set(LeakRow.objects.values_list("key", flat=True)) == {"b", "c"}
    assert Session.objects.get().session_key == "new"


def test_a_rehearsal_counts_and_deletes_nothing(capsys):
    Session.objects.create(session_key="old", expire_date=LONG_AGO)
    call_command("forgetold", "--dry-run")
    assert "1 sessions would go" in capsys.readouterr().out
    assert Session.objects.exists()
    call_command("forgetold")
    assert not Session.objects.exists()


def test_many_rows_go_in_batches():
    LeakRow.objects.bulk_create(
        LeakRow(
            key=f"k{number}", code="LEAK_UNRESERVED", claims=["n/c"], first_seen_at=LONG_AGO,
            seen_at=LONG_AGO, gone_at=LONG_AGO,
        )
        for number in range(BATCH + 5)
    )  # fmt: skip
    assert in_batches(LeakRow.objects.all()) == BATCH + 5


def test_it_is_done_every_day():
    row = next(one for one in CELERY_BEAT_SCHEDULE.values() if one["task"] == forget_old.name)
    assert row["schedule"] == 86_400.0
    forget_old()
