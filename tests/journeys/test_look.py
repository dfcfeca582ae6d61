"""Pages in states that no link leads to: forbidden, not found, and a claim from ready to released.

Errors in the console, and scripts or styles that the policy blocked, fail the `sign_in` fixture.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Page, expect

from devices.cluster.gateway import Ref
from tests.journeys.conftest import Demo, SignIn
from tests.journeys.looking import look_at, look_everywhere
from tests.journeys.test_first_device import SOON, TIDEWATER

pytestmark = [pytest.mark.cluster, pytest.mark.browser]

README_PICTURE = Path(__file__).parents[2] / "docs" / "screenshots" / "claim-running.png"


def test_a_viewer_sees_why_buttons_are_not_for_them(sign_in: SignIn) -> None:
    viewer = sign_in("heron")
    for name, path in (("home", "/"), ("catalogue", "/catalogue/"), ("ask", "/ask/gpu/")):
        viewer.goto(TIDEWATER + path)
        assert look_everywhere(viewer, f"viewer-{name}") == []
        expect(viewer.locator('[aria-disabled="true"]').first).to_be_visible()


def test_nothing_found_and_no_such_page(sign_in: SignIn) -> None:
    page = sign_in("avocet")
    page.goto(f"{TIDEWATER}/catalogue/?q=no-such-device")
    assert look_everywhere(page, "nothing-found") == []
    answer = page.goto("/t/no-such-tenant/")
    assert answer is not None and answer.status == 404
    assert look_everywhere(page, "not-found") == []


def test_pages_about_what_nodes_do_not_keep(sign_in: SignIn) -> None:
    page = sign_in("olm")
    for name in ("isolations", "drift", "held", "gates", "doctor"):
        page.goto(f"/platform/{name}/")
        assert look_everywhere(page, f"platform-{name}") == []


def test_an_account_is_made_and_its_link_leads_to_a_password(sign_in: SignIn) -> None:
    admin = sign_in("asp")
    admin.goto("/platform/people/")
    admin.get_by_label("User name").fill("otter-olga")
    admin.get_by_label("Name", exact=True).last.fill("Olga Otter")
    admin.get_by_role("button", name="Make the account").click()
    link = admin.locator("#new-link").inner_text().strip()
    assert look_everywhere(admin, "admin-link") == []
    admin.context.clear_cookies()
    admin.goto(link)
    expect(admin.get_by_text("otter-olga")).to_be_visible()
    assert look_everywhere(admin, "password-by-link") == []


def ask_for_a_pair(page: Page, name: str) -> str:
    """GPUs with a fast port beside them; returns the new claim's public id."""
    page.goto(f"{TIDEWATER}/ask/training-pair/")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Namespace").select_option("tidewater-eval")
    page.get_by_role("button", name="One more").first.click()
    expect(page.locator("#summary h2")).to_contain_text("2 ×", timeout=SOON)
    page.get_by_role("button", name="Ask for").click()
    page.wait_for_url("**/claims/*/")
    return page.url.rstrip("/").rsplit("/", 1)[1]


def test_a_claim_in_each_of_its_states(
    demo: Demo, sign_in: SignIn, request: pytest.FixtureRequest
) -> None:
    wide = sign_in("avocet")
    public_id = ask_for_a_pair(wide, "resnet-ablate")
    narrow = sign_in("avocet", width=390, dark=True)
    narrow.goto(f"{TIDEWATER}/claims/{public_id}/")

    def both(name: str, heading: str) -> None:
        for page in (wide, narrow):
            expect(page.get_by_role("heading", name=heading)).to_be_visible(timeout=SOON)
            look_at(page, f"claim-{name}")

    both("ready", "Ready for your Pod")
    for tab in ("Job", "Deployment", "curl", "Python", "What Berth applied"):
        wide.get_by_role("tab", name=tab).click()
        expect(wide.get_by_role("tabpanel")).to_have_count(1)
    look_at(wide, "claim-tabs")
    wide.get_by_role("tab", name="Pod").click()
    pod = yaml.safe_load(wide.locator("#pod").inner_text())
    pod["metadata"]["annotations"] = {"playground.berth.dev/run-for": "3600s"}
    demo.gateway.create(pod)
    both("running", "Running with")
    if request.config.getoption("--write-golden"):
        wide.screenshot(path=README_PICTURE, full_page=True)
    for page in (wide, narrow):
        page.get_by_role("button", name="Release").first.click()
        expect(page.get_by_role("dialog")).to_contain_text("Release when the Pods end")
        look_at(page, "claim-dialog")
    narrow.get_by_role("button", name="Keep it").click()
    wide.get_by_role("dialog").get_by_role("button", name="Release").click()
    both("releasing", "It goes when its Pods have ended")
    demo.gateway.delete(Ref("Pod", pod["metadata"]["name"], "tidewater-eval"))
    both("released", "Released. Nothing of it is left")


def test_the_console_of_the_api_breaks_no_rule_of_the_policy(sign_in: SignIn) -> None:
    page = sign_in("avocet")
    page.goto("/api/")
    expect(page.locator(".opblock").first).to_be_visible(timeout=SOON)


def test_the_theme_that_a_reader_chose_is_there_before_the_page_is_drawn(sign_in: SignIn) -> None:
    page = sign_in("avocet")
    page.get_by_role("button", name="Switch theme").click()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload(wait_until="commit")
    page.wait_for_function("document.body !== null")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_keyboard_alone_reaches_the_content_and_the_menu(sign_in: SignIn) -> None:
    page = sign_in("avocet")
    page.goto(f"{TIDEWATER}/catalogue/")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.set_viewport_size({"width": 390, "height": 800})
    page.get_by_role("button", name="Menu").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Claims", exact=True)).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("link", name="Claims", exact=True)).to_be_hidden()


def test_news_leave_the_keyboard_where_it_was(sign_in: SignIn) -> None:
    page = sign_in("plover")
    public_id = ask_for_a_pair(page, "keyboard")
    page.goto(f"{TIDEWATER}/claims/{public_id}/")
    expect(page.get_by_role("heading", name="Ready for your Pod")).to_be_visible(timeout=SOON)
    page.get_by_role("button", name="Release", exact=True).focus()
    old = page.get_by_role("button", name="Release", exact=True).element_handle()
    parts = "document.querySelectorAll('[data-live]')"
    page.evaluate(f"for (const part of {parts}) htmx.trigger(part, 'berth:again')")
    page.wait_for_function("old => !old.isConnected", arg=old)
    expect(page.get_by_role("button", name="Release", exact=True)).to_be_focused()


def test_filters_stay_in_the_address_and_back_brings_them_back(sign_in: SignIn) -> None:
    page = sign_in("avocet")
    page.goto(f"{TIDEWATER}/catalogue/")
    page.get_by_label("Search the catalogue").fill("rdma")
    expect(page.locator("#found-h")).to_be_visible(timeout=SOON)
    assert "q=rdma" in page.url
    page.get_by_role("link", name="Table").click()
    expect(page.get_by_label("Search the catalogue")).to_have_value("rdma")
    page.go_back()
    expect(page.locator("#found-h")).to_be_visible()
