"""Verbs of operators: set which path new work takes, end that, and say what plugins' resources are.

What runs is never touched. Asks without Pods follow within a turn, and their owners are told.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from devices.asks.reconcile import RECONCILE
from devices.dra.lifecycle import State
from devices.dra.selector import why_refused
from devices.models import Claim, ClaimTemplate, Offer, PluginResource, RouteRule
from devices.routing.routes import Path
from devices.translation.asks import extended
from portal import news
from portal.audit.record import record
from portal.errors import Invalid, Refused
from portal.outbox import lines as outbox
from tenants.access import PlatformAccess
from tenants.models import Tenant
from tenants.policy import PlatformAct

LONGEST_REASON = 240
LONGEST_NAME = 253


class ResourceNamed(Refused):
    """A device class says itself what this name stands for."""

    code = "RESOURCE_NAMED_BY_CLASS"
    http_status = 409


@transaction.atomic
def set_route(
    *,
    access: PlatformAccess,
    device_class: str,
    path: str,
    reason: str,
    tenant: str = "",
    template: str = "",
    starts_at: datetime | None = None,
    until: datetime | None = None,
    request_id: str,
    now: datetime,
) -> RouteRule:
    """New work for a class takes this path, from then (None: now) until then; returns the rule.

    `tenant` and `template` are slugs, empty for all. Nothing set before is changed: of rules that
    concern one ask the narrowest and then the newest counts, and the one before it counts again
    when that ends. Raises `NotPermitted`, and `Invalid` with the fields `device_class`, `path`,
    `tenant`, `template`, `reason`, `starts_at` and `until`.
    """
    access.require(PlatformAct.ROUTE)
    begins = starts_at or now
    wrong = _wrong(device_class, path, reason.strip(), tenant, template, begins, until, now)
    if wrong:
        raise Invalid("Nothing was set yet; some answers are not right.", fields=wrong)
    made = RouteRule.objects.create(
        device_class=device_class,
        path=path,
        tenant=tenant,
        template=template,
        reason=reason.strip(),
        set_by=access.user.person,
        set_at=now,
        starts_at=begins,
        until=until,
        begun=begins <= now,
        request_id=request_id,
    )
    if made.begun:
        _wake(made, request_id=request_id, now=now)
    _record("route.set", made, request_id=request_id, now=now, person=access.user.person)
    return made


@transaction.atomic
def end_route(
    *, access: PlatformAccess, public_id: str, request_id: str, now: datetime
) -> RouteRule:
    """Ends a rule; what counted before it counts again. Twice is fine.

    Raises `NotPermitted`; `RouteRule.DoesNotExist` for an unknown one.
    """
    access.require(PlatformAct.ROUTE)
    found = RouteRule.objects.select_for_update().get(public_id=public_id)
    if found.ended_at is None:
        _end(
            found,
            RouteRule.End.LIFTED,
            request_id=request_id,
            now=now,
            person=access.user.person,
        )
    return found


@transaction.atomic
def sweep(now: datetime) -> int:
    """Begins rules whose time has come and ends those whose time is over; returns how many."""
    rules = RouteRule.objects.open().select_for_update(skip_locked=True).order_by("pk")
    over = list(rules.filter(until__lte=now))
    for found in over:
        _end(found, RouteRule.End.EXPIRED, request_id=found.request_id, now=now, person=None)
    due = list(rules.filter(begun=False, starts_at__lte=now))
    for found in due:
        found.begun = True
        found.save(update_fields=["begun"])
        _wake(found, request_id=found.request_id, now=now)
        _record("route.begun", found, request_id=found.request_id, now=now, person=None)
    return len(over) + len(due)


@transaction.atomic
def name_resource(
    *,
    access: PlatformAccess,
    resource: str,
    device_class: str,
    selector: str = "",
    request_id: str,
    now: datetime,
) -> PluginResource:
    """Says which class stands for a plugin's extended resource; again replaces what was said.

    Raises `NotPermitted`, `ResourceNamed`, and `Invalid` with the fields `resource`,
    `device_class` and `selector`.
    """
    access.require(PlatformAct.ROUTE)
    resource, selector = resource.strip(), selector.strip()
    wrong: dict[str, str] = {}
    if not extended(resource) or resource.startswith("deviceclass.") or len(resource) > 253:
        wrong["resource"] = "Give the name as Pods ask for it, such as nvidia.com/mig-1g.10gb."
    offers = dict(Offer.objects.values_list("device_class", "counts"))
    if device_class not in offers:
        wrong["device_class"] = "There is no such device class in the cluster."
    if selector and (trouble := why_refused(selector)):
        wrong["selector"] = f"This is not CEL that the cluster takes: {trouble}"
    if wrong:
        raise Invalid("Nothing was set yet; some answers are not right.", fields=wrong)
    for name, counts in offers.items():
        if (counts.get("plugin") or {}).get("resource") == resource:
            raise ResourceNamed(f"The class {name} says itself that {resource} stands for it.")
    made, _ = PluginResource.objects.update_or_create(
        resource=resource,
        defaults={
            "device_class": device_class,
            "selector": selector,
            "set_by": access.user.person,
            "set_at": now,
        },
    )
    _record_resource("resource.named", made, access=access, request_id=request_id, now=now)
    return made


@transaction.atomic
def forget_resource(
    *, access: PlatformAccess, resource: str, request_id: str, now: datetime
) -> None:
    """Takes back what was said of a name. Raises `NotPermitted`, `PluginResource.DoesNotExist`."""
    access.require(PlatformAct.ROUTE)
    found = PluginResource.objects.select_for_update().get(resource=resource)
    _record_resource("resource.forgotten", found, access=access, request_id=request_id, now=now)
    found.delete()


def _end(
    found: RouteRule,
    how: RouteRule.End,
    *,
    request_id: str,
    now: datetime,
    person: UUID | None,
) -> None:
    found.ended_at, found.ended_by, found.end = now, person, how
    found.save(update_fields=["ended_at", "ended_by", "end"])
    _wake(found, request_id=request_id, now=now)
    action = "route.ended" if how == RouteRule.End.LIFTED else "route.expired"
    _record(action, found, request_id=request_id, now=now, person=person)


def _wrong(
    device_class: str,
    path: str,
    reason: str,
    tenant: str,
    template: str,
    begins: datetime,
    until: datetime | None,
    now: datetime,
) -> dict[str, str]:
    wrong: dict[str, str] = {}
    offer = Offer.objects.filter(device_class=device_class).first()
    if offer is None:
        wrong["device_class"] = "There is no such device class in the cluster."
    if path not in list(Path):
        wrong["path"] = f"Choose from {', '.join(Path)}."
    elif path == Path.PLUGIN and offer and not (offer.counts.get("plugin") or {}).get("resource"):
        wrong["path"] = (
            "This class names no extended resource, so Pods could not ask the plugin for it. Set "
            "the class's extendedResourceName first, or choose another path."
        )
    if tenant and not Tenant.objects.filter(slug=tenant).exists():
        wrong["tenant"] = "There is no such tenant; give its short name, or leave it empty."
    if template and not ClaimTemplate.objects.filter(slug=template).exists():
        wrong["template"] = "There is no such template; give its short name, or leave it empty."
    if not 0 < len(reason) <= LONGEST_REASON:
        wrong["reason"] = f"Say why, in at most {LONGEST_REASON} characters: owners read it."
    if until is not None and until <= max(begins, now):
        wrong["until"] = "Choose a time after it begins, or leave it empty."
    return wrong


def _wake(found: RouteRule, *, request_id: str, now: datetime) -> None:
    """Promises a turn of every ask that may take another path now, and tells open pages."""
    asks = Claim.objects.open().filter(released_at=None, classes__contains=[found.device_class])
    asks = asks.exclude(state__in=[State.IN_USE, State.FAILED])
    if found.tenant:
        asks = asks.filter(tenant__slug=found.tenant)
    if found.template:
        asks = asks.filter(version__template__slug=found.template)
    for public_id in asks.order_by("requested_at", "pk").values_list("public_id", flat=True):
        outbox.promise(RECONCILE, public_id, request_id=request_id, now=now)
    transaction.on_commit(lambda: news.publish(["routes"], tenant=found.tenant), robust=True)


def _record(
    action: str, found: RouteRule, *, request_id: str, now: datetime, person: UUID | None
) -> None:
    facts: dict[str, Any] = {
        "class": found.device_class,
        "path": found.path,
        "template": found.template,
        "reason": found.reason,
        "from": found.starts_at.isoformat(),
        "until": found.until.isoformat() if found.until else None,
    }
    record(
        action=action,
        subject=f"route {found.public_id}",
        request_id=request_id,
        at=now,
        person=person,
        tenant=found.tenant,
        facts=facts,
    )


def _record_resource(
    action: str,
    found: PluginResource,
    *,
    access: PlatformAccess,
    request_id: str,
    now: datetime,
) -> None:
    record(
        action=action,
        subject=f"resource {found.resource}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        facts={"class": found.device_class, "selector": found.selector},
    )
