"""A tenant with a namespace on the real API server, an admin who closes it, and a clock."""

from __future__ import annotations

import json

import pytest

from devices.models import Observed, Sync
from tenants.access import Access, PlatformAccess, tenant_for
from tests.devices.closing.acts import Clock
from tests.factories import NOON, make_person, make_tenant


@pytest.fixture(autouse=True)
def classes() -> None:
    """The mirror knows one class, with an extended resource."""
    Sync.objects.create(kind="DeviceClass", listed_at=NOON, alive_at=NOON)
    spec = {"extendedResourceName": "example.com/gpu"}
    Observed.objects.create(
        uid="gpu",
        kind="DeviceClass",
        api_version="v1",
        name="gpu",
        resource_version="1",
        raw=json.dumps({"metadata": {"name": "gpu"}, "spec": spec}).encode(),
        seen_at=NOON,
    )


@pytest.fixture
def access(place: str) -> Access:
    """The owner of a tenant with this test's namespace and a limit."""
    tenant = make_tenant("tidewater", namespaces=(place,), limits={"gpu": 8})
    return tenant_for(make_person("rosa", tenant, "owner"), "tidewater")


@pytest.fixture
def admin() -> PlatformAccess:
    return PlatformAccess(make_person("ada"), frozenset({"admin"}))


@pytest.fixture
def clock() -> Clock:
    return Clock()
