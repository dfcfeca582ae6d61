"""Verbs of grants: one tenant lets a namespace of another use a template, up to a count and a date.

Kubernetes has no claim across namespaces: a grant moves no object. It moves who pays, and the
taker's namespace is allowed the class and the number (`tenants.allowance`). Locks are taken in one
order: tenants, then the grant.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal

from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import Http404

from portal.audit.record import record
from portal.errors import Invalid, Refused
from tenants.access import Access
from tenants.allowance import promise_turn
from tenants.budget import Asked, lock, plain, tell_pages, write
from tenants.limits import ZERO, Measure, devices_of, may_lend
from tenants.models import Grant, Tenant
from tenants.models.tenant import DNS_LABEL
from tenants.policy import Act
from tenants.sums import limits_of, sums_of, used_of

LONGEST_GRANT = timedelta(days=366)
MOST_DEVICES = 1000
LONGEST_WORDS = 240
State = Grant.State


class GrantEnded(Refused):
    """It was accepted, declined, revoked or is over, so this cannot be done any more."""

    code = "GRANT_NOT_OPEN"


class GrantUsedUp(Refused):
    """The grant allows fewer devices than are asked for; facts have the numbers."""

    code = "GRANT_USED_UP"


def visible(tenant: Tenant) -> QuerySet[Grant]:
    """What a tenant gave, took, or is offered. Others' grants do not exist for it."""
    offered = Q(taker=None, state=State.OFFERED, namespace__in=tenant.namespaces.values("name"))
    return Grant.objects.filter(Q(giver=tenant) | Q(taker=tenant) | offered).select_related(
        "giver", "taker"
    )


def find(access: Access, public_id: str) -> Grant:
    """One grant that this tenant may see; 404 for all others, whether they exist or not."""
    grant = visible(access.tenant).filter(public_id=public_id).first()
    if grant is None:
        raise Http404
    return grant


@transaction.atomic
def offer(
    *,
    access: Access,
    namespace: str,
    template: str,
    device_class: str,
    count: int,
    pays: str,
    ends_at: datetime,
    words: str,
    request_id: str,
    now: datetime,
) -> Grant:
    """Offers; nothing changes until an owner of the namespace accepts.

    The answer is the same whether such a namespace exists or not. That `template` can lead to
    `device_class` the caller has checked. Raises `Invalid` (namespace, count, pays, ends_at,
    words), `NotPermitted`.
    """
    access.require(Act.GRANT)
    wrong = {}
    if why := _not_a_name(namespace):
        wrong["namespace"] = why
    elif access.tenant.namespaces.filter(name=namespace).exists():
        wrong["namespace"] = "This is a namespace of your own; it needs no grant."
    if not 1 <= count <= MOST_DEVICES:
        wrong["count"] = f"Give a whole number from 1 to {MOST_DEVICES}."
    if pays not in Grant.Pays.values:
        wrong["pays"] = f"Choose one of {', '.join(Grant.Pays.values)}."
    if not now < ends_at <= now + LONGEST_GRANT:
        wrong["ends_at"] = f"Choose a time in the next {LONGEST_GRANT.days} days."
    if len(words) > LONGEST_WORDS:
        wrong["words"] = f"At most {LONGEST_WORDS} characters."
    if wrong:
        raise Invalid("Nothing was offered.", fields=wrong)
    grant = Grant.objects.create(
        giver=access.tenant,
        namespace=namespace,
        template=template,
        device_class=device_class,
        count=count,
        pays=pays,
        ends_at=ends_at,
        words=words.strip(),
        offered_by=access.user.person,
        offered_at=now,
    )
    _record("grant.offered", grant, access, [grant.giver], request_id, now, terms(grant))
    return grant


@transaction.atomic
def accept(*, access: Access, public_id: str, request_id: str, now: datetime) -> Grant:
    """The taker says yes. What the giver pays for is kept free for it from now on.

    Raises `OverLimit` where the giver's limit has not that much left, `GrantEnded`, `NotPermitted`;
    404 for whom it was not offered to.
    """
    grant = _for_taker(access, public_id, now)
    if grant.pays == Grant.Pays.GIVER:
        refusal = may_lend(
            devices_of(grant.device_class),
            Decimal(grant.count),
            limits=limits_of(grant.giver),
            lines=sums_of(grant.giver),
        )
        if refusal is not None:
            # How much the giver has is not the taker's business.
            raise Refused(
                f"{grant.giver.name} cannot lend that many now; ask its owners to make room.",
                code="GIVER_LIMIT_REACHED",
            )
    _decide(grant, State.ACCEPTED, access, now)
    _record(
        "grant.accepted", grant, access, [grant.giver, access.tenant], request_id, now, terms(grant)
    )
    for tenant in (grant.giver, access.tenant):
        promise_turn(tenant, request_id=request_id, now=now)
    return grant


