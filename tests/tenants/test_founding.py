"""Making tenants, renaming them, choosing what happens to waiting asks."""

from __future__ import annotations

from typing import Any

import pytest

from portal.audit.models import AuditLine
from portal.errors import Invalid, NotPermitted
from tenants.access import PlatformAccess, tenant_for
from tenants.founding import TenantOver, change_tenant, make_tenant
from tenants.models import Tenant
from tests.factories import NOON, make_person
from tests.factories import make_tenant as a_tenant

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin() -> PlatformAccess:
    return PlatformAccess(make_person("ada"), frozenset({"admin"}))


def made(admin: PlatformAccess, **more: Any) -> Tenant:
    given = {"slug": "vision", "name": "Vision", "owner": "rosa", "priority": "throughput"}
    return make_tenant(access=admin, request_id="request-1", now=NOON, **{**given, **more})


def test_a_tenant_begins_with_an_owner_and_nothing_else(admin: PlatformAccess) -> None:
    rosa = make_person("rosa")
    tenant = made(admin)
    assert tenant_for(rosa, "vision").role == "owner"
    assert (tenant.state, tenant.priority) == ("active", "throughput")
    assert not tenant.limits.exists() and not tenant.namespaces.exists()
    line = AuditLine.objects.get()
    assert (line.action, line.tenant) == ("tenant.made", "vision")
    assert line.facts["owner"] == str(rosa.person)


@pytest.mark.parametrize(
    ("given", "field", "said"),
    [
        pytest.param({"slug": "Vi sion"}, "slug", "lower-case", id="a name with blanks"),
        pytest.param({"slug": "closed-one"}, "slug", "not given twice", id="one that was taken"),
        pytest.param({"name": "  "}, "name", "Give it a name", id="no name"),
        pytest.param({"name": "x" * 121}, "name", "at most 120", id="a name too long"),
        pytest.param({"owner": "nobody"}, "owner", "Nobody is called that", id="no such person"),
        pytest.param({"priority": "mine"}, "priority", "Choose one of", id="no such priority"),
    ],
)
def test_what_is_wrong_is_named(
    admin: PlatformAccess, given: dict[str, str], field: str, said: str
) -> None:
    make_person("rosa")
    Tenant.objects.filter(pk=a_tenant("closed-one").pk).update(state="closed")
    with pytest.raises(Invalid) as refused:
        made(admin, **given)
    assert list(refused.value.fields) == [field]
    assert said in refused.value.fields[field]


@pytest.mark.parametrize("role", ["operator", "auditor", "approver"])
def test_only_admins_make_and_change_tenants(role: str) -> None:
    access = PlatformAccess(make_person("omar"), frozenset({role}))
    make_person("rosa")
    with pytest.raises(NotPermitted):
        made(access)
    with pytest.raises(NotPermitted):
        change_tenant(
            access=access, tenant=a_tenant(), name="Other", request_id="request-1", now=NOON
        )


def test_a_change_says_what_was_and_what_is_and_none_says_nothing(admin: PlatformAccess) -> None:
    tenant = a_tenant("tidewater", ())
    for _ in range(2):
        tenant = change_tenant(
            access=admin,
            tenant=tenant,
            priority="utilisation",
            request_id="request-1",
            now=NOON,
        )
    assert (tenant.name, tenant.priority) == ("Tidewater", "utilisation")
    line = AuditLine.objects.get()
    assert line.facts == {
        "before": {"priority": "continuity"},
        "after": {"priority": "utilisation"},
    }


def test_a_closed_tenant_stays_as_it_was(admin: PlatformAccess) -> None:
    tenant = a_tenant("tidewater", ())
    Tenant.objects.update(state="closed")
    with pytest.raises(TenantOver):
        change_tenant(access=admin, tenant=tenant, name="New", request_id="request-1", now=NOON)


def test_each_priority_says_what_it_does() -> None:
    assert all(one.words for one in Tenant.Priority)
