"""A pool of two moved nodes and two that are the plugin's, and who may define its gates."""

from __future__ import annotations

from datetime import timedelta

import pytest

from devices.models import Claim, NodePool
from migrationplan.gating import Subject
from tenants.access import PlatformAccess
from tests.factories import NOON, make_access, make_claim, make_person
from tests.migrationplan.gating.rows import BEGAN
from tests.migrationplan.test_survey import DRIVER, GPU


@pytest.fixture
def operator() -> PlatformAccess:
    return PlatformAccess(make_person("olga"), frozenset({"operator"}))


@pytest.fixture
def pool(operator: PlatformAccess) -> NodePool:
    return NodePool.objects.create(
        slug="rack", name="Rack", selector={"pool": "rack"}, resource=GPU, driver=DRIVER,
        device_class="h100", plugin_label="x.example/plugin=on", driver_label="x.example/dra=on",
        plugin_sets=["gpu/plugin"], driver_sets=["gpu/driver"], devices_per_node=4,
        made_by=operator.user.person, made_at=NOON,
    )  # fmt: skip


@pytest.fixture
def subject(pool: NodePool) -> Subject:
    """Two nodes that moved five hours ago; two others are the plugin's."""
    moved = dict.fromkeys(("m1", "m2"), NOON - timedelta(hours=5))
    return Subject(pool, moved, BEGAN)


@pytest.fixture
def claim() -> Claim:
    return make_claim(make_access())
