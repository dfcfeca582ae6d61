"""Verbs of tenants: ask for devices, extend, describe and release them. Pages, API and commands
all call these.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from django.db import transaction

from devices.asks.endings import end_is_settled, let_go, locked, tell
from devices.asks.history import classes_of
from devices.asks.lifetimes import bound, days_given, end_of, warned_from_the_start, wrong_days
from devices.asks.reconcile import RECONCILE
from devices.dra.lifecycle import State
from devices.dra.names import is_dns_label
from devices.dra.objects import ClaimWish
from devices.dra.templates import BadValue, answers, build, claim_wish, shape_of, summary
from devices.forecasts.forecast import remember_soon
from devices.models import Claim, ClaimEvent, TemplateVersion
from devices.models.claim import new_public_id
from devices.routing.paths import routed, taken
from devices.tenancy.outside import outside_sums
from devices.tenancy.spending import class_names, cost_of, words_of
from portal.audit.record import record
from portal.errors import Invalid, Refused
from portal.outbox import lines as outbox
from tenants import budget, grants
from tenants.access import Access
from tenants.budget import Asked
from tenants.models import Grant, Tenant
from tenants.policy import Act
from tenants.sums import limits_of

# The object's name is name + "-" + public id (8 characters); generated claims add more behind it.
LONGEST_NAME = 40
MOST_AT_ONCE = 1000
LONGEST_NOTE = 240


class TenantClosing(Refused):
    """A tenant that is being closed gets nothing new."""

    code = "TENANT_CLOSING"


class FormUsed(Refused):
    """The page was asked with before, for something else; `claim` is the id of what was made."""

    code = "FORM_USED"


class AlreadyReleased(Refused):
    """There is nothing left to release."""

    code = "ALREADY_RELEASED"


@transaction.atomic
def request_claim(
    *,
    access: Access,
    version: TemplateVersion,
    namespace: str,
    name: str,
    values: Mapping[str, Any],
    request_id: str,
    now: datetime,
    at_once: int = 1,
    grant: str = "",
    days: int | None = None,
    note: str = "",
    form: str = "",
) -> Claim:
    """Accepts an ask: a row, what it takes of the budget, an outbox line, an event and an audit
    line, or nothing at all.

    `at_once` is for how many Pods at the same time a template is; it counts that often. `grant` is
    the public id of a grant that pays for its class. After `days` Berth releases it unless somebody
    extends it; None is the longest time that template and tenant allow, or no end at all. A page
    (`form`) asks once: sent again, it gives what it made, and for another wish it is `FormUsed`.
    Raises `NotPermitted`, `TenantClosing`, `OverLimit`, `GrantUsedUp`, `AmountNeeded`, and
    `Invalid` with the fields `name`, `namespace`, `template`, `at_once`, `grant`, `days`, `note`
    and `values.<parameter>`. What it makes in the cluster is a later turn's work.
    """
    access.require(Act.ASK)
    tenant = budget.lock(access.tenant)[access.tenant.pk]
    if tenant.state != Tenant.State.ACTIVE:
        raise TenantClosing(f"{tenant.name} is being closed; nothing new can be asked for.")
    wrong: dict[str, str] = {}
    if not is_dns_label(name) or len(name) > LONGEST_NAME:
        wrong["name"] = (
            f"Use lower-case letters, digits and '-', at most {LONGEST_NAME} characters, "
            "starting and ending with a letter or digit."
        )
    place = tenant.namespaces.filter(name=namespace, leaving_at=None).first()
    if place is None:
        known = ", ".join(tenant.namespaces.values_list("name", flat=True)) or "none yet"
        wrong["namespace"] = f"Choose a namespace of this tenant: {known}."
    if version.state != TemplateVersion.State.APPROVED:
        wrong["template"] = "This version can no longer be asked for; take the approved one."
    template = version.read()
    try:
        checked = answers(template, values, tenant=tenant.slug)
    except BadValue as bad:
        wrong.update({f"values.{parameter}": text for parameter, text in bad.fields.items()})
    wrong.update(wrong_at_once(at_once, shared=template.shared))
    longest = longest_days(tenant, version)
    days = days_given(days, longest)
    if said := wrong_days(days, longest):
        wrong["days"] = said
    if said := wrong_note(note):
        wrong["note"] = said
    if wrong or place is None:
        raise Invalid("Nothing was asked for yet; some answers are not right.", fields=wrong)
    if form and (made := _made_with(form, access)):
        asked = (made.version_id, made.values, made.namespace_id, made.name, made.at_once)
        if made.wanted and asked == (version.pk, checked, place.pk, name, at_once):
            return made
        raise FormUsed(
            f"This page made {made.name} already. Ask again to make another.",
            claim=made.public_id,
        )
    draft = build(template, checked)
    public_id = new_public_id()
    wish = claim_wish(
        template,
        draft,
        name=f"{name}-{public_id}",
        namespace=namespace,
        tenant=tenant.slug,
        public_id=public_id,
        request_id=request_id,
    )
    lender = _take(
        access,
        wish,
        at_once,
        template=version.template.slug,
        grant=grant,
        now=now,
    )
    expires_at = end_of(days, now)
    claim = Claim(
        public_id=public_id,
        tenant=tenant,
        namespace=place,
        name=name,
        object_name=f"{name}-{public_id}",
        shape=shape_of(template),
        version=version,
        values=checked,
        devices=msgspec.to_builtins(draft.devices),
        matches=msgspec.to_builtins(draft.matches),
        configs=msgspec.to_builtins(draft.configs),
        at_once=at_once,
        words=summary(template, draft),
        asked_by=access.user.person,
        form=form,
        request_id=request_id,
        requested_at=now,
        since=now,
        expires_at=expires_at,
        warned=warned_from_the_start(expires_at, now),
        note=note.strip(),
        why="Berth is sending it to the cluster.",
        code="SENDING",
        **taken(routed(wish, version.template.slug, now)),
    )
    claim.classes = classes_of(claim)
    claim.save(force_insert=True)
    ClaimEvent.objects.create(claim=claim, at=now, state=claim.state, text="Asked for.")
    outbox.promise(RECONCILE, public_id, request_id=request_id, now=now)
    record(
        action="claim.asked",
        subject=f"claim {public_id}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        tenant=tenant.slug,
        facts={"name": name, "namespace": namespace, "template": str(version), "values": checked},
    )
    if lender is not None:
        grants.record_use(lender, access=access, source=public_id, request_id=request_id, now=now)
    tell(claim)
    remember_soon(claim)
    return claim


def _made_with(form: str, access: Access) -> Claim | None:
    """What this person asked for with a page; the tenant's lock makes that certain."""
    rows = Claim.objects.of(access.tenant).filter(asked_by=access.user.person, form=form)
    return rows.first()


