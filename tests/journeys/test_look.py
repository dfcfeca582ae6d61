"""Every page of the demo in both themes, wide and narrow: accessible, and within the screen.

Set BERTH_SHOTS to a folder to keep a picture of each; look at them before changing the stylesheet.
Errors in the console, and scripts or styles that the policy blocked, fail the `sign_in` fixture.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from devices.cluster.gateway import Ref
from tests.journeys.conftest import Demo, SignIn
from tests.journeys.test_first_device import SOON, TIDEWATER

pytestmark = [pytest.mark.cluster, pytest.mark.browser]

README_PICTURE = Path(__file__).parents[2] / "docs" / "screenshots" / "claim-running.png"
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
SCREENS = [
    pytest.param(1440, False, id="wide, light"),
    pytest.param(1440, True, id="wide, dark"),
    pytest.param(390, False, id="narrow, light"),
    pytest.param(390, True, id="narrow, dark"),
]
PAGES = {
    "home": f"{TIDEWATER}/",
    "catalogue": f"{TIDEWATER}/catalogue/",
    "catalogue-table": f"{TIDEWATER}/catalogue/?view=table",
    "nothing-found": f"{TIDEWATER}/catalogue/?q=no-such-device",
    "ask": f"{TIDEWATER}/ask/gpu/",
    "claims": f"{TIDEWATER}/claims/?state=all",
    "members": f"{TIDEWATER}/members/",
    "audit": f"{TIDEWATER}/audit/",
    "approvals": "/approvals/",
    "tokens": "/account/tokens/",
    "password": "/account/password/change/",
    "sessions": "/account/sessions/",
    "second-factor": "/account/2fa/",
    "confirm": "/account/reauthenticate/",
    "sign-out": "/account/logout/",
    "not-found": "/t/no-such-tenant/",
}


def look_at(page: Page, name: str) -> None:
    """Fails on accessibility rules, on anything wider than the screen, and on a second filled
    button; keeps a picture where BERTH_SHOTS says so.
    """
    page.wait_for_load_state("load")
    expect(page.locator("h1")).to_have_count(1)
    found = Axe().run(page, options={"runOnly": RULES})
    assert found.violations_count == 0, f"{name}: {found.generate_report()}"
    wider = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    assert wider <= 0, f"{name} is {wider} px wider than the screen"
    assert page.locator(".btn-primary:visible").count() <= 1, f"{name} has two loud buttons"
    if "BERTH_SHOTS" in os.environ:
        narrow = "-narrow" if page.evaluate("innerWidth") < 800 else ""
        dark = (
            "-dark" if page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches") else ""
        )
        file = Path(os.environ["BERTH_SHOTS"]) / f"{name}{narrow}{dark}.png"
        page.screenshot(path=file, full_page=True)


@pytest.mark.parametrize(("width", "dark"), SCREENS)
def test_every_page(sign_in: SignIn, width: int, dark: bool) -> None:
    page = sign_in("avocet", width=width, dark=dark)
    for name, path in PAGES.items():
        answer = page.goto(path)
        assert answer is not None and answer.status == (404 if name == "not-found" else 200)
        look_at(page, name)


@pytest.mark.parametrize(("width", "dark"), SCREENS)
def test_pages_of_a_viewer_and_of_somebody_without_tenant(
    sign_in: SignIn, width: int, dark: bool
) -> None:
    viewer = sign_in("heron", width=width, dark=dark)
    for name in ("home", "catalogue", "ask"):
        viewer.goto(PAGES[name])
        look_at(viewer, f"viewer-{name}")
        expect(viewer.locator('[aria-disabled="true"]').first).to_be_visible()
    operator = sign_in("olm", width=width, dark=dark)
    operator.goto("/")
    look_at(operator, "no-tenant")


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
    page.goto(PAGES["catalogue"])
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


def test_filters_stay_in_the_address_and_back_brings_them_back(sign_in: SignIn) -> None:
    page = sign_in("avocet")
    page.goto(PAGES["catalogue"])
    page.get_by_label("Search the catalogue").fill("rdma")
    expect(page.locator("#offers article")).to_have_count(1, timeout=SOON)
    assert "q=rdma" in page.url
    page.get_by_role("link", name="Table").click()
    expect(page.get_by_label("Search the catalogue")).to_have_value("rdma")
    page.go_back()
    expect(page.locator("#offers article")).to_have_count(1)
