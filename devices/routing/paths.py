"""Which path asks take now: what the platform has set and what the cluster has, read from rows; and
asks that follow when it changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db import transaction
from django.urls import reverse

from devices.asks import consumers
from devices.dra.lifecycle import State
from devices.dra.objects import ClaimWish
from devices.forecasts.picture import Picture
from devices.forecasts.warm import warm
from devices.models import Claim, ClaimEvent, Offer, PluginResource, RouteRule
from devices.routing.routes import IMPLICIT, Path, Route, Ruling, Serving, route, ruling
from devices.translation.asks import Target
from portal.alerts.raising import About, over, raise_alert
from portal.alerts.rules import Severity
from portal.audit.record import record

ROUTE_CHANGED: Final = "ROUTE_CHANGED"
#: States of an ask that may still take another path.
WAITING: Final = frozenset({State.REQUESTED, State.HELD, State.APPLIED, State.PENDING})


def routed(asked: ClaimWish, template: str, now: datetime) -> Route:
    """Which path an ask takes, by what is set and the newest counts of its classes; two queries."""
    rules = RouteRule.objects.standing(now).about(asked.device_classes, asked.tenant)
    return _routed(asked, template, [rule.ruling() for rule in rules])


def _routed(asked: ClaimWish, template: str, rulings: Iterable[Ruling]) -> Route:
    seen, rulings = warm(), list(rulings)
    names = asked.device_classes
    counts = dict(
        Offer.objects.filter(device_class__in=names).values_list("device_class", "counts")
    )
    return route(
        asked,
        [
            _serving(
                name, counts.get(name) or {}, seen, ruling(rulings, name, asked.tenant, template)
            )
            for name in sorted(names)
        ],
    )


def _serving(
    name: str, counts: Mapping[str, Any], seen: Picture | None, ruled: Ruling | None
) -> Serving:
    plugin = counts.get("plugin") or {}
    known = seen.now.classes.get(name) if seen is not None else None
    return Serving(
        name,
        by_dra=counts.get("total") or 0,
        by_plugin=plugin.get("allocatable") or 0,
        resource=known.extended_resource if known is not None else plugin.get("resource", ""),
        extended="DRAExtendedResource" in seen.now.gates if seen is not None else None,
        ruling=ruled,
    )


@dataclass(frozen=True, slots=True)
class PluginFree:
    """What plugins offer of a resource on all nodes together, and what no Pod asks for."""

    resource: str
    offered: int
    free: int


def offered_by_plugin(asked: ClaimWish) -> list[PluginFree]:
    """What plugins have of an ask's classes, from the newest counts; one query."""
    rows = Offer.objects.filter(device_class__in=asked.device_classes).order_by("device_class")
    found = [counts.get("plugin") or {} for counts in rows.values_list("counts", flat=True)]
    return [
        PluginFree(
            one["resource"],
            one.get("allocatable") or 0,
            (one.get("allocatable") or 0) - (one.get("requested") or 0),
        )
        for one in found
        if one.get("resource")
    ]


def taken(found: Route) -> dict[str, Any]:
    """A route as the fields of an ask that takes it."""
    return {
        "path": found.path.value,
        "resources": [list(one) for one in found.resources],
        "route_why": found.why,
        "ruled_by": " ".join(found.rulings),
    }


def follow(claim: Claim, now: datetime) -> Route | None:
    """Brings an ask that still waits to the path that is set now, and tells its tenant.

    What nothing was set for anew keeps its path, whatever comes and goes in the cluster. Returns
    the route that it should take and cannot, because Pods that were made for the present one are
    there already; they ask by what cannot be changed any more.
    """
    if not claim.wanted or claim.state not in WAITING:
        return None
    rules = RouteRule.objects.standing(now).about(claim.classes, claim.tenant.slug)
    rulings = [rule.ruling() for rule in rules]
    template = claim.version.template.slug
    found = [ruling(rulings, name, claim.tenant.slug, template) for name in claim.classes]
    if " ".join(sorted(one.id for one in found if one is not None)) == claim.ruled_by:
        return None
    new = _routed(claim.wish(), template, rulings)
    fields = taken(new)
    same = claim.path == new.path and claim.resources == fields["resources"]
    moves = claim.path != Path.CLAIM and claim.resources == fields["resources"]
    if not same and not moves and consumers.live_pods(claim.namespace.name, claim.public_id):
        return new
    _reroute(claim, fields, told="" if same else new.why, now=now)
    return None


@transaction.atomic
def _reroute(claim: Claim, fields: Mapping[str, Any], *, told: str, now: datetime) -> None:
    """Writes the new route down; where it is another path, with its event, audit line and alert."""
    before, changed = claim.path, dict(fields)
    if told:
        # Made anew where it comes back to a claim: it was not deleted by somebody else.
        changed |= {"object_uid": "", "sent_from": "", "revision": claim.revision + 1}
    for name, value in changed.items():
        setattr(claim, name, value)
    claim.save(update_fields=list(changed))
    if not told:
        return
    ClaimEvent.objects.create(claim=claim, at=now, state=claim.state, code=ROUTE_CHANGED, text=told)
    record(
        action="claim.rerouted",
        subject=f"claim {claim.public_id}",
        request_id=claim.request_id,
        at=now,
        tenant=claim.tenant.slug,
        facts={"from": before, "to": claim.path, "rules": claim.ruled_by},
    )
    tell(claim, f"{claim.name} goes by {Path(claim.path).words} now", told, now)


def tell(claim: Claim, title: str, words: str, now: datetime) -> None:
    """Rings at whoever asked: what they paste is another thing now."""
    subject, tenant = f"claim {claim.public_id}", claim.tenant.slug
    over(ROUTE_CHANGED, subject, tenant=tenant, person=claim.asked_by, now=now)
    raise_alert(
        About(
            code=ROUTE_CHANGED,
            subject=subject,
            title=title,
            severity=Severity.NOTICE,
            tenant=tenant,
            person=claim.asked_by,
            words=words,
            path=reverse("claim", args=[claim.tenant.slug, claim.public_id]),
        ),
        now=now,
        request_id=claim.request_id,
    )


def targets() -> list[Target]:
    """What each extended resource stands for: as classes say, by their implicit names, and as the
    platform has set for plugins' names; two queries.
    """
    seen = warm()
    if seen is None:
        return []
    served = "DRAExtendedResource" in seen.now.gates
    counts = dict(Offer.objects.values_list("device_class", "counts"))
    found: dict[str, Target] = {}

    def put(resource: str, name: str, selectors: tuple[str, ...] = (), *, by_class: bool) -> None:
        count = counts.get(name) or {}
        plugin = count.get("plugin") or {}
        of_this = plugin.get("resource") == resource
        found[resource] = Target(
            resource,
            name,
            selectors,
            by_dra=count.get("total"),
            by_plugin=plugin.get("allocatable") if of_this else None,
            served=served and by_class,
        )

    for row in PluginResource.objects.all():
        if row.device_class in seen.now.classes:
            selectors = (row.selector,) if row.selector else ()
            put(row.resource, row.device_class, selectors, by_class=False)
    for name, known in seen.now.classes.items():
        put(f"{IMPLICIT}{name}", name, by_class=True)
        if known.extended_resource:
            put(known.extended_resource, name, by_class=True)
    return list(found.values())