def wrong_at_once(at_once: int, *, shared: bool) -> dict[str, str]:
    """What is wrong with the number of Pods at once, by field; empty where it is right."""
    if shared and at_once != 1:
        return {"at_once": "One claim is shared by all its Pods; leave this at 1."}
    if not 1 <= at_once <= MOST_AT_ONCE:
        return {"at_once": f"Give a whole number from 1 to {MOST_AT_ONCE}."}
    return {}


def longest_days(tenant: Tenant, version: TemplateVersion) -> int | None:
    """How many days ahead an ask of this version may end; None where it need not end."""
    return bound(tenant.longest_days, version.read().longest_days)


def wrong_note(note: str) -> str:
    """What is wrong with a note, as a sentence; empty where nothing is."""
    if "\x00" in note:
        return "Leave out the NUL character."
    return "" if len(note.strip()) <= LONGEST_NOTE else f"At most {LONGEST_NOTE} characters."


def _take(
    access: Access,
    wish: ClaimWish,
    at_once: int,
    *,
    template: str,
    grant: str,
    now: datetime,
) -> Grant | None:
    """Takes what the ask costs from whoever pays; returns the grant that was used, if any."""
    tenant, limits = access.tenant, limits_of(access.tenant)
    cost = cost_of(wish, at_once, limits)
    asked = Asked(cost, wish.namespace, wish.public_id)
    lender = None
    if grant:
        asked, lender = grants.use(
            asked, public_id=grant, access=access, template=template, now=now
        )
    names = class_names()
    budget.take(
        asked,
        tenant=tenant,
        outside=outside_sums(tenant, now),
        request_id=wish.request_id,
        now=now,
        words=lambda what: words_of(what, names),
        grant=lender,
    )
    return lender


