"""Rows for tests: plain functions, few, with defaults that read like a story."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from devices.asks.claims import request_claim
from devices.models import Claim, ClaimTemplate, TemplateVersion
from tenants.access import Access, tenant_for
from tenants.models import Limit, Membership, Tenant, TenantNamespace, User

NOON = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
PASSWORD = "harbour-light-71"
GPU_CONTENT: dict[str, Any] = {
    "requests": [{"name": "gpu", "device_class": "gpu", "words": "GPU"}],
    "parameters": [
        {"kind": "count", "name": "count", "label": "How many", "request": "gpu", "maximum": 8}
    ],
}


def make_tenant(
    slug: str = "tidewater",
    namespaces: tuple[str, ...] = ("tidewater-train",),
    limits: Mapping[str, int | None] | None = None,
) -> Tenant:
    """A tenant with namespaces; without `limits` (devices by class) it may use any class."""
    tenant = Tenant.objects.create(slug=slug, name=slug.capitalize())
    for name in namespaces:
        TenantNamespace.objects.create(tenant=tenant, name=name)
    for device_class, amount in ({"*": None} if limits is None else limits).items():
        make_limit(tenant, device_class, amount)
    return tenant


def make_limit(tenant: Tenant, device_class: str, amount: int | None, **shares: int) -> Limit:
    """A limit on the devices of a class; shares by namespace with _ for -."""
    row = Limit.objects.create(
        tenant=tenant,
        measure="devices",
        device_class=device_class,
        amount=amount,
        changed_at=NOON,
    )
    for name, share in shares.items():
        place = tenant.namespaces.get(name=name.replace("_", "-"))
        row.shares.create(namespace=place, amount=share)
    return row


def make_person(username: str, tenant: Tenant | None = None, role: str = "member") -> User:
    """Somebody who can sign in with PASSWORD, a member of `tenant` where one is given."""
    user = User.objects.create_user(username, f"{username}@example.com", PASSWORD)
    if tenant:
        Membership.objects.create(tenant=tenant, user=user, role=role)
    return user


def make_access(username: str = "avocet", role: str = "member", **tenant: Any) -> Access:
    """A new tenant as its new member sees it."""
    made = make_tenant(**tenant)
    return tenant_for(make_person(username, made, role), made.slug)


def make_version(
    slug: str = "gpu", content: Mapping[str, Any] = GPU_CONTENT, state: str = "approved"
) -> TemplateVersion:
    """A template with one version."""
    template, _ = ClaimTemplate.objects.get_or_create(slug=slug, defaults={"name": slug.upper()})
    return TemplateVersion.objects.create(
        template=template,
        number=template.versions.count() + 1,
        content=dict(content),
        state=state,
    )


def make_claim(access: Access, version: TemplateVersion | None = None, **asked: Any) -> Claim:
    """An ask, through the verb."""
    return request_claim(
        access=access,
        version=version or make_version(),
        namespace=asked.pop("namespace", access.tenant.namespaces.all()[0].name),
        name=asked.pop("name", "train"),
        values=asked.pop("values", {}),
        request_id=asked.pop("request_id", "request-0001"),
        now=asked.pop("now", NOON),
        at_once=asked.pop("at_once", 1),
        grant=asked.pop("grant", ""),
        days=asked.pop("days", None),
        note=asked.pop("note", ""),
    )