@transaction.atomic
def decline(*, access: Access, public_id: str, request_id: str, now: datetime) -> Grant:
    """The taker says no. Raises as `accept` does."""
    grant = _for_taker(access, public_id, now)
    _decide(grant, State.DECLINED, access, now)
    _record("grant.declined", grant, access, [grant.giver, access.tenant], request_id, now, {})
    return grant


@transaction.atomic
def revoke(*, access: Access, public_id: str, request_id: str, now: datetime) -> Grant:
    """Either side ends it, or the giver takes an offer back: nothing new can be asked for with it.

    What runs stays, and counts against the payer's limit until the cluster confirms its end.
    Revoking twice is fine. Raises `GrantEnded`, `NotPermitted`; 404 for outsiders.
    """
    access.require(Act.GRANT)
    grant = _locked(find(access, public_id))
    if grant.state == State.REVOKED:
        return grant
    if grant.state not in {State.OFFERED, State.ACCEPTED}:
        raise GrantEnded(f"It was {grant.state} already.")
    if grant.state == State.OFFERED and grant.giver_id != access.tenant.pk:
        raise GrantEnded("It is only an offer; decline it instead.")
    _end(grant, State.REVOKED, request_id, now, access)
    return grant


def expire_due(now: datetime) -> int:
    """Ends offers and grants whose time is over; returns how many. Each in its own transaction."""
    due = Grant.objects.filter(state__in=[State.OFFERED, State.ACCEPTED], ends_at__lte=now)
    ended = 0
    for grant in due.order_by("ends_at")[:200]:
        with transaction.atomic():
            fresh = _locked(grant)
            if fresh.state in {State.OFFERED, State.ACCEPTED}:
                _end(fresh, State.EXPIRED, f"grant-{fresh.public_id}", now, None)
                ended += 1
    return ended


def end_all(tenant: Tenant, *, request_id: str, now: datetime) -> list[str]:
    """Ends what a tenant that is being closed gave, took, or offers; returns which.

    Each in its own transaction, for it locks the tenants of both sides. What runs by them stays
    until it is released, as with `revoke`.
    """
    open_ones = Grant.objects.filter(state__in=[State.OFFERED, State.ACCEPTED])
    ended = []
    for grant in open_ones.filter(Q(giver=tenant) | Q(taker=tenant)).order_by("pk"):
        with transaction.atomic():
            fresh = _locked(grant)
            if fresh.state in {State.OFFERED, State.ACCEPTED}:
                _end(fresh, State.REVOKED, request_id, now, None)
                ended.append(fresh.public_id)
    return ended


def ended_since(tenant: Tenant, moment: datetime) -> list[str]:
    """Public ids of a tenant's grants, on either side, that ended then or later."""
    mine = Grant.objects.filter(Q(giver=tenant) | Q(taker=tenant), ended_at__gte=moment)
    return list(mine.order_by("pk").values_list("public_id", flat=True))


def usable(tenant: Tenant, template: str, now: datetime) -> QuerySet[Grant]:
    """Grants with which a tenant may ask for a template now."""
    return _in_force(tenant, now).filter(template=template)


def usable_templates(tenant: Tenant, now: datetime) -> frozenset[str]:
    """Slugs of the templates of which a tenant was lent something that it may use now."""
    return frozenset(_in_force(tenant, now).values_list("template", flat=True))


def usable_by_id(tenant: Tenant, public_id: str, now: datetime) -> Grant | None:
    """One of a tenant's grants that may be used now, whatever its template."""
    return _in_force(tenant, now).filter(public_id=public_id).first()


def _in_force(tenant: Tenant, now: datetime) -> QuerySet[Grant]:
    active = Tenant.State.ACTIVE
    rows = Grant.objects.filter(
        taker=tenant, state=State.ACCEPTED, ends_at__gt=now, giver__state=active
    )
    return rows.select_related("giver")


