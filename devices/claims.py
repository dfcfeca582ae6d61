"""Verbs of tenants: ask for devices, release them. Pages, API and commands all call these."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec
from django.db import transaction

from devices.dra.lifecycle import State
from devices.dra.names import is_dns_label
from devices.dra.objects import ClaimWish, Shape
from devices.dra.template import BadValue, answers, build, summary
from devices.forecast import remember_soon
from devices.models import Claim, ClaimEvent, TemplateVersion
from devices.models.claim import new_public_id
from devices.outside import outside_lines
from devices.reconcile import RECONCILE
from devices.spending import class_names, cost_of, words_of
from portal import news
from portal.audit.record import record
from portal.errors import Invalid, Refused
from portal.outbox import lines as outbox
from tenants import budget, grants
from tenants.access import Access
from tenants.budget import Asked
from tenants.models import Grant, Tenant, TenantNamespace
from tenants.policy import Act
from tenants.sums import limits_of

# The object's name is name + "-" + public id (8 characters); generated claims add more behind it.
LONGEST_NAME = 40
MOST_AT_ONCE = 1000


class TenantClosing(Refused):
    """A tenant that is being closed gets nothing new."""

    code = "TENANT_CLOSING"


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
) -> Claim:
    """Accepts an ask: a row, what it takes of the budget, an outbox line, an event and an audit
    line, or nothing at all.

    `at_once` is for how many Pods at the same time a template is; it counts that often. `grant` is
    the public id of a grant that pays for its class.
    Raises `NotPermitted`, `TenantClosing`, `OverLimit`, `GrantUsedUp`, `AmountNeeded`, and
    `Invalid` with the fields `name`, `namespace`, `template`, `at_once`, `grant` and
    `values.<parameter>`. What it makes in the cluster is a later turn's work.
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
    place = TenantNamespace.objects.filter(tenant=tenant, name=namespace).first()
    if place is None:
        known = ", ".join(tenant.namespaces.values_list("name", flat=True)) or "none yet"
        wrong["namespace"] = f"Choose a namespace of this tenant: {known}."
    if version.state != TemplateVersion.State.APPROVED:
        wrong["template"] = "This version can no longer be asked for; take the approved one."
    template = version.read()
    try:
        checked = answers(template, values)
    except BadValue as bad:
        wrong.update({f"values.{parameter}": text for parameter, text in bad.fields.items()})
    wrong.update(wrong_at_once(at_once, shared=template.shared))
    if wrong or place is None:
        raise Invalid("Nothing was asked for yet; some answers are not right.", fields=wrong)
    draft = build(template, checked)
    public_id = new_public_id()
    shape = Shape.CLAIM if template.shared else Shape.TEMPLATE
    lender = _take(
        access,
        ClaimWish(
            public_id=public_id,
            tenant=tenant.slug,
            namespace=namespace,
            name=f"{name}-{public_id}",
            request_id=request_id,
            shape=shape,
            devices=draft.devices,
            matches=draft.matches,
        ),
        at_once,
        template=version.template.slug,
        grant=grant,
        now=now,
    )
    claim = Claim.objects.create(
        public_id=public_id,
        tenant=tenant,
        namespace=place,
        name=name,
        object_name=f"{name}-{public_id}",
        shape=shape,
        version=version,
        values=checked,
        devices=msgspec.to_builtins(draft.devices),
        matches=msgspec.to_builtins(draft.matches),
        at_once=at_once,
        words=summary(template, draft),
        asked_by=access.user.person,
        request_id=request_id,
        requested_at=now,
        since=now,
        why="Berth is sending it to the cluster.",
        code="SENDING",
    )
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


def wrong_at_once(at_once: int, *, shared: bool) -> dict[str, str]:
    """What is wrong with the number of Pods at once, by field; empty where it is right."""
    if shared and at_once != 1:
        return {"at_once": "One claim is shared by all its Pods; leave this at 1."}
    if not 1 <= at_once <= MOST_AT_ONCE:
        return {"at_once": f"Give a whole number from 1 to {MOST_AT_ONCE}."}
    return {}


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
        outside=outside_lines(tenant, now),
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
    claim = (
        Claim.objects.of(access.tenant)
        .select_for_update(of=("self",))
        .select_related("tenant", "namespace")
        .get(public_id=public_id)
    )
    if claim.state == State.RELEASED:
        raise AlreadyReleased(f"{claim.name} was released already.")
    if claim.released_at is not None:
        return claim
    claim.released_at = claim.since = now
    claim.state = State.RELEASING
    claim.code, claim.why = "RELEASING", "Berth is taking it out of the cluster."
    claim.revision += 1
    claim.save(update_fields=["released_at", "since", "state", "code", "why", "revision"])
    ClaimEvent.objects.create(claim=claim, at=now, state=claim.state, text="Release asked for.")
    outbox.promise(RECONCILE, public_id, request_id=request_id, now=now)
    record(
        action="claim.released",
        subject=f"claim {public_id}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        tenant=access.tenant.slug,
        facts={"pods": [pod["name"] for pod in claim.pods]},
    )
    tell(claim)
    return claim


def tell(claim: Claim) -> None:
    """News for open pages, once the transaction is through."""
    topics, tenant = ["claims", f"claim-{claim.public_id}"], claim.tenant.slug
    transaction.on_commit(lambda: news.publish(topics, tenant=tenant), robust=True)
