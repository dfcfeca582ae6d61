"""`manage.py scheduleplan` says when so many nodes would be through, and what it cannot."""

from __future__ import annotations

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from migrationplan.plans import strategies
from migrationplan.plans.wishes import WaveWish
from tenants.access import platform_of
from tenants.models import PlatformRole
from tests.factories import make_person

pytestmark = pytest.mark.django_db
SHARES = (
    WaveWish("Canary", percent=1, concurrency=1, soak=timedelta(days=1)),
    WaveWish("A tenth", percent=10, concurrency=20),
    WaveWish("All", percent=100, concurrency=50),
)


def scheduled(*words: str, **options: object) -> list[str]:
    said = StringIO()
    call_command("scheduleplan", *words, stdout=said, **options)
    return said.getvalue().splitlines()


def test_five_thousand_nodes_by_a_strategy() -> None:
    operator = make_person("otto")
    PlatformRole.objects.create(user=operator, role="operator")
    strategies.define(
        "usual", name="Usual", words="", waves=SHARES, access=platform_of(operator),
        request_id="request-0001", now=timezone.now(),
    )  # fmt: skip
    *waves, total = scheduled(strategy="usual", nodes=5000)
    assert [int(line.split(" nodes")[0].split()[-1]) for line in waves] == [50, 500, 4450]
    assert total.startswith("5000 nodes in ")


@pytest.mark.parametrize("words, options", [((), {}), (("P-0",), {}), ((), {"nodes": 5})])
def test_what_cannot_be_scheduled_is_said(
    words: tuple[str, ...], options: dict[str, object]
) -> None:
    with pytest.raises(CommandError):
        scheduled(*words, **options)