def use(
    asked: Asked,
    *,
    public_id: str,
    access: Access,
    template: str,
    now: datetime,
) -> tuple[Asked, Grant]:
    """Writes what the giver pays for, and returns what is left for the taker's own limits.

    The caller holds `lock(access.tenant)`, takes the rest (with the grant, which counts what a
    taker pays for itself), and calls `record_use` last. Raises `Invalid` (grant) where it cannot be
    used for this ask, and `GrantUsedUp`.
    """
    grant = (
        usable(access.tenant, template, now)
        .filter(public_id=public_id)
        .select_for_update(of=("self",), no_key=True)
        .first()
    )
    if grant is None:
        raise Invalid(
            "Nothing was asked for.", fields={"grant": "No such grant for this template."}
        )
    if grant.namespace != asked.namespace:
        only = f"It is for namespace {grant.namespace} only."
        raise Invalid("Nothing was asked for.", fields={"grant": only})
    what = devices_of(grant.device_class)
    wanted = asked.amounts.get(what, ZERO)
    if not wanted:
        only = f"It is for {grant.device_class}, and none is asked for."
        raise Invalid("Nothing was asked for.", fields={"grant": only})
    left = grant.count - used_of([grant.pk]).get(grant.pk, ZERO)
    if wanted > left:
        raise GrantUsedUp(
            f"{plain(wanted)} devices of {grant.device_class} are asked for, and {plain(left)} of "
            f"the {grant.count} granted by {grant.giver.name} are left. Ask for fewer, release "
            f"some, or ask an owner of {grant.giver.name} for more.",
            asked=plain(wanted),
            left=plain(left),
            limit=str(grant.count),
            grant=grant.public_id,
        )
    if grant.pays == Grant.Pays.TAKER:
        return asked, grant
    lent = {
        one: amount
        for one, amount in asked.amounts.items()
        if one.device_class == grant.device_class and one.measure is not Measure.CLAIMS
    }
    rest = {one: amount for one, amount in asked.amounts.items() if one not in lent}
    write(Asked(lent, asked.namespace, asked.source), tenant=grant.giver, grant=grant, now=now)
    return Asked(rest, asked.namespace, asked.source), grant


def record_use(
    grant: Grant, *, access: Access, source: str, request_id: str, now: datetime
) -> None:
    """One audit line on each side: the giver learns that and how much, not what it is called."""
    facts = {"namespace": grant.namespace, "ask": source}
    _record("grant.used", grant, access, [grant.giver, access.tenant], request_id, now, facts)


def terms(grant: Grant) -> dict[str, object]:
    """What both sides agree to, for audit lines."""
    return {
        "namespace": grant.namespace,
        "template": grant.template,
        "device_class": grant.device_class,
        "count": grant.count,
        "pays": grant.pays,
        "ends_at": grant.ends_at.isoformat(),
    }


def _not_a_name(namespace: str) -> str:
    try:
        DNS_LABEL(namespace)
    except ValidationError as error:
        return str(error.messages[0])
    return ""


def _for_taker(access: Access, public_id: str, now: datetime) -> Grant:
    """An open offer to this tenant, locked, with both tenants: neither closes meanwhile, and the
    namespace does not leave.
    """
    found = find(access, public_id)
    if found.giver_id == access.tenant.pk:
        raise Http404
    access.require(Act.GRANT)
    sides = lock(found.giver, access.tenant).values()
    grant = _locked(found)
    if grant.state != State.OFFERED:
        raise GrantEnded(f"It was {grant.state} already.")
    if grant.ends_at <= now:
        raise GrantEnded("Its time is over.")
    if any(side.state != Tenant.State.ACTIVE for side in sides):
        raise GrantEnded("One of the two tenants is being closed.")
    if not access.tenant.namespaces.filter(name=grant.namespace, leaving_at=None).exists():
        raise GrantEnded(f"The namespace {grant.namespace} leaves {access.tenant.name}.")
    return grant


def _locked(grant: Grant) -> Grant:
    """The grant as it is now, locked until the transaction ends, after its tenants."""
    lock(*[tenant for tenant in (grant.giver, grant.taker) if tenant])
    rows = Grant.objects.select_related("giver", "taker")
    return rows.select_for_update(of=("self",), no_key=True).get(pk=grant.pk)


def _decide(grant: Grant, state: str, access: Access, now: datetime) -> None:
    grant.state, grant.taker = state, access.tenant
    grant.decided_by, grant.decided_at = access.user.person, now
    grant.revision += 1
    grant.save(update_fields=["state", "taker", "decided_by", "decided_at", "revision"])


def _end(grant: Grant, state: str, request_id: str, now: datetime, access: Access | None) -> None:
    was_accepted = grant.state == State.ACCEPTED
    grant.state, grant.ended_at = state, now
    grant.ended_by = access.user.person if access else None
    grant.revision += 1
    grant.save(update_fields=["state", "ended_by", "ended_at", "revision"])
    sides = [grant.giver, *([grant.taker] if grant.taker else [])]
    running = used_of([grant.pk]).get(grant.pk, ZERO)
    facts = {"devices_that_stay": plain(running)}
    _record(f"grant.{state}", grant, access, sides, request_id, now, facts)
    if was_accepted:
        for tenant in sides:
            promise_turn(tenant, request_id=request_id, now=now)


def _record(
    action: str,
    grant: Grant,
    access: Access | None,
    sides: list[Tenant],
    request_id: str,
    now: datetime,
    facts: Mapping[str, object],
) -> None:
    """The same line for each side; the person only on their own side."""
    for tenant in sides:
        own = access is not None and access.tenant.pk == tenant.pk
        record(
            action=action,
            subject=f"grant {grant.public_id}",
            request_id=request_id,
            at=now,
            person=access.user.person if access and own else None,
            tenant=tenant.slug,
            facts={**facts, "by": access.tenant.slug if access else ""},
        )
        tell_pages(tenant)
