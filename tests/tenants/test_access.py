"""Owner, reader, stranger: who reaches a tenant, and what the others learn (nothing)."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import AnonymousUser
from django.http import Http404

from tenants.access import tenant_for, tenants_of
from tenants.models import Tenant
from tenants.policy import Act
from tests.factories import make_person, make_tenant

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("role", "may_ask"),
    [
        pytest.param("owner", True, id="an owner may ask"),
        pytest.param("member", True, id="a member may ask"),
        pytest.param("viewer", False, id="a viewer only looks"),
    ],
)
def test_members_reach_their_tenant(role: str, may_ask: bool) -> None:
    tenant = make_tenant()
    access = tenant_for(make_person("avocet", tenant, role), tenant.slug)
    assert (access.tenant, access.role, access.may(Act.ASK)) == (tenant, role, may_ask)


def test_a_stranger_cannot_tell_a_foreign_tenant_from_none() -> None:
    make_tenant("tidewater")
    stranger = make_person("sorrel", make_tenant("basalt", namespaces=("basalt-x",)))
    for slug in ("tidewater", "nothing-here"):
        with pytest.raises(Http404) as refused:
            tenant_for(stranger, slug)
        assert str(refused.value) == ""


def test_nobody_is_a_stranger_too() -> None:
    make_tenant()
    with pytest.raises(Http404):
        tenant_for(AnonymousUser(), "tidewater")


def test_a_closed_tenant_is_gone_for_its_members() -> None:
    tenant = make_tenant()
    owner = make_person("avocet", tenant, "owner")
    Tenant.objects.filter(pk=tenant.pk).update(state=Tenant.State.CLOSED)
    with pytest.raises(Http404):
        tenant_for(owner, tenant.slug)
    assert tenants_of(owner) == []
