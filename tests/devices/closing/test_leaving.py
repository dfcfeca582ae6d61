"""One namespace leaves its tenant or is adopted: only what is Berth's is taken off or put on."""

from __future__ import annotations

import pytest

from devices.cluster.gateway import Gateway, Ref
from devices.models import NamespaceStanding
from devices.tenancy import places, turns
from tenants.access import Access
from tenants.models import TenantNamespace
from tests.devices.closing.acts import Clock, berths_names
from tests.factories import NOON, make_tenant

pytestmark = [pytest.mark.cluster, pytest.mark.django_db(transaction=True)]


def test_a_namespace_leaves_its_tenant_and_another_may_adopt_it(
    gateway: Gateway, access: Access, place: str, clock: Clock
) -> None:
    turns.turn("tidewater", gateway=gateway, now=NOON)
    TenantNamespace.objects.filter(name=place).update(leaving_at=NOON)
    turns.turn("tidewater", gateway=gateway, now=clock.tick())
    assert berths_names(gateway, place) == []
    assert not access.tenant.namespaces.exists()
    other = make_tenant("basalt", (), {"gpu": 2})
    TenantNamespace.objects.create(tenant=other, name=place, adopted=True)
    turns.turn("basalt", gateway=gateway, now=clock.tick())
    labels = (gateway.get(Ref("Namespace", place)) or {})["metadata"]["labels"]
    assert labels["berth.dev/tenant"] == "basalt"
    turns.turn("tidewater", gateway=gateway, now=clock.tick())
    labels = (gateway.get(Ref("Namespace", place)) or {})["metadata"]["labels"]
    assert labels["berth.dev/tenant"] == "basalt", "the one that left states nothing there"


def test_a_namespace_to_adopt_that_is_not_there_is_not_made(
    gateway: Gateway, access: Access, place: str, clock: Clock
) -> None:
    TenantNamespace.objects.filter(name=place).update(adopted=True)
    turns.turn("tidewater", gateway=gateway, now=clock.tick())
    assert gateway.get(Ref("Namespace", place)) is None
    standing = NamespaceStanding.objects.get()
    assert (standing.state, standing.code) == ("missing", "NAMESPACE_MISSING")


def test_taking_off_touches_only_what_is_berths(
    gateway: Gateway, access: Access, place: str, clock: Clock
) -> None:
    """Labels, annotations and quotas of others stay as they are."""
    mine = {"labels": {"team": "vision"}, "annotations": {"example.com/note": "keep"}}
    gateway.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place, **mine}})
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "theirs", "namespace": place},
        "spec": {"hard": {"pods": "10"}},
    }
    gateway.create(quota)
    turns.turn("tidewater", gateway=gateway, now=NOON)
    row = access.tenant.namespaces.select_related("tenant").get()
    assert places.take_off(row, gateway=gateway, now=clock.tick()) is None
    metadata = (gateway.get(Ref("Namespace", place)) or {})["metadata"]
    assert metadata["labels"]["team"] == "vision"
    assert metadata["annotations"]["example.com/note"] == "keep"
    assert berths_names(gateway, place) == []
    assert gateway.get(Ref("ResourceQuota", "theirs", place)) is not None
