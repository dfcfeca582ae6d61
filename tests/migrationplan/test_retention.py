"""Which readings of gates are forgotten with time, and that nothing else may touch them."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from django.db import DatabaseError, transaction

from devices.models import NodePool
from migrationplan.models import Plan, Reading
from portal import retention
from tests.factories import NOON
from tests.migrationplan.test_plan import THREE, a_plan, a_pool, person

pytestmark = pytest.mark.django_db
LONG_AGO = NOON - timedelta(days=400)


@pytest.fixture
def plan() -> Plan:
    operator = person("olga", "operator")
    a_pool(operator, 10)
    return a_plan(operator, *THREE)


def a_reading(at: datetime, *, wave: str = "", gate: str = "wait") -> Reading:
    return Reading.objects.create(
        at=at, wave=wave, pool=NodePool.objects.get(), direction="to DRA", moved=[], nodes=[],
        since=at, gate=gate, name=gate, measure="wait", settings={}, verdict="pass", sentence="",
        samples=b"", digest="",
    )  # fmt: skip


def left() -> set[int]:
    return set(Reading.objects.values_list("pk", flat=True))


def test_old_ones_go_and_the_newest_of_each_gate_stays(plan: Plan) -> None:
    gone = [a_reading(LONG_AGO), a_reading(LONG_AGO + timedelta(hours=1))]
    kept = [
        a_reading(LONG_AGO + timedelta(hours=2)),
        a_reading(LONG_AGO, gate="drift"),
        a_reading(LONG_AGO, wave="over"),
    ]
    assert retention.forget(NOON, rehearse=True)["readings of gates"] == 2
    assert left() == {one.pk for one in (*gone, *kept)}
    assert retention.forget(NOON)["readings of gates"] == 2
    assert left() == {one.pk for one in kept}
    assert retention.forget(NOON)["readings of gates"] == 0


def test_a_wave_that_is_not_over_keeps_all_of_its_own(plan: Plan) -> None:
    wave, *_ = plan.waves.all()
    for hours in range(3):
        a_reading(LONG_AGO + timedelta(hours=hours), wave=wave.public_id)
    assert retention.forget(NOON)["readings of gates"] == 0
    plan.waves.update(phase="done")
    assert retention.forget(NOON)["readings of gates"] == 2


def test_young_ones_stay_and_nobody_else_deletes_any(plan: Plan) -> None:
    for hours in range(3):
        a_reading(NOON - timedelta(hours=hours))
    assert retention.forget(NOON)["readings of gates"] == 0
    with pytest.raises(DatabaseError), transaction.atomic():
        Reading.objects.all().delete()
