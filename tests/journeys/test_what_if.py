"""What-if in the browser: does not fit, takes the offered alternative, runs; and a claim that waits
says why, whose job it is, and what would help.
"""

from __future__ import annotations

import re

import pytest
import yaml
from playwright.sync_api import Page, expect

from devices.cluster.gateway import Gateway, Ref
from tests.journeys.conftest import Demo, SignIn
from tests.journeys.looking import look_at
from tests.journeys.test_first_device import SOON, TIDEWATER, until

pytestmark = [pytest.mark.cluster, pytest.mark.browser]

NAMESPACE = "tidewater-eval"
SCREENS = [(1440, False), (1440, True), (390, False), (390, True)]


def settled(gateway: Gateway) -> None:
    """The demo's own work is placed: no H100 machine is wholly free any more."""

    def held() -> bool:
        nodes = set()
        for claim in gateway.list("ResourceClaim").items:
            allocation = claim.get("status", {}).get("allocation") or {}
            for result in allocation.get("devices", {}).get("results", []):
                if result["pool"].startswith("h100-") and result["device"].startswith("gpu-"):
                    nodes.add(result["pool"])
        return len(nodes) == 4

    until(held, seconds=90)


def fill(page: Page, name: str, gpus: int) -> None:
    """The form as a person fills it: a whole machine, or less."""
    page.goto(f"{TIDEWATER}/ask/gpu/")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Namespace").select_option(NAMESPACE)
    page.get_by_text("80 GB, NVLink", exact=True).click()
    page.get_by_label("GPUs per Pod").fill(str(gpus))
    page.get_by_label("GPUs per Pod").blur()


def test_does_not_fit_takes_the_alternative_and_runs(demo: Demo, sign_in: SignIn) -> None:
    settled(demo.gateway)
    page = sign_in("plover")
    fill(page, "what-if", 8)
    summary = page.locator("#summary")
    expect(summary.get_by_text("NOT_ENOUGH_ON_ONE_NODE")).to_be_visible(timeout=SOON)
    expect(summary.get_by_text("Nobody has to act")).to_be_visible()
    expect(summary.locator(".funnel li")).not_to_have_count(0)
    look_at(page, "what-if-no")

    use = summary.get_by_role("link", name=re.compile("^Use this.*instead of 8 GPUs"))
    use.first.click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("what-if")
    expect(page.get_by_label("Namespace")).to_have_value(NAMESPACE)
    expect(summary.get_by_role("heading", name=re.compile("^Fits now"))).to_be_visible(timeout=SOON)
    look_at(page, "what-if-fits")
    page.get_by_role("button", name="Ask for").click()
    page.wait_for_url("**/claims/*/")
    expect(page.get_by_text("WAITING_FOR_POD").first).to_be_visible(timeout=SOON)
    pod = yaml.safe_load(page.locator("#pod").inner_text())
    pod["metadata"]["annotations"] = {"playground.berth.dev/run-for": "3600s"}
    demo.gateway.create(pod)
    expect(page.get_by_role("heading", name=re.compile("^Running with"))).to_be_visible(
        timeout=SOON
    )
    expect(page.get_by_role("heading", name="How long it took")).to_be_visible(timeout=SOON)
    expect(page.locator(".device").first).to_contain_text("with nobody")
    look_at(page, "claim-times")
    page.get_by_role("link", name="How allocation works, with").click()
    expect(page.get_by_role("heading", name="How allocation works")).to_be_visible()
    expect(page.locator("#main")).to_contain_text("generation")
    look_at(page, "how-allocation-works")
    demo.gateway.delete(Ref("Pod", pod["metadata"]["name"], NAMESPACE), grace_seconds=0)


def test_a_claim_that_waits_says_why_and_what_would_help(demo: Demo, sign_in: SignIn) -> None:
    settled(demo.gateway)
    page = sign_in("avocet")
    fill(page, "whole-machine", 8)
    expect(page.locator("#summary").get_by_text("NOT_ENOUGH_ON_ONE_NODE")).to_be_visible(
        timeout=SOON
    )
    page.get_by_role("button", name="Ask for").click()
    page.wait_for_url("**/claims/*/")
    address = page.url
    expect(page.get_by_text("WAITING_FOR_POD").first).to_be_visible(timeout=SOON)
    pod = yaml.safe_load(page.locator("#pod").inner_text())
    demo.gateway.create(pod)
    expect(page.get_by_role("heading", name="What would unblock it")).to_be_visible(timeout=SOON)
    live = page.locator("#claim-live")
    expect(live).to_contain_text("Nobody has to act")
    expect(live).to_contain_text("8 are asked for")
    expect(live).not_to_contain_text("basalt")
    for width, dark in SCREENS:
        other = sign_in("avocet", width=width, dark=dark)
        other.goto(address)
        expect(other.get_by_role("heading", name="What would unblock it")).to_be_visible()
        look_at(other, "claim-why")
        other.goto(f"{TIDEWATER}/how-allocation-works/")
        look_at(other, "how-allocation-works")
        fill(other, "looking", 8)
        expect(other.locator("#summary").get_by_text("NOT_ENOUGH")).to_be_visible(timeout=SOON)
        look_at(other, "what-if-no")
    page.get_by_role("link", name=re.compile("^Ask for this")).first.click()
    expect(page.get_by_label("Name", exact=True)).to_have_value("whole-machine")
    demo.gateway.delete(Ref("Pod", pod["metadata"]["name"], NAMESPACE), grace_seconds=0)


def test_without_script_the_what_if_is_one_button_away(demo: Demo, sign_in: SignIn) -> None:
    settled(demo.gateway)
    page = sign_in("plover")
    plain = page.context.browser
    assert plain is not None
    context = plain.new_context(
        base_url=demo.address,
        java_script_enabled=False,
        storage_state=page.context.storage_state(),
    )
    try:
        quiet = context.new_page()
        quiet.goto(f"{TIDEWATER}/ask/gpu/")
        # The form begins with what limits leave, and stories before this one have asked, too.
        quiet.get_by_label("80 GB, NVLink").check()
        quiet.get_by_label("GPUs per Pod").fill("8")
        quiet.get_by_role("button", name="Check first").click()
        expect(quiet.locator("#summary")).to_contain_text("NOT_ENOUGH_ON_ONE_NODE")
        quiet.get_by_role("link", name=re.compile("^Use this")).first.click()
        # Stories before this one may have used up what the tenant may have.
        expect(quiet.locator("#summary")).to_contain_text(re.compile("Fits now|Room is there"))
    finally:
        context.close()


def test_questions_follow_the_answers_and_leave_the_keyboard_where_it_was(
    sign_in: SignIn,
) -> None:
    page = sign_in("plover")
    page.goto(f"{TIDEWATER}/ask/half-gpu/")
    expect(page.get_by_label("On different cards")).to_have_count(0)
    page.get_by_role("button", name="One more").first.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_label("On different cards")).to_be_visible(timeout=SOON)
    expect(page.get_by_role("button", name="One more").first).to_be_focused()
    page.get_by_label("On different cards").check()
    expect(page.locator("#summary h2")).to_contain_text("on different cards", timeout=SOON)
    page.get_by_role("tab", name="YAML").click()
    expect(page.locator("#yaml")).to_contain_text("distinctAttribute")
    page.get_by_label("Name", exact=True).fill("two-halves")
    page.get_by_role("button", name="Ask for").click()
    page.wait_for_url("**/claims/*/")
