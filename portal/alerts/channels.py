"""Verbs of the platform's people: channels, routes, silences, and telling once more."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import transaction

from portal.alerts import guard
from portal.alerts.models import Channel, Delivery, Route, Silence
from portal.alerts.raising import DELIVER
from portal.alerts.rules import Match, Medium
from portal.alerts.webhooks import new_secret
from portal.audit.record import record
from portal.errors import Invalid
from portal.outbox import lines

LONGEST_SILENCE = timedelta(days=30)
LONGEST_WAIT = timedelta(days=2)


@transaction.atomic
def add_channel(
    *, name: str, medium: Medium, address: str, person: UUID, request_id: str, now: datetime
) -> Channel:
    """A place where alerts are told; its secret stands in `secrets[0]`, to be shown once.

    Raises `Invalid` (name, address).
    """
    wrong = {}
    name, address = name.strip(), address.strip()
    if not name:
        wrong["name"] = "Give it a name that people know."
    elif Channel.objects.filter(name=name, removed_at=None).exists():
        wrong["name"] = "There is one of that name; take another."
    if problem := _unfit(medium, address):
        wrong["address"] = problem
    if wrong:
        raise Invalid("The channel was not made.", fields=wrong)
    channel = Channel.objects.create(
        name=name,
        medium=medium.value,
        address=address,
        secrets=[new_secret()] if medium is Medium.WEBHOOK else [],
        made_by=person,
        made_at=now,
    )
    _record("alert.channel.made", channel, person, request_id, now, medium=medium.value)
    return channel


def _unfit(medium: Medium, address: str) -> str:
    """What is wrong with an address; empty where nothing is."""
    if medium is Medium.MAIL:
        if not settings.EMAIL_CONFIGURED:
            return "This Berth has no mail server; its operator sets one with EMAIL_URL."
        try:
            validate_email(address)
        except ValidationError:
            return "Give one address such as oncall@example.org."
        return ""
    try:
        guard.shape(address)
    except guard.Unfit as error:
        return str(error)
    return ""


@transaction.atomic
def rotate(channel: Channel, *, person: UUID, request_id: str, now: datetime) -> str:
    """A new secret, shown once; the one before signs too for a day. ValueError for mail."""
    if channel.medium != Medium.WEBHOOK:
        raise ValueError("only webhooks are signed")
    channel.secrets = [new_secret(), *channel.secrets[:1]]
    channel.changed_at = now
    channel.save(update_fields=["secrets", "changed_at"])
    _record("alert.channel.secret", channel, person, request_id, now)
    return channel.secrets[0]


@transaction.atomic
def remove_channel(channel: Channel, *, person: UUID, request_id: str, now: datetime) -> None:
    """Nothing is told there any more; what was told stays readable. Its routes go."""
    Route.objects.filter(channel=channel).delete()
    Route.objects.filter(then=channel).update(then=None, after=None)
    channel.removed_at, channel.secrets = now, []
    channel.save(update_fields=["removed_at", "secrets"])
    _record("alert.channel.removed", channel, person, request_id, now)


@transaction.atomic
def add_route(
    *,
    match: Match,
    channel: Channel,
    then: Channel | None,
    after: timedelta | None,
    tells_end: bool,
    person: UUID,
    request_id: str,
    now: datetime,
) -> Route:
    """From now on such alerts are told there. Raises `Invalid` (after)."""
    if (then is None) != (after is None):
        raise Invalid(
            "The route was not made.",
            fields={"after": "Say both: where it is told next, and after how long."},
        )
    if after is not None and not timedelta(0) < after <= LONGEST_WAIT:
        raise Invalid("The route was not made.", fields={"after": "From one minute to two days."})
    route = Route.objects.create(
        **_columns(match),
        channel=channel,
        then=then,
        after=after,
        tells_end=tells_end,
        made_by=person,
        made_at=now,
    )
    _record("alert.route.made", channel, person, request_id, now, **_columns(match))
    return route


@transaction.atomic
def remove_route(route: Route, *, person: UUID, request_id: str, now: datetime) -> None:
    """Such alerts are not told there any more."""
    _record(
        "alert.route.removed", route.channel, person, request_id, now, **_columns(route.match())
    )
    route.delete()


@transaction.atomic
def silence(
    *,
    match: Match,
    reason: str,
    until: datetime,
    person: UUID,
    request_id: str,
    now: datetime,
) -> Silence:
    """Such alerts are not told until then. Raises `Invalid` (reason, until)."""
    wrong = {}
    if not reason.strip():
        wrong["reason"] = "Say why, for whoever wonders why nothing came."
    if not now < until <= now + LONGEST_SILENCE:
        wrong["until"] = f"Give an end within {LONGEST_SILENCE.days} days."
    if wrong:
        raise Invalid("Nothing was silenced.", fields=wrong)
    made = Silence.objects.create(
        **_columns(match), reason=reason.strip(), until=until, made_by=person, made_at=now
    )
    record(
        action="alert.silenced",
        subject=f"silence {made.public_id}",
        request_id=request_id,
        at=now,
        person=person,
        tenant=match.tenant,
        facts={**_columns(match), "reason": made.reason, "until": until.isoformat()},
    )
    return made


@transaction.atomic
def lift(made: Silence, *, person: UUID, request_id: str, now: datetime) -> None:
    """Ends a silence early; one that is over already stays as it is."""
    if made.until <= now:
        return
    Silence.objects.filter(pk=made.pk).update(until=max(now, made.made_at + timedelta(seconds=1)))
    record(
        action="alert.silence.lifted",
        subject=f"silence {made.public_id}",
        request_id=request_id,
        at=now,
        person=person,
        tenant=made.tenant,
    )


@transaction.atomic
def tell_again(delivery: Delivery, *, person: UUID, request_id: str, now: datetime) -> Delivery:
    """The same message, as a new delivery that starts at once."""
    made = Delivery.objects.create(
        alert=delivery.alert,
        channel=delivery.channel,
        happening=delivery.happening,
        made_at=now,
        due_at=now,
        again=True,
    )
    transaction.on_commit(lambda: lines.hint(DELIVER, str(made.pk)), robust=True)
    _record("alert.told.again", delivery.channel, person, request_id, now)
    return made


def _columns(match: Match) -> dict[str, str]:
    return {
        "code": match.code,
        "failure_class": match.failure_class,
        "tenant": match.tenant,
        "least": match.least.value,
    }


def _record(
    action: str, channel: Channel, person: UUID, request_id: str, now: datetime, **facts: str
) -> None:
    record(
        action=action,
        subject=f"channel {channel.name}",
        request_id=request_id,
        at=now,
        person=person,
        facts=facts,
    )
