"""The little world that the matrix asks about: one of everything, and somebody of every kind."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from http.cookies import SimpleCookie

from django.test import Client
from django.utils import timezone

from devices.freezes import freeze
from portal.approvals.delegations import delegate
from tenants import grants
from tenants.access import Access, platform_of, tenant_for
from tenants.members import invite
from tenants.models import GroupRole, PlatformRole, User
from tenants.tokens import make_token
from tests.factories import make_claim, make_person, make_tenant, make_version
from tests.portal.test_approvals import an_approval

REQUEST = "request-0001"


@dataclass
class World:
    """Callers by kind, and what stands in the place of a route's parameters.

    `values` are by parameter name, or by parameter name and the route's beginning where one name
    means several things.
    """

    callers: dict[str, Callable[[], Client]] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)

    def path(self, route: str) -> str:
        """The route with real things in it; KeyError names the parameter that nobody made."""

        def real(found: re.Match[str]) -> str:
            name = found[1]
            special = [
                value
                for key, value in self.values.items()
                if key.startswith(f"{name} ") and route.startswith(key.partition(" ")[2])
            ]
            return special[0] if special else self.values[name]

        return "/" + re.sub(r"<\w+:(\w+)>", real, route.lstrip("/"))


def build() -> World:
    """Makes everything anew; call it in a transaction that is rolled back."""
    world, now = World(), timezone.now()
    tenant = make_tenant("tidewater", limits={"gpu": 8})
    other = make_tenant("basalt", ("basalt-pipelines",), {"gpu": 8})
    people = {
        "owner": make_person("rosa", tenant, "owner"),
        "member": make_person("tim", tenant, "member"),
        "viewer": make_person("iris", tenant, "viewer"),
        "stranger": make_person("basil", other, "owner"),
        **{role: _on_platform(role) for role in ("operator", "auditor", "approver", "admin")},
    }
    for kind, user in people.items():
        world.callers[kind] = _browser(user)
    world.callers["anonymous"] = Client
    access = tenant_for(people["owner"], "tidewater")
    world.callers["expired"] = _program(access, "read", "request", late=True)
    world.callers["reads"] = _program(access, "read")
    world.callers["asks"] = _program(access, "request")

    claim = make_claim(access, make_version(), now=now)
    approval = an_approval(author=people["member"].person, now=now)
    invitation = invite(
        access=access,
        role="member",
        note="Tansy",
        lasts=timedelta(days=1),
        now=now,
        request_id=REQUEST,
    )
    loan = delegate(
        lender=people["approver"].person,
        borrower=people["operator"].person,
        starts_at=now,
        ends_at=now + timedelta(days=1),
        request_id=REQUEST,
        now=now,
    )
    token = make_token(
        access=access,
        name="nightly",
        scopes=["read"],
        expires_at=now + timedelta(days=1),
        now=now,
        request_id=REQUEST,
    )
    grant = grants.offer(
        access=access,
        namespace="basalt-pipelines",
        template="gpu",
        device_class="gpu",
        count=1,
        pays="giver",
        ends_at=now + timedelta(days=1),
        words="for the review",
        request_id=REQUEST,
        now=now,
    )
    frozen = freeze(
        access=platform_of(people["operator"]),
        scope="tenant",
        target="basalt",
        strict=False,
        reason="Firmware",
        until=now + timedelta(days=1),
        request_id=REQUEST,
        now=now,
    )
    group = GroupRole.objects.create(group="sre", role="operator")
    world.values = {
        "slug": "tidewater",
        "template": "gpu",
        "public_id": claim.public_id,
        "public_id t/<slug:slug>/grants": grant.public_id,
        "public_id api/v1/tenants/<slug:slug>/grants": grant.public_id,
        "public_id platform/freezes": frozen.public_id,
        "public_id api/v1/platform/freezes": frozen.public_id,
        "number": approval.number,
        "username": "tim",
        "username platform/roles": "operator",
        "username api/v1/platform/roles": "operator",
        "role": "operator",
        "prefix": invitation.row.prefix,
        "prefix account/tokens": token.row.prefix,
        "pk": str(loan.pk),
        "pk platform/groups": str(group.pk),
        "pk api/v1/platform/groups": str(group.pk),
        "pk account/sessions": "0",
        "provider_id": "company",
    }
    return world


def _on_platform(role: str) -> User:
    user = make_person(role)
    PlatformRole.objects.create(user=user, role=role)
    return user


def _browser(user: User) -> Callable[[], Client]:
    first = Client()
    first.force_login(user)

    def signed_in() -> Client:
        client = Client()
        client.cookies = SimpleCookie(first.cookies.output(header="", sep=";"))
        return client

    return signed_in


def _program(access: Access, *scopes: str, late: bool = False) -> Callable[[], Client]:
    made = timezone.now() - timedelta(hours=2 if late else 0)
    token = make_token(
        access=access,
        name="program",
        scopes=scopes,
        expires_at=made + timedelta(hours=1),
        now=made,
        request_id=REQUEST,
    )
    return lambda: Client(headers={"Authorization": f"Bearer {token.text}"})
