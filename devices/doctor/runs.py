"""Asking for a look, looking, and what the last look said. Pages never ask the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction

from devices.cluster.gateway import Gateway
from devices.doctor.asking import ActAs
from devices.doctor.checks import examine
from devices.doctor.findings import Report, Severity, report_of
from devices.doctor.look import look
from devices.models import DoctorRun
from portal import news
from portal.alerts.raising import About, over, raise_alert
from portal.alerts.rules import Severity as Ringing
from portal.audit.record import record
from portal.outbox import lines as outbox
from tenants.access import PlatformAccess
from tenants.policy import PlatformAct

LOOK = "devices.tasks.look_with_doctor"
TOPIC = "doctor"
ALERT = "DOCTOR_FOUND_ERRORS"
KEPT_RUNS = 30
#: A look that nobody took up for so long is forgotten: asking again makes another.
PATIENCE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Last:
    """The newest report, and whether somebody waits for a newer one."""

    report: Report | None
    looked_at: datetime | None
    failed: str
    waiting_since: datetime | None


def last(now: datetime) -> Last:
    """Two queries."""
    done = DoctorRun.objects.exclude(looked_at=None).first()
    asked = DoctorRun.objects.filter(looked_at=None, asked_at__gt=now - PATIENCE)
    since = asked.order_by("asked_at").values_list("asked_at", flat=True).first()
    if done is None:
        return Last(None, None, "", since)
    report = None if done.failed else report_of(done.report)
    return Last(report, done.looked_at, done.failed, since)


@transaction.atomic
def ask(*, access: PlatformAccess, request_id: str, now: datetime) -> DoctorRun:
    """Asks a worker to look now; asking again before it did is the same look."""
    access.require(PlatformAct.EXAMINE)
    person = access.user.person
    row, made = DoctorRun.objects.get_or_create(
        asked_by=person,
        looked_at=None,
        defaults={"asked_at": now, "request_id": request_id},
    )
    if not made and row.asked_at < now - PATIENCE:
        row.asked_at, row.request_id = now, request_id
        row.save(update_fields=["asked_at", "request_id"])
        made = True
    if made:
        transaction.on_commit(lambda: outbox.hint(LOOK, row.public_id), robust=True)
        record(
            action="doctor.asked",
            subject="everything",
            request_id=request_id,
            at=now,
            person=person,
        )
    return row


def run(public_id: str, *, gateway: Gateway, act_as: ActAs, now: datetime) -> Report | None:
    """Looks, and stores what was seen; None where that look was done already.

    Without an id it is the clock that asks.
    """
    if not public_id:
        row, _ = DoctorRun.objects.get_or_create(
            asked_by=None, looked_at=None, defaults={"asked_at": now}
        )
    else:
        found = DoctorRun.objects.filter(public_id=public_id, looked_at=None).first()
        if found is None:
            return None
        row = found
    report = examine(look(gateway, act_as=act_as, now=now))
    with transaction.atomic():
        DoctorRun.objects.filter(pk=row.pk).update(looked_at=now, report=report.as_json())
        _ring(report, now)
        kept = DoctorRun.objects.values_list("pk", flat=True)[:KEPT_RUNS]
        DoctorRun.objects.exclude(pk__in=list(kept)).delete()
    news.publish([TOPIC], tenant=news.PLATFORM)
    return report


def _ring(report: Report, now: datetime) -> None:
    """One alert for all errors: the page has them one by one."""
    errors = [one for one in report.findings if one.severity is Severity.ERROR]
    if not errors:
        over(ALERT, TOPIC, now=now)
        return
    raise_alert(
        About(
            code=ALERT,
            subject=TOPIC,
            title=f"The doctor found {len(errors)} errors",
            severity=Ringing.WARNING,
            words=errors[0].sentence,
            path="/platform/doctor/",
            evidence=tuple((one.code, one.sentence) for one in errors[:8]),
        ),
        now=now,
    )
