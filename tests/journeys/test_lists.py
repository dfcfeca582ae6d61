"""Lists and the palette by keys alone, and accessible in both themes and widths."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.journeys.conftest import SignIn
from tests.journeys.looking import look_at, look_everywhere
from tests.journeys.test_first_device import SOON, TIDEWATER

pytestmark = [pytest.mark.cluster, pytest.mark.browser]
NEWS_IN_QUICK_SUCCESSION = """() => [0, 30, 60].forEach((wait) => setTimeout(() =>
    document.querySelector("#claims-list").dispatchEvent(new Event("berth:again")), wait))"""


def ask(page: Page, name: str) -> None:
    """An ask that waits for a Pod that never comes, so that it holds nothing."""
    page.goto(f"{TIDEWATER}/ask/gpu/")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Namespace").select_option("tidewater-eval")
    page.get_by_role("button", name="Ask for").click()
    page.wait_for_url("**/claims/*/")


def rows(page: Page) -> Locator:
    return page.locator("#claims-list tbody tr")


def test_a_list_is_searched_walked_and_released_from_by_keys_alone(sign_in: SignIn) -> None:
    page = sign_in("avocet")
    for name in ("keys-one", "keys-two"):
        ask(page, name)
    page.goto(f"{TIDEWATER}/claims/")
    page.keyboard.press("/")
    expect(page.get_by_label("Search by name, id or note")).to_be_focused()
    page.keyboard.type("keys-")
    expect(rows(page)).to_have_count(2, timeout=SOON)
    expect(page).to_have_url(re.compile(r"q=keys-&state=open"))
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("link", name=re.compile("keys-two"))).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("link", name=re.compile("keys-one"))).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("keys-one")
    page.go_back()
    expect(rows(page)).to_have_count(2)
    for name in ("keys-one", "keys-two"):
        box = page.get_by_label(f"Choose {name}")
        box.focus()
        page.keyboard.press("Space")
        expect(box).to_be_checked()
    with page.expect_response(lambda answer: "/claims/" in answer.url):
        page.evaluate(NEWS_IN_QUICK_SUCCESSION)
    for name in ("keys-one", "keys-two"):
        expect(page.get_by_label(f"Choose {name}")).to_be_checked()
    release = page.get_by_role("button", name="Release chosen")
    release.focus()
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Release 2 claims?")
    page.get_by_role("button", name="Release 2 claims").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("2 claims released")).to_be_visible()


def test_the_palette_opens_anywhere_finds_and_leads_there_by_keys_alone(sign_in: SignIn) -> None:
    page = sign_in("avocet")
    page.goto(f"{TIDEWATER}/catalogue/")
    page.keyboard.press("Control+k")
    field = page.get_by_role("combobox", name="Find a page, claim")
    expect(field).to_be_focused()
    expect(page.get_by_role("option").first).to_be_visible(timeout=SOON)
    page.keyboard.press("ArrowDown")
    expect(page.locator("[role=option][aria-selected=true]")).to_have_count(1)
    page.keyboard.type("limits")
    option = page.get_by_role("option", name=re.compile("^Limits"))
    expect(option).to_have_attribute("aria-selected", "true", timeout=SOON)
    chosen = option.get_attribute("id")
    expect(field).to_have_attribute("aria-activedescendant", str(chosen))
    page.keyboard.press("Enter")
    page.wait_for_url("**/limits/")
    page.keyboard.press("Control+k")
    page.keyboard.type("in:ship")
    expect(page.get_by_text("There is no")).to_be_visible(timeout=SOON)
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()


def test_lists_and_the_palette_look_right(sign_in: SignIn) -> None:
    page = sign_in("avocet")
    page.goto(f"{TIDEWATER}/claims/?state=all&attention=no&age=under-30d&sort=name")
    assert look_everywhere(page, "claims-filtered") == []
    page.goto(f"{TIDEWATER}/claims/?age=soon")
    assert look_everywhere(page, "claims-wrong") == []
    page.goto("/find/?q=in:page")
    assert look_everywhere(page, "find") == []
    page.goto(f"{TIDEWATER}/")
    page.get_by_role("link", name=re.compile("Find a claim")).click()
    expect(page.get_by_role("option").first).to_be_visible(timeout=SOON)
    look_at(page, "palette")
