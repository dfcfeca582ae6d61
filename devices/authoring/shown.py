"""Which templates a tenant sees: to the others they do not exist.

A template is for every tenant, for those whose limits allow what it asks for, or for named ones;
who was lent something of it by a grant sees it too. Holders keep what they have, whatever they see.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from devices.dra.templates import Template
from devices.models import ClaimTemplate, TemplateVersion
from tenants.grants import usable_templates
from tenants.limits import Limits, bound_of, devices_of
from tenants.models import Tenant
from tenants.sums import limits_of

Audience = ClaimTemplate.Audience


@dataclass(frozen=True, slots=True)
class Viewer:
    """What decides what a tenant sees: its limits, and templates of which it was lent something."""

    tenant: Tenant
    limits: Limits
    lent: Collection[str]

    def sees(self, version: TemplateVersion) -> bool:
        """Whether this tenant sees the version's template; its `tenants` are prefetched."""
        template = version.template
        if template.slug in self.lent:
            return True
        match template.audience:
            case Audience.NAMED:
                return self.tenant in template.tenants.all()
            case Audience.LIMITS:
                return allowed(version.read(), self.limits)
        return True


def viewer(tenant: Tenant, now: datetime) -> Viewer:
    """The tenant as one who looks: three queries."""
    return Viewer(tenant, limits_of(tenant), usable_templates(tenant, now))


def shown_to(tenant: Tenant, now: datetime) -> list[TemplateVersion]:
    """What this tenant may ask for now, by name; a constant number of queries."""
    looking = viewer(tenant, now)
    return [version for version in _approved() if looking.sees(version)]


def beyond(versions: Iterable[TemplateVersion], tenant: Tenant, now: datetime) -> frozenset[str]:
    """Slugs of those templates that no answer brings within the tenant's limits or a grant."""
    looking = viewer(tenant, now)
    return frozenset(
        version.template.slug
        for version in versions
        if version.template.slug not in looking.lent and not allowed(version.read(), looking.limits)
    )


def shown(tenant: Tenant, slug: str, now: datetime) -> TemplateVersion | None:
    """The version of a template that this tenant may ask for now; None where there is none."""
    version = _approved().filter(template__slug=slug).first()
    return version if version is not None and viewer(tenant, now).sees(version) else None


def allowed(template: Template, limits: Limits) -> bool:
    """Whether every device that is always asked for can be of a class that the limits allow."""
    return all(
        any(allows(limits, name) for name in classes)
        for classes in reach(template).values()
        if classes
    )


def reach(template: Template) -> dict[str, frozenset[str]]:
    """By request that is always made: every class that some answer can lead it to."""
    found: dict[str, set[str]] = {}
    for request in template.requests:
        if not request.when:
            own = [one.device_class for one in request.alternatives] or [request.device_class]
            found[request.name] = set(own)
    for _, fragments in template.fragments():
        for name, device_class in fragments.device_class.items():
            request_name = name.partition("/")[0]
            if request_name in found:
                found[request_name].add(device_class)
    return {name: frozenset(classes - {""}) for name, classes in found.items()}


def allows(limits: Limits, device_class: str) -> bool:
    """Whether limits leave room for any device of a class at all."""
    bound = bound_of(limits, devices_of(device_class))
    return bound is not None and (bound.amount is None or bound.amount > 0)


def _approved() -> QuerySet[TemplateVersion]:
    rows = TemplateVersion.objects.filter(state=TemplateVersion.State.APPROVED)
    return (
        rows.select_related("template")
        .prefetch_related("template__tenants")
        .order_by("template__name")
    )
