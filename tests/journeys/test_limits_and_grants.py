"""A limit raised by approval, and a grant from offer to end: in the browser and the cluster."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from playwright.sync_api import Page, expect

from devices.cluster.gateway import Gateway, Ref
from tests.journeys.conftest import Demo, SignIn
from tests.journeys.test_first_device import SOON, TIDEWATER, until
from tests.journeys.test_look import look_at

pytestmark = [pytest.mark.cluster, pytest.mark.browser]
BASALT = "/t/basalt-genomics"
LIMIT = f"{TIDEWATER}/limits/one/?measure=devices&class=a100-80gb"


def hard(gateway: Gateway, namespace: str, device_class: str) -> str:
    """What the cluster's own quota allows there; empty where it says nothing."""
    quota = gateway.get(Ref("ResourceQuota", "berth", namespace)) or {"spec": {}}
    key = f"{device_class}.deviceclass.resource.k8s.io/devices"
    return str(quota["spec"].get("hard", {}).get(key, ""))


def test_a_limit_is_raised_by_an_approval(demo: Demo, sign_in: SignIn) -> None:
    until(lambda: hard(demo.gateway, "tidewater-train", "a100-80gb") == "8")
    owner = sign_in("avocet")
    owner.goto(LIMIT)
    expect(owner.locator(".strip-head").first).to_contain_text("8 free of 8")
    owner.get_by_label("New limit").fill("12")
    owner.get_by_label("What for").fill("a second rack arrives")
    owner.get_by_role("button", name="Ask for a limit").click()
    expect(owner.get_by_text("8 → 12")).to_be_visible()

    approver = sign_in("pike")
    approver.goto("/approvals/")
    approver.get_by_role("link", name="a100-80gb").click()
    expect(approver.get_by_text("a second rack arrives")).to_be_visible()
    approver.get_by_role("button", name="Approve A-").click()
    until(lambda: hard(demo.gateway, "tidewater-train", "a100-80gb") == "12")
    owner.goto(LIMIT)
    expect(owner.locator(".strip-head").first).to_contain_text("12 free of 12")
    look_at(owner, "limit-raised")


def test_a_grant_is_offered_accepted_used_and_ended(demo: Demo, sign_in: SignIn) -> None:
    giver, taker = sign_in("basil"), sign_in("avocet")
    giver.goto(f"{BASALT}/grants/offer/")
    giver.get_by_label("Their namespace").fill("tidewater-eval")
    giver.get_by_label("Template and class").select_option(label="FPGA card: VCK5000 FPGA")
    last = (datetime.now(UTC) + timedelta(days=20)).date().isoformat()
    giver.get_by_label("Last day").fill(last)
    giver.get_by_role("button", name="Offer the grant").click()
    giver.wait_for_url(lambda url: not url.endswith("/offer/"))
    public_id = giver.url.rstrip("/").rsplit("/", 1)[1]

    before = hard(demo.gateway, "tidewater-eval", "fpga-vck5000")
    taker.goto(f"{TIDEWATER}/grants/")
    expect(taker.get_by_text("Offered to you")).to_be_visible()
    taker.goto(f"{TIDEWATER}/grants/{public_id}/")
    taker.get_by_role("button", name="Accept the grant").click()
    expect(taker.locator(".pill")).to_contain_text("Accepted")
    until(lambda: hard(demo.gateway, "tidewater-eval", "fpga-vck5000") == str(int(before) + 1))

    claim = ask_with(taker, public_id)
    giver.goto(f"{BASALT}/grants/{public_id}/")
    expect(giver.get_by_text("1 of 1 device in use")).to_be_visible()
    assert claim not in giver.content(), "the giver learns how many, not what"
    giver.get_by_role("button", name="End the grant").click()
    dialog = giver.get_by_role("dialog")
    expect(dialog).to_contain_text("Asks that use it")
    look_at(giver, "grant-ending")
    dialog.get_by_role("button", name="End the grant").click()
    expect(giver.locator(".pill")).to_contain_text("Revoked")

    taker.goto(claim)
    expect(taker.get_by_text("WAITING_FOR_POD").first).to_be_visible(timeout=SOON)
    stays = hard(demo.gateway, "tidewater-eval", "fpga-vck5000")
    assert stays == str(int(before) + 1), "what runs by it stays within the quota"
    taker.get_by_role("button", name="Release").first.click()
    taker.get_by_role("dialog").get_by_role("button", name="Release").click()
    expect(taker.locator(".pill")).to_contain_text("Released", timeout=SOON)


def ask_with(page: Page, grant: str) -> str:
    """Asks for a card by the grant; returns the path of the new claim's page."""
    page.goto(f"{TIDEWATER}/ask/fpga-card/")
    page.get_by_label("Name", exact=True).fill("by-grant")
    page.get_by_label("Namespace").select_option("tidewater-eval")
    page.get_by_label("Counts against").select_option(grant)
    expect(page.locator("#summary")).to_contain_text("by the grant of Basalt", timeout=SOON)
    page.get_by_role("button", name="Ask for").click()
    page.wait_for_url("**/claims/*/")
    expect(page.get_by_text("WAITING_FOR_POD").first).to_be_visible(timeout=SOON)
    return page.url