@transaction.atomic
def release_claim(*, access: Access, public_id: str, request_id: str, now: datetime) -> Claim:
    """Wishes an ask away; its objects leave the cluster as soon as no Pod uses them.

    Releasing twice is fine. Raises `NotPermitted`, `AlreadyReleased`; `Claim.DoesNotExist` for what
    is not this tenant's.
    """
    access.require(Act.RELEASE)
    claim = locked(public_id, access.tenant)
    if claim.state == State.RELEASED:
        raise AlreadyReleased(f"{claim.name} was released already.")
    if claim.wanted:
        let_go(claim, access=access, request_id=request_id, now=now)
    return claim


@transaction.atomic
def extend_claim(
    *, access: Access, public_id: str, days: int | None, request_id: str, now: datetime
) -> Claim:
    """Sets the end of an ask anew, so many days from now; None takes the end away.

    It may be earlier than before. Asking for the same again is fine. Raises `NotPermitted`,
    `TenantClosing`, `AlreadyReleased`, `Invalid` (days); `Claim.DoesNotExist` for what is not this
    tenant's.
    """
    access.require(Act.EXTEND)
    claim = locked(public_id, access.tenant)
    if not claim.wanted or claim.state == State.RELEASED:
        over = "its time was over" if claim.expired else "it was released"
        raise AlreadyReleased(f"{claim.name} cannot be extended: {over}. Ask again like this one.")
    if claim.tenant.state != Tenant.State.ACTIVE:
        raise TenantClosing(f"{claim.tenant.name} is being closed; nothing can be extended.")
    if said := wrong_days(days, longest_days(claim.tenant, claim.version)):
        raise Invalid("Nothing was extended.", fields={"days": said})
    before, claim.expires_at = claim.expires_at, end_of(days, now)
    claim.warned = warned_from_the_start(claim.expires_at, now)
    claim.revision += 1
    claim.save(update_fields=["expires_at", "warned", "revision"])
    ClaimEvent.objects.create(
        claim=claim, at=now, state=claim.state, code="EXTENDED", text=_end_in_words(claim)
    )
    record(
        action="claim.extended",
        subject=f"claim {public_id}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        tenant=access.tenant.slug,
        facts={"before": _stamp(before), "after": _stamp(claim.expires_at)},
    )
    end_is_settled(claim, now)
    tell(claim)
    return claim


@transaction.atomic
def describe_claim(
    *, access: Access, public_id: str, note: str, request_id: str, now: datetime
) -> Claim:
    """Writes a note on an ask, for its tenant to read and to search; empty takes it away.

    Raises `NotPermitted`, `Invalid` (note); `Claim.DoesNotExist` for what is not this tenant's.
    """
    access.require(Act.EXTEND)
    claim = locked(public_id, access.tenant)
    if said := wrong_note(note):
        raise Invalid("Nothing was written.", fields={"note": said})
    if claim.note == note.strip():
        return claim
    claim.note = note.strip()
    claim.revision += 1
    claim.save(update_fields=["note", "revision"])
    record(
        action="claim.described",
        subject=f"claim {public_id}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        tenant=access.tenant.slug,
        facts={"note": claim.note},
    )
    tell(claim)
    return claim


def _end_in_words(claim: Claim) -> str:
    if claim.expires_at is None:
        return "It no longer ends by itself."
    return f"Ends {claim.expires_at:%-d %b %Y %H:%M} UTC."


def _stamp(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None
