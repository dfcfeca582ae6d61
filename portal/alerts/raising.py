"""Saying that something is so, and that it is over; who says it needs no thought of who is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F
from django.utils.module_loading import import_string

from portal import news
from portal.alerts.models import Alert, Delivery, Route, Silence
from portal.alerts.rules import (
    Happening,
    Severity,
    Told,
    escalates_at,
    fingerprint,
    silenced,
)
from portal.outbox import lines

DELIVER = "portal.alerts.tasks.deliver"


@dataclass(frozen=True, slots=True)
class About:
    """What an alert says. `tenant` is empty for the platform's own, `person` set for one alone."""

    code: str
    subject: str
    title: str
    severity: Severity = Severity.WARNING
    failure_class: str = ""
    tenant: str = ""
    person: UUID | None = None
    words: str = ""
    path: str = ""
    evidence: tuple[tuple[str, str], ...] = ()

    @property
    def fingerprint(self) -> str:
        return _fingerprint(self.code, self.subject, self.tenant, self.person)

    def fields(self) -> Mapping[str, object]:
        return {
            "code": self.code,
            "failure_class": self.failure_class,
            "severity": self.severity.value,
            "tenant": self.tenant,
            "person": self.person,
            "subject": self.subject,
            "title": self.title,
            "words": self.words,
            "path": self.path,
            "evidence": [
                {"label": label, "value": value}
                for label, value in (*self.evidence, *_what_to_do(self.code))
            ],
        }


def _what_to_do(code: str) -> tuple[tuple[str, str], ...]:
    """Where the code's page is, for whoever is told of it elsewhere than in Berth."""
    address = import_string(settings.CODE_PAGES)(code)
    return (("What to do", f"{settings.PUBLIC_URL}{address}"),) if address else ()


def _fingerprint(code: str, subject: str, tenant: str, person: UUID | None) -> str:
    return fingerprint(code, f"{tenant}/{person}" if person else tenant, subject)


def raise_alert(about: About, *, now: datetime, request_id: str = "") -> Alert:
    """Says that this is so. While it is open, saying it again only counts; any number may say it
    at the same time. What it tells leaves in the caller's transaction, so a message is never of
    something that did not happen.
    """
    with transaction.atomic():
        found = _again(about, now)
        if found is None:
            try:
                with transaction.atomic():
                    found = Alert.objects.create(
                        fingerprint=about.fingerprint,
                        opened_at=now,
                        seen_at=now,
                        request_id=request_id,
                        **about.fields(),
                    )
            except IntegrityError:
                # Somebody else opened it between our look and our row.
                found = _again(about, now)
                assert found is not None
            else:
                tell(found, Happening.OPENED, now=now)
        transaction.on_commit(lambda: show(about.tenant), robust=True)
    return found


def open_subjects(code: str) -> frozenset[str]:
    """What the open alerts of a code are about: nothing of these needs to be said again."""
    return frozenset(
        Alert.objects.filter(code=code, over_at=None).values_list("subject", flat=True)
    )


def _again(about: About, now: datetime) -> Alert | None:
    """Counts an open alert of the same; a graver one than before replaces its words."""
    alert = (
        Alert.objects.select_for_update()
        .filter(fingerprint=about.fingerprint, over_at=None)
        .first()
    )
    if alert is None:
        return None
    graver = about.severity.rank > Severity(alert.severity).rank
    for name, value in about.fields().items() if graver else ():
        setattr(alert, name, value)
    alert.seen_at = max(now, alert.seen_at)
    alert.times = F("times") + 1
    alert.save()
    alert.refresh_from_db()
    return alert


def over(
    code: str,
    subject: str,
    *,
    tenant: str = "",
    person: UUID | None = None,
    now: datetime,
    told: bool = True,
) -> bool:
    """Says that it is no longer so; True where it was open. Fine where nobody ever said it.

    `person` is whoever it was said to alone. `told` is False for what was news and never lasted:
    that it is over is no message.
    """
    with transaction.atomic():
        alert = (
            Alert.objects.select_for_update()
            .filter(fingerprint=_fingerprint(code, subject, tenant, person), over_at=None)
            .first()
        )
        if alert is None:
            return False
        alert.over_at = now
        alert.save(update_fields=["over_at"])
        if told:
            tell(alert, Happening.OVER, now=now)
        transaction.on_commit(lambda: show(tenant), robust=True)
    return True


def take_on(alert: Alert, person: UUID, *, now: datetime) -> Alert:
    """Somebody looks after it: it does not escalate. Again, or by another person, is fine."""
    Alert.objects.filter(pk=alert.pk, taken_by=None).update(taken_by=person, taken_at=now)
    Delivery.objects.filter(
        alert=alert, happening=Happening.ESCALATED, attempts=0, arrived_at=None
    ).update(due_at=None, answer="taken on before")
    show(alert.tenant)
    alert.refresh_from_db()
    return alert


def tell(alert: Alert, happening: Happening, *, now: datetime) -> int:
    """Writes a delivery for each channel that must hear this, in the caller's transaction.

    Personal alerts stand at the bell only. What is silenced is not told later either.
    """
    if alert.person is not None:
        return 0
    told = alert.told()
    if muted(told, now):
        return 0
    made = 0
    for route in Route.objects.filter(channel__removed_at=None).select_related("channel", "then"):
        if not route.match().covers(told) or (happening is Happening.OVER and not route.tells_end):
            continue
        made += _deliver(alert, route.channel_id, happening, now, now)
        due = escalates_at(alert.opened_at, route.after)
        if happening is Happening.OPENED and due and route.then_id:
            made += _deliver(alert, route.then_id, Happening.ESCALATED, now, due)
    return made


def _deliver(alert: Alert, channel: int, happening: Happening, now: datetime, due: datetime) -> int:
    """One delivery; a thing is told once on a channel, whichever routes lead there."""
    delivery, made = Delivery.objects.get_or_create(
        alert=alert,
        channel_id=channel,
        happening=happening.value,
        again=False,
        defaults={"made_at": now, "due_at": due},
    )
    if made and due <= now:
        transaction.on_commit(lambda: lines.hint(DELIVER, str(delivery.pk)), robust=True)
    return int(made)


def muted(told: Told, now: datetime) -> bool:
    """Whether this would not be told now."""
    return silenced(told, [one.quiet() for one in Silence.objects.filter(until__gt=now)], now)


def show(tenant: str) -> None:
    """Open pages look at their bell again."""
    news.publish(["alerts"], tenant=tenant)


#: So long an alert that is over stays at the bell's page.
KEPT = timedelta(days=90)


def forget(now: datetime) -> int:
    """Deletes alerts that are over for so long, with their deliveries."""
    deleted, _ = Alert.objects.filter(over_at__lt=now - KEPT).delete()
    return deleted
