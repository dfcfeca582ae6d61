"""A freeze from its beginning to its end: an operator, and a tenant whose ask waits meanwhile."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import expect

from tests.journeys.conftest import Demo, SignIn
from tests.journeys.looking import look_at
from tests.journeys.test_first_device import SOON, TIDEWATER, ask_for_a_slice, until

pytestmark = [pytest.mark.cluster, pytest.mark.browser]

SLICES = "a100-mig-1g"
WHY = "Firmware of the A100 cards is renewed"


def objects_of(demo: Demo, public_id: str) -> int:
    labels = f"berth.dev/claim={public_id}"
    found = demo.gateway.list("ResourceClaimTemplate", namespace="tidewater-eval", labels=labels)
    return len(found.items)


def test_a_class_is_frozen_an_ask_waits_and_is_sent_when_it_is_lifted(
    demo: Demo, sign_in: SignIn
) -> None:
    member = sign_in("plover")
    member.goto(f"{TIDEWATER}/claims/")
    operator = sign_in("olm")
    operator.goto("/platform/freezes/")
    operator.get_by_label("Freeze", exact=True).select_option(label=SLICES)
    operator.get_by_label("Why").fill(WHY)
    end = datetime.now(UTC) + timedelta(hours=3)
    operator.get_by_label("Until").fill(end.strftime("%Y-%m-%dT%H:%M"))
    operator.get_by_role("button", name="Freeze", exact=True).click()
    expect(operator.get_by_text("is frozen.").first).to_be_visible()
    look_at(operator, "freeze-operator")
    try:
        banner = member.locator("#freeze-banner")
        expect(banner).to_contain_text(f"New work with {SLICES} is frozen until", timeout=SOON)
        expect(banner).to_contain_text(WHY)

        public_id = ask_for_a_slice(member, "during-a-freeze")
        expect(member.locator(".pill")).to_contain_text("Held", timeout=SOON)
        expect(member.locator("#claim-live")).to_contain_text(WHY)
        assert objects_of(demo, public_id) == 0, "nothing is sent"
        look_at(member, "freeze-held")
    finally:
        operator.goto("/platform/freezes/")
        operator.get_by_role("button", name=re.compile(f"^Lift.*{SLICES}$")).click()
    expect(member.get_by_text("WAITING_FOR_POD").first).to_be_visible(timeout=SOON)
    until(lambda: objects_of(demo, public_id) == 1)
    expect(member.locator("#freeze-banner")).not_to_contain_text(WHY, timeout=SOON)
    member.get_by_role("button", name="Release").first.click()
    member.get_by_role("dialog").get_by_role("button", name="Release").click()
    expect(member.locator(".pill")).to_contain_text("Released", timeout=SOON)
