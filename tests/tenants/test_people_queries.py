"""Lists of people, approvals and audit lines cost the same number of queries at any length."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from portal.audit.record import record
from tenants.access import tenant_for
from tenants.members import invite
from tenants.models import PlatformRole, Tenant, User
from tests.factories import make_person, make_tenant
from tests.portal.test_approvals import an_approval

pytestmark = pytest.mark.django_db


def more_members(tenant: Tenant, owner: User, number: int) -> None:
    make_person(f"person{number}", tenant)
    invite(
        access=tenant_for(owner, tenant.slug),
        role="member",
        note=f"somebody {number}",
        lasts=timedelta(days=1),
        now=timezone.now(),
        request_id="request-0001",
    )


def more_approvals(tenant: Tenant, owner: User, number: int) -> None:
    an_approval(
        subject=f"thing {number}", author=make_person(f"asks{number}").person, now=timezone.now()
    )


def more_lines(tenant: Tenant, owner: User, number: int) -> None:
    with transaction.atomic():
        record(
            action="claim.asked",
            subject=f"claim {number}",
            request_id="request-0001",
            at=timezone.now(),
            person=make_person(f"does{number}").person,
            tenant=tenant.slug,
        )


def more_roles(tenant: Tenant, owner: User, number: int) -> None:
    PlatformRole.objects.create(user=make_person(f"role{number}"), role="auditor")


LISTS: dict[str, Callable[[Tenant, User, int], None]] = {
    "/t/tidewater/members/": more_members,
    "/api/v1/tenants/tidewater/members": more_members,
    "/api/v1/tenants/tidewater/invitations": more_members,
    "/approvals/": more_approvals,
    "/api/v1/approvals": more_approvals,
    "/t/tidewater/audit/": more_lines,
    "/api/v1/tenants/tidewater/audit": more_lines,
    "/platform/audit/": more_lines,
    "/platform/roles/": more_roles,
    "/api/v1/platform/roles": more_roles,
    "/platform/people/": more_roles,
    "/api/v1/platform/people": more_roles,
}


@pytest.mark.parametrize("path", LISTS)
def test_longer_lists_ask_no_more(path: str) -> None:
    tenant = make_tenant()
    owner = make_person("rosa", tenant, "owner")
    for role in ("approver", "admin"):
        PlatformRole.objects.create(user=owner, role=role)
    client = Client()
    client.force_login(owner)
    asked = []
    for numbers in (range(2), range(2, 12)):
        for number in numbers:
            LISTS[path](tenant, owner, number)
        client.get(path)
        with CaptureQueriesContext(connection) as queries:
            assert client.get(path).status_code == 200
        asked.append(len(queries))
    assert asked[0] == asked[1], [query["sql"][:90] for query in queries]
