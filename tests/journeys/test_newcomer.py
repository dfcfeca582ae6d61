"""Somebody who knows no Kubernetes, in a tenant that has nothing yet: how few steps to a running
Pod, with a mouse and with keys alone.
"""

from __future__ import annotations

import pytest
import yaml
from playwright.sync_api import Locator, Page, expect

from devices.cluster.gateway import Ref
from tests.journeys.conftest import Demo, SignIn
from tests.journeys.looking import look_at
from tests.journeys.test_first_device import SOON, until
from tests.journeys.test_life_of_a_tenant import hard

pytestmark = [pytest.mark.cluster, pytest.mark.browser]

SLUG, NAME, NAMESPACE, CLASS = "kelp-biology", "Kelp Biology", "kelp-lab", "a100-mig-1g"
HOME = f"/t/{SLUG}/"
MOST_CLICKS = 6
#: Counts in the tab's own storage, which pages that follow keep; made by people, not by scripts.
COUNT = """addEventListener("click", event => {
    if (event.isTrusted && event.detail > 0)
        sessionStorage.clicks = Number(sessionStorage.clicks || 0) + 1
}, true)"""


def counted(page: Page) -> int:
    return int(page.evaluate("Number(sessionStorage.clicks || 0)"))


def made(admin: Page, demo: Demo) -> None:
    """The platform's part: a tenant with a namespace and room for two small devices."""
    admin.goto("/platform/tenants/")
    admin.get_by_label("Name", exact=True).fill(NAME)
    admin.get_by_label("Short name").fill(SLUG)
    admin.get_by_label("First owner").fill("tansy")
    admin.get_by_role("button", name="Make the tenant").click()
    admin.wait_for_url(f"**/platform/tenants/{SLUG}/")
    add = admin.locator("section", has=admin.get_by_role("heading", name="Add a namespace"))
    add.get_by_label("Name").fill(NAMESPACE)
    add.get_by_role("button", name="Have it made").click()
    expect(admin.get_by_text("In force").first).to_be_visible(timeout=SOON)
    admin.goto(f"/platform/limits/{SLUG}/")
    admin.get_by_label("Device class").select_option(CLASS)
    admin.locator("[name=amount]").fill("2")
    admin.get_by_role("button", name="Set the limit").click()
    until(lambda: hard(demo.gateway, NAMESPACE, CLASS) == "2")


def reach(page: Page, wanted: Locator, most: int = 80) -> None:
    """Goes on with Tab until it is there, as somebody without a mouse does."""
    for _ in range(most):
        if wanted.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    pytest.fail(f"Tab does not lead to {wanted} within {most} steps")


def pasted(page: Page, demo: Demo) -> str:
    """The one paste: what the page put on the clipboard, as it is, into the cluster."""
    pod = yaml.safe_load(page.evaluate("navigator.clipboard.readText()"))
    demo.gateway.create(pod)
    return str(pod["metadata"]["name"])


def test_from_an_empty_tenant_to_a_running_pod(demo: Demo, sign_in: SignIn) -> None:
    made(sign_in("asp"), demo)
    page = sign_in("tansy")
    page.add_init_script(COUNT)
    page.goto("/")

    page.get_by_role("link", name=NAME).first.click()
    expect(page.get_by_role("heading", name="No devices yet")).to_be_visible()
    look_at(page, "newcomer-empty")
    page.get_by_role("link", name="Half a GPU").first.click()
    # Half a card is what others begin with; this tenant may have small ones only.
    expect(page.get_by_label("A seventh, 10 GB")).to_be_checked()
    expect(page.get_by_text("Usually Half, 40 GB; your limits stand against it")).to_be_visible()
    page.get_by_label("Name", exact=True).fill("my-first")
    expect(page.locator("#summary").get_by_text("Fits now")).to_be_visible(timeout=SOON)
    look_at(page, "newcomer-form")
    page.get_by_role("button", name="Ask for these devices").click()
    page.wait_for_url("**/claims/*/")
    expect(page.get_by_text("WAITING_FOR_POD").first).to_be_visible(timeout=SOON)
    look_at(page, "newcomer-ready-to-paste")
    page.locator("#panel-pod").get_by_role("button", name="Copy").click()
    first = pasted(page, demo)
    expect(page.get_by_role("heading", name="Running with 1 device")).to_be_visible(timeout=SOON)
    assert counted(page) <= MOST_CLICKS, f"{counted(page)} clicks"
    look_at(page, "newcomer-running")

    # The same with keys alone, from the tenant's home; nothing is clicked, nothing is focused by us
    clicks = counted(page)
    page.goto(HOME)
    reach(page, page.get_by_role("main").get_by_role("link", name="Half a GPU").first)
    page.keyboard.press("Enter")
    page.wait_for_url("**/ask/half-gpu/")
    reach(page, page.get_by_label("A seventh, 10 GB"))
    page.keyboard.press("ArrowUp")
    expect(page.get_by_label("Half, 40 GB")).to_be_checked()
    page.keyboard.press("ArrowDown")
    expect(page.get_by_label("A seventh, 10 GB")).to_be_checked()
    reach(page, page.get_by_label("Name", exact=True))
    page.keyboard.type("by-keys")
    page.keyboard.press("Enter")
    page.wait_for_url("**/claims/*/")
    expect(page.get_by_text("WAITING_FOR_POD").first).to_be_visible(timeout=SOON)
    reach(page, page.locator("#panel-pod").get_by_role("button", name="Copy"))
    page.keyboard.press("Enter")
    second = pasted(page, demo)
    expect(page.get_by_role("heading", name="Running with 1 device")).to_be_visible(timeout=SOON)
    reach(page, page.get_by_role("button", name="Release 1 device").first)
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog")
    reach(page, dialog.get_by_role("button", name="Release"))
    page.keyboard.press("Enter")
    expect(page.get_by_text("IN_USE_UNTIL_PODS_END").first).to_be_visible(timeout=SOON)
    assert counted(page) == clicks
    for name in (first, second):
        demo.gateway.delete(Ref("Pod", name, NAMESPACE))
