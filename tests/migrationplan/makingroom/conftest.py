"""Somebody who may make room, and an ask whose Pod waits for it."""

from __future__ import annotations

import pytest
from django.utils import timezone

from devices.models import Claim
from tenants.access import PlatformAccess, tenant_for
from tenants.models import Tenant
from tests.factories import make_claim, make_person, make_tenant, make_version
from tests.migrationplan.keeping import CLASS, on_platform


@pytest.fixture
def operator() -> PlatformAccess:
    return on_platform("olga", "operator")


@pytest.fixture
def claim() -> Claim:
    """An ask of a tenant that lets others be ended, with a Pod that waits."""
    tenant = make_tenant("tide", ("team",), {"gpu": 8})
    Tenant.objects.update(priority="utilisation")
    made = make_claim(
        tenant_for(make_person("rosa", tenant, "owner"), "tide"), make_version(), now=timezone.now()
    )
    Claim.objects.filter(pk=made.pk).update(
        state="pending",
        pods=[{"name": "waits", "phase": "Pending", "ready": False}],
        classes=[CLASS],
        object_name="w",
        devices=[{"name": "r", "device_class": CLASS, "count": 1}],
    )
    made.refresh_from_db()
    return made
