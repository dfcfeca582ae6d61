"""What somebody's rules refuse a wave: told with the reason, and not again and again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from migrationplan.models import Wave
from migrationplan.plans.reconcile import tell_refused
from portal.errors import Invalid, NotPermitted
from tests.factories import NOON
from tests.migrationplan.test_plan import a_plan, a_pool, person

pytestmark = pytest.mark.django_db


def test_a_refusal_is_told_once_in_a_phase_with_its_reason() -> None:
    operator = person("olga", "operator")
    a_pool(operator, 4)
    wave = a_plan(operator).waves.first()
    assert wave is not None
    why = Invalid("Nothing was set yet.", fields={"path": "This class names no extended resource."})
    for seconds in (0, 5, 10):
        tell_refused(wave, why, NOON + timedelta(seconds=seconds))
    [event] = wave.events.filter(text__startswith="Refused:")
    assert event.text == "Refused: Nothing was set yet. This class names no extended resource."
    assert event.code == "INVALID"

    tell_refused(wave, NotPermitted("An operator may."), NOON)
    Wave.objects.filter(pk=wave.pk).update(since=NOON + timedelta(minutes=1))
    wave.refresh_from_db()
    tell_refused(wave, why, NOON + timedelta(minutes=2))
    assert wave.events.filter(text__startswith="Refused:").count() == 3, "anew in another phase"
