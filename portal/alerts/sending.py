"""One attempt to tell something on one channel, and when the next one is due."""

from __future__ import annotations

import logging
import random
import smtplib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.mail import send_mail
from django.db import transaction

from portal.alerts import guard, webhooks
from portal.alerts.models import Alert, Channel, Delivery
from portal.alerts.raising import DELIVER, muted
from portal.alerts.rules import MOST_ATTEMPTS, Happening, Medium, pause
from portal.alerts.webhooks import Answer
from portal.outbox import lines

SWEEP_BATCH = 200
#: An earlier secret signs too for so long after a change.
OLD_SECRET = timedelta(days=1)

log = logging.getLogger(__name__)


def deliver(pk: int, now: datetime) -> bool | None:
    """Tries a delivery that is due; None where it is not, or where somebody else just tries it.

    The next attempt's time is written before this one begins: whoever dies in between is followed
    by that attempt, and the receiver tells the repetition by the message's id. No lock is held
    while the receiver is talked to.
    """
    with transaction.atomic():
        delivery = (
            Delivery.objects.select_for_update(skip_locked=True, of=["self"])
            .select_related("alert", "channel")
            .filter(pk=pk, arrived_at=None, due_at__lte=now)
            .first()
        )
        if delivery is None:
            return None
        delivery.attempts += 1
        last = delivery.attempts >= MOST_ATTEMPTS
        delivery.due_at = None if last else now + pause(delivery.attempts, random.random())
        why_not = _why_not(delivery, now)
        if why_not:
            delivery.attempts -= 1
            delivery.due_at, delivery.answer = None, why_not
        delivery.save(update_fields=["attempts", "due_at", "answer"])
    if why_not:
        return None
    answer = _say(delivery, now)
    values: dict[str, Any] = {"answer": answer.text}
    if answer.arrived:
        values |= {"arrived_at": now, "due_at": None}
    elif answer.gone:
        values |= {"due_at": None}
    Delivery.objects.filter(pk=pk, arrived_at=None).update(**values)
    return answer.arrived


def _why_not(delivery: Delivery, now: datetime) -> str:
    """Why there is nothing to tell any more; empty where there is."""
    if delivery.channel.removed_at:
        return "the channel was removed"
    if delivery.again:
        return ""
    if delivery.happening == Happening.ESCALATED:
        if delivery.alert.taken_at:
            return "taken on before"
        if delivery.alert.over_at:
            return "over before"
        if muted(delivery.alert.told(), now):
            return "silenced"
    return ""


def _say(delivery: Delivery, now: datetime) -> Answer:
    channel, alert = delivery.channel, delivery.alert
    if channel.medium == Medium.MAIL:
        return _mail(channel, alert, Happening(delivery.happening))
    text = webhooks.body(f"alert.{delivery.happening}", delivery.made_at, described(alert))
    head = webhooks.headers(str(delivery.message_id), text, keys(channel, now), now)
    try:
        return webhooks.send(channel.address, text, head, settings.WEBHOOK_NETWORKS)
    except guard.Unfit as error:
        return Answer(False, str(error)[: webhooks.LONGEST_ANSWER])


def keys(channel: Channel, now: datetime) -> list[str]:
    """The secrets that sign at `now`: the newest, and for a day the one before it."""
    fresh = channel.changed_at is not None and now - channel.changed_at < OLD_SECRET
    return list(channel.secrets[: 2 if fresh else 1])


def described(alert: Alert) -> dict[str, Any]:
    """The alert as programs read it; the same in webhooks and in the API."""
    return {
        "id": alert.public_id,
        "code": alert.code,
        "failure_class": alert.failure_class,
        "severity": alert.severity,
        "tenant": alert.tenant or None,
        "subject": alert.subject,
        "title": alert.title,
        "words": alert.words,
        "evidence": alert.evidence,
        "link": f"{settings.PUBLIC_URL}{alert.path}" if alert.path else None,
        "request_id": alert.request_id or None,
        "opened_at": alert.opened_at.isoformat(),
        "seen_at": alert.seen_at.isoformat(),
        "times": alert.times,
        "over_at": alert.over_at.isoformat() if alert.over_at else None,
    }


_BEGINNING: Mapping[Happening, str] = {
    Happening.OPENED: "",
    Happening.ESCALATED: "Nobody took this on: ",
    Happening.OVER: "Over: ",
}


def _mail(channel: Channel, alert: Alert, happening: Happening) -> Answer:
    about = described(alert)
    lines_of_mail = [alert.title, ""]
    lines_of_mail += [alert.words, ""] if alert.words else []
    lines_of_mail += [f"{one['label']}: {one['value']}" for one in alert.evidence]
    lines_of_mail += ["", f"Code: {alert.code}", *([about["link"]] if about["link"] else [])]
    subject = f"[Berth] {_BEGINNING[happening]}{alert.title}".replace("\n", " ").replace("\r", " ")
    try:
        send_mail(subject, "\n".join(lines_of_mail), None, [channel.address])
    except (smtplib.SMTPException, OSError) as error:
        return Answer(False, f"{type(error).__name__}: {error}"[: webhooks.LONGEST_ANSWER])
    return Answer(True, "handed to the mail server")


def sweep(now: datetime) -> int:
    """Hurries what is due; returns how many."""
    due = Delivery.objects.filter(due_at__lte=now, arrived_at=None).order_by("due_at", "pk")
    keys_due = list(due.values_list("pk", flat=True)[:SWEEP_BATCH])
    return sum(lines.hint(DELIVER, str(pk)) for pk in keys_due)
