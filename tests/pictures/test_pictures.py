"""Each failure code as people meet it: brought about by the product's own rules, seen on its page.

`BERTH_PICTURES=yes make test-long ARGS=tests/pictures` writes docs/runbooks/pictures/ anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone
from playwright.sync_api import Browser, expect
from pytest_django import Settings

from devices.asks.verdicts import verdict
from devices.dra.lifecycle import State
from devices.models import Claim
from devices.runbooks import failures, runbooks
from portal.alerts.models import Alert
from tests.pictures.camera import LARGEST, show, take
from tests.pictures.scenes import NONE, SCENES

PICTURES = Path(__file__).parents[2] / "docs" / "runbooks" / "pictures"
EVERY = sorted(SCENES)
#: Findings that ring by another code, or that nobody has to be woken for.
QUIET = frozenset(
    {
        "ISOLATION_SHARE_REACHED",
        "LEDGER_CLAIM_GONE",
        "LEDGER_COUNTED_TWICE",
        "LEDGER_STOPPED",  # whoever stopped it knows
    }
)


def test_every_failure_code_is_brought_about_or_says_why_not() -> None:
    assert not SCENES.keys() & NONE.keys()
    assert SCENES.keys() | NONE.keys() == failures()


def test_every_picture_is_of_a_code_that_is_brought_about_and_small() -> None:
    there = {path.stem: path.stat().st_size for path in PICTURES.glob("*.jpg")}
    assert there.keys() <= SCENES.keys()
    assert not [code for code, size in there.items() if size > LARGEST]


@pytest.mark.long
@pytest.mark.browser
@pytest.mark.django_db
@pytest.mark.parametrize("code", EVERY)
def test_page_api_metric_and_bell_tell_the_code(
    code: str, browser: Browser, settings: Settings
) -> None:
    shown = SCENES[code]()
    page = show(browser, shown)
    try:
        expect(page.get_by_text(code, exact=True).first).to_be_visible()
        if "BERTH_PICTURES" in os.environ:
            take(page, code, PICTURES / f"{code}.jpg")
    finally:
        page.context.close()
    rung = set(Alert.objects.filter(over_at=None).values_list("code", flat=True))
    counted = _metrics(settings)
    if not shown.api:
        assert code in rung or code in QUIET
        assert code not in rung or f'berth_alerts_open{{code="{code}"' in counted
        return
    answer = shown.client.get(shown.api).json()
    assert (answer["code"], answer["runbook"]) == (code, f"/help/codes/{code}/")
    claim = Claim.objects.get()
    said = verdict(code, claim.state, timezone.now() - claim.since)
    assert rung == ({code} if said.wrong and claim.wanted else set())
    over = claim.state == State.RELEASED
    assert over or f'berth_claims{{code="{code}",state="{claim.state}"}} 1.0' in counted


@pytest.mark.long
def test_every_code_that_is_brought_about_has_its_picture() -> None:
    assert {code for code, one in runbooks().items() if one.picture} >= SCENES.keys()


def _metrics(settings: Settings) -> str:
    settings.METRICS_TOKEN = "for-the-test"
    return Client().get("/metrics", HTTP_AUTHORIZATION="Bearer for-the-test").content.decode()
