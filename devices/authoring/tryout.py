"""Trying a template before anybody else sees it: as a chosen tenant would, asking for nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from devices.authoring import dryruns
from devices.authoring.drafts import Mistake, mistakes, read_text
from devices.authoring.reviews import check
from devices.dra.objects import Obj
from devices.dra.templates import (
    BadTemplate,
    BadValue,
    Template,
    answers,
    build,
    plainly,
    render,
    settle,
)
from devices.dra.templates.findings import Report
from devices.dra.written import Unreadable
from devices.models import DryRun, TemplateVersion
from portal import news
from portal.errors import Invalid
from tenants.models import Tenant


@dataclass(frozen=True, slots=True)
class Tried:
    """What a text comes to: its mistakes, or the template with the check before publication."""

    mistakes: tuple[Mistake, ...] = ()
    content: Mapping[str, Any] | None = None
    template: Template | None = None
    report: Report | None = None


@dataclass(frozen=True, slots=True)
class Made:
    """What answers to it make: sentences, and the objects as they would be applied."""

    sentences: tuple[str, ...]
    objects: tuple[Obj, ...]


def tried(version: TemplateVersion, text: str) -> Tried:
    """Reads a text in the place of the version's own and checks it against the cluster."""
    try:
        content, template = read_text(text)
    except (Unreadable, BadTemplate):
        return Tried(tuple(mistakes(text)))
    return Tried((), content, template, check(version, content))


def made(template: Template, values: Mapping[str, Any], tenant: Tenant | None) -> Made:
    """What a tenant's answers make, in its own namespace; answers that are not allowed give way."""
    slug = tenant.slug if tenant else ""
    taken = settle(template, values, tenant=slug)
    draft = build(template, taken)
    objects = render(
        template,
        taken,
        name="example",
        namespace=namespace_of(tenant) or "example",
        tenant=slug or "example",
    )
    return Made(plainly(template, draft), tuple(objects))


def dry_run(
    version: TemplateVersion,
    *,
    template: Template,
    values: Mapping[str, Any],
    tenant: Tenant | None,
    person: UUID,
    request_id: str,
    now: datetime,
) -> DryRun:
    """Asks the API server what it would say to the objects of these answers, as this tenant.

    Raises `Invalid` (tenant, values.<parameter>).
    """
    namespace = namespace_of(tenant)
    if tenant is None or not namespace:
        text = "Choose a tenant that has a namespace; the API server needs a place to look at."
        raise Invalid("Nothing was tried.", fields={"tenant": text})
    try:
        taken = answers(template, values, tenant=tenant.slug)
    except BadValue as bad:
        wrong = {f"values.{name}": text for name, text in bad.fields.items()}
        raise Invalid("Nothing was tried; some answers are not right.", fields=wrong) from bad
    objects = render(
        template,
        taken,
        name=f"dry-run-{version.template.slug}"[:50].rstrip("-"),
        namespace=namespace,
        tenant=tenant.slug,
    )
    return dryruns.ask(
        objects,
        about=f"{version} as {tenant.name}",
        person=person,
        tenant=news.PLATFORM,
        request_id=request_id,
        now=now,
    )


def tenants() -> QuerySet[Tenant]:
    """As whom a template can be tried."""
    return Tenant.objects.exclude(state=Tenant.State.CLOSED).order_by("name")


def namespace_of(tenant: Tenant | None) -> str:
    """Where a tenant's objects would be made; empty where it has no namespace."""
    if tenant is None:
        return ""
    return tenant.namespaces.order_by("pk").values_list("name", flat=True).first() or ""
