"""Who holds claims of a template's versions, counted; each with one query."""

from __future__ import annotations

from dataclasses import dataclass, field

from django.db.models import Count

from devices.models import Claim, ClaimTemplate


@dataclass(frozen=True, slots=True)
class Held:
    """What is open of one version: claims, and of how many tenants."""

    claims: int = 0
    tenants: int = 0


@dataclass(frozen=True, slots=True)
class Holders(Held):
    """What is open of a template: in all, by version (its number) and by tenant (slug, name)."""

    versions: dict[int, Held] = field(default_factory=dict)
    named: tuple[tuple[str, str, int], ...] = ()


def holders_of(template: ClaimTemplate) -> Holders:
    """Open claims of one template, by version and by tenant; the greatest holders first."""
    rows = (
        Claim.objects.open()
        .filter(version__template=template)
        .order_by()
        .values_list("version__number", "tenant__slug", "tenant__name")
        .annotate(claims=Count("pk"))
    )
    versions: dict[int, Held] = {}
    tenants: dict[tuple[str, str], int] = {}
    for number, slug, name, claims in rows:
        held = versions.get(number, Held())
        versions[number] = Held(held.claims + claims, held.tenants + 1)
        tenants[slug, name] = tenants.get((slug, name), 0) + claims
    named = sorted(tenants.items(), key=lambda one: (-one[1], one[0]))
    return Holders(
        sum(tenants.values()),
        len(tenants),
        versions,
        tuple((slug, name, claims) for (slug, name), claims in named),
    )


def holders_by_template() -> dict[int, Held]:
    """Open claims by template (primary key), for a list of all of them."""
    rows = (
        Claim.objects.open()
        .order_by()
        .values_list("version__template")
        .annotate(claims=Count("pk"), tenants=Count("tenant", distinct=True))
    )
    return {template: Held(claims, tenants) for template, claims, tenants in rows}
