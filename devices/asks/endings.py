"""How asks end: released by a person, or by Berth once their time is over; told before.

Nothing is evicted: what a Pod uses stays with it until it ends, and counts until then.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Q
from django.urls import reverse

from devices.asks.lifetimes import WARNINGS, warning_due
from devices.asks.reconcile import RECONCILE
from devices.dra.lifecycle import State
from devices.models import Claim, ClaimEvent
from portal import news
from portal.alerts.raising import About, over, raise_alert
from portal.alerts.rules import Severity
from portal.audit.record import record
from portal.outbox import lines as outbox
from tenants.access import Access
from tenants.models import Tenant

ENDS_SOON = "ENDS_SOON"
AT_MOST = 500
"""Rows that one sweep touches; the next one takes the others."""


def locked(public_id: str, tenant: Tenant | None = None) -> Claim:
    """The row as it is now, locked until the transaction ends; of this tenant, where one is given.

    Raises `Claim.DoesNotExist`.
    """
    rows = Claim.objects.all() if tenant is None else Claim.objects.of(tenant)
    return rows.whole().select_for_update(of=("self",)).get(public_id=public_id)


def let_go(
    claim: Claim,
    *,
    access: Access | None,
    request_id: str,
    now: datetime,
    closing: bool = False,
) -> None:
    """Writes down that a locked, wanted ask goes: row, event, outbox and audit line.

    Without `access` its time is over, or (`closing`) its tenant is being closed. What leaves the
    cluster is a later turn's work.
    """
    expired = access is None and not closing
    claim.released_at = claim.since = now
    claim.state, claim.code = State.RELEASING, "RELEASING"
    claim.why = "Berth is taking it out of the cluster."
    claim.expired = expired
    claim.revision += 1
    claim.save(
        update_fields=["released_at", "since", "state", "code", "why", "expired", "revision"]
    )
    text = "Its time was over." if expired else "Release asked for."
    if closing:
        text = "Its tenant is being closed."
    code = "EXPIRED" if expired else ""
    ClaimEvent.objects.create(claim=claim, at=now, state=claim.state, code=code, text=text)
    outbox.promise(RECONCILE, claim.public_id, request_id=request_id, now=now)
    record(
        action="claim.expired" if expired else "claim.released",
        subject=f"claim {claim.public_id}",
        request_id=request_id,
        at=now,
        person=access.user.person if access else None,
        tenant=claim.tenant.slug,
        facts={"pods": [pod["name"] for pod in claim.pods]},
    )
    end_is_settled(claim, now)
    tell(claim)


def expire_due(now: datetime) -> int:
    """Releases asks whose time is over; returns how many. Each in its own transaction.

    Whoever extended one meanwhile was first: the row is looked at again once it is locked.
    """
    due = Claim.objects.filter(released_at=None, expires_at__lte=now).exclude(state=State.RELEASED)
    ended = 0
    for public_id in due.order_by("expires_at").values_list("public_id", flat=True)[:AT_MOST]:
        with transaction.atomic():
            claim = locked(public_id)
            over = claim.expires_at is not None and claim.expires_at <= now
            if over and claim.wanted and claim.state != State.RELEASED:
                let_go(claim, access=None, request_id=f"expiry-{public_id}", now=now)
                ended += 1
    return ended


def warn_due(now: datetime) -> int:
    """Tells in their history, and on open pages, of asks that end soon; returns how many."""
    earliest, last = WARNINGS
    near = Q(warned=None, expires_at__lte=now + timedelta(days=earliest)) | Q(
        warned__gt=last, expires_at__lte=now + timedelta(days=last)
    )
    rows = Claim.objects.filter(near, released_at=None, expires_at__gt=now)
    rows = rows.exclude(state=State.RELEASED)
    told = 0
    for public_id in rows.order_by("expires_at").values_list("public_id", flat=True)[:AT_MOST]:
        with transaction.atomic():
            claim = locked(public_id)
            days = warning_due(claim.expires_at, claim.warned, now) if claim.wanted else None
            if days is None or claim.expires_at is None:
                continue
            claim.warned = days
            claim.save(update_fields=["warned"])
            ClaimEvent.objects.create(
                claim=claim,
                at=now,
                state=claim.state,
                code=ENDS_SOON,
                text=f"Ends {claim.expires_at:%-d %b %H:%M} UTC unless somebody extends it.",
            )
            _ring(claim, now)
            tell(claim)
            told += 1
    return told


def end_is_settled(claim: Claim, now: datetime) -> None:
    """Ends the alert that the claim ends soon: it was extended, or it goes."""
    over(ENDS_SOON, f"end of claim {claim.public_id}", tenant=claim.tenant.slug, now=now)


def _ring(claim: Claim, now: datetime) -> None:
    """Tells the tenant's people wherever they are told of alerts; again is only counted."""
    assert claim.expires_at is not None
    raise_alert(
        About(
            code=ENDS_SOON,
            subject=f"end of claim {claim.public_id}",
            title=f"{claim.name} ends {claim.expires_at:%-d %b %H:%M} UTC",
            severity=Severity.NOTICE if claim.warned != WARNINGS[-1] else Severity.WARNING,
            failure_class="information",
            tenant=claim.tenant.slug,
            words="Extend it if you still need it. Pods that run keep their devices anyhow.",
            path=reverse("claim", args=[claim.tenant.slug, claim.public_id]),
        ),
        now=now,
    )


def tell(claim: Claim) -> None:
    """News for open pages, once the transaction is through."""
    topics, tenant = ["claims", f"claim-{claim.public_id}"], claim.tenant.slug
    transaction.on_commit(lambda: news.publish(topics, tenant=tenant), robust=True)
