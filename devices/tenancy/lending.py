"""What can be lent, and what ending a grant touches: the part of grants that knows templates."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.utils import timezone

from devices.authoring.shown import shown
from devices.models import Claim, TemplateVersion
from tenants.models import BudgetLine, Grant, Tenant

MOST_NAMED = 50


@dataclass(frozen=True, slots=True)
class Touched:
    """What is in use by a grant. `claims` are named only for the side that asked for them."""

    asks: int
    devices: int
    pods: int
    claims: tuple[Claim, ...]


def lendable(versions: Iterable[TemplateVersion]) -> list[tuple[str, str, str]]:
    """Template, its name, and a class that it can lead to: what a grant can be about."""
    return [
        (version.template.slug, version.template.name, device_class)
        for version in versions
        for device_class in sorted(version.read().device_classes)
    ]


def wrong_terms(giver: Tenant, template: str, device_class: str) -> dict[str, str]:
    """What is wrong with a template and a class together, by field; empty where they fit."""
    version = shown(giver, template, timezone.now())
    if version is None:
        return {"template": "No approved template of that name."}
    classes = sorted(version.read().device_classes)
    if device_class not in classes:
        return {"device_class": f"This template leads to {', '.join(classes)}."}
    return {}


def touched(grant: Grant, reader: Tenant) -> Touched:
    """Asks, devices and Pods that use the grant now; two queries.

    All of them stay when it ends. The giver learns how many, the taker also which.
    """
    lines = BudgetLine.objects.filter(
        grant=grant, given_back_at=None, measure="devices", device_class=grant.device_class
    ).values_list("source", "amount")
    amounts = dict(lines)
    claims = list(Claim.objects.filter(public_id__in=amounts).whole().order_by("pk"))
    pods = sum(
        1 for claim in claims for pod in claim.pods if pod["phase"] in {"Pending", "Running"}
    )
    own = tuple(claim for claim in claims if claim.tenant_id == reader.pk)
    return Touched(len(amounts), int(sum(amounts.values())), pods, own[:MOST_NAMED])
