"""A template in the browser: written, tried, approved by somebody else, asked for, retired."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.journeys.conftest import Demo, SignIn
from tests.journeys.looking import look_at
from tests.journeys.test_first_device import SOON, TIDEWATER

pytestmark = [pytest.mark.cluster, pytest.mark.browser]
TEMPLATES = "/platform/templates/"
TEXT = """\
# For reviews of the journey.
requests:
  - name: card
    words: A100 slice
    device_class: {device_class}
parameters:
  - kind: count
    name: cards
    label: Cards per Pod
    request: card
    maximum: 2
"""


def written(page: Page, slug: str, name: str, device_class: str = "a100-mig-1g") -> None:
    """Begins a template and types its text."""
    page.goto(f"{TEMPLATES}new/")
    page.get_by_label("Short name").fill(slug)
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("In a sentence").fill("Slices for inference.")
    page.get_by_label("Icon").select_option("gpu")
    page.get_by_label("Template", exact=True).fill(TEXT.format(device_class=device_class))


def approve(page: Page, title: str) -> None:
    """Somebody else says yes."""
    page.goto("/approvals/")
    page.get_by_role("link", name=title).click()
    page.get_by_role("button", name="Approve A-").click()
    expect(page.locator(".pill")).to_contain_text("Approved", timeout=SOON)


def offered(page: Page, slug: str) -> None:
    """The page of the template says by itself that tenants may ask for it."""
    page.goto(f"{TEMPLATES}{slug}/")
    expect(page.locator(".pill").first).to_contain_text("Offered", timeout=SOON)


def test_from_a_draft_to_a_holder_of_what_is_retired(demo: Demo, sign_in: SignIn) -> None:
    author, approver, tenant = sign_in("olm"), sign_in("pike"), sign_in("avocet")
    written(author, "inference", "Inference card")
    pane = author.locator("#pane")
    expect(pane.get_by_text("Cards per Pod")).to_be_visible(timeout=SOON)
    expect(pane.get_by_text("It may be put to review.")).to_be_visible(timeout=SOON)

    # A mistake is named with its line as soon as it is typed, and mended.
    author.get_by_label("Template", exact=True).fill(
        TEXT.format(device_class="a100-mig-1g").replace("maximum: 2", "maximum: many")
    )
    expect(author.locator("#mistakes")).to_contain_text("Line 11", timeout=SOON)
    author.get_by_label("Template", exact=True).fill(TEXT.format(device_class="a100-mig-1g"))
    expect(author.locator("#mistakes")).to_contain_text("It reads as a template", timeout=SOON)
    author.get_by_role("button", name="Save the draft").click()
    author.wait_for_url(f"**{TEMPLATES}inference/1/")

    # The API server is asked by a worker; its answer comes by the event stream.
    author.get_by_label("tenant", exact=True).select_option(label="Tidewater Vision")
    author.get_by_role("button", name="Ask the API server").click()
    expect(author.locator("#server-answer")).to_contain_text("It takes it", timeout=SOON)
    look_at(author, "template-editor")
    author.get_by_label("For the approver").fill("for the inference team")
    author.get_by_role("button", name="Save and put to review").click()
    author.wait_for_url("**/approvals/A-*/")
    expect(author.get_by_text("You asked for it")).to_be_visible()

    approve(approver, "Inference card, version 1")
    look_at(approver, "template-approved")
    offered(author, "inference")

    tenant.goto(f"{TIDEWATER}/ask/inference/")
    tenant.get_by_label("Name", exact=True).fill("held-longer")
    tenant.get_by_role("button", name="Ask for these devices").click()
    tenant.wait_for_url("**/claims/*/")
    claim = tenant.url
    expect(tenant.get_by_text("WAITING_FOR_POD").first).to_be_visible(timeout=SOON)

    # What takes its place goes the same way; then the first one ends while a form is half filled.
    written(author, "inference-next", "Next inference card")
    author.get_by_role("button", name="Save and put to review").click()
    author.wait_for_url("**/approvals/A-*/")
    approve(approver, "Next inference card, version 1")
    offered(author, "inference-next")
    tenant.goto(f"{TIDEWATER}/ask/inference/")
    tenant.get_by_label("Name", exact=True).fill("half-filled")
    author.goto(f"{TEMPLATES}inference/retire/")
    author.get_by_label("Ask for instead").select_option(label="Next inference card")
    author.get_by_label("Why").fill("The old cards leave in March.")
    look_at(author, "template-retire")
    author.get_by_role("button", name="Retire Inference card").click()
    expect(author.get_by_text("The old cards leave in March.").first).to_be_visible(timeout=SOON)
    look_at(author, "template-retired")
    tenant.get_by_role("button", name="Ask for these devices").click()
    expect(tenant.get_by_text("The old cards leave in March.").first).to_be_visible(timeout=SOON)

    tenant.goto(claim)
    expect(tenant.get_by_text("Its template is retired.")).to_be_visible(timeout=SOON)
    look_at(tenant, "claim-of-a-retired-template")
    tenant.get_by_role("link", name="Ask for Next inference card").click()
    expect(tenant.get_by_role("heading", level=1)).to_contain_text("Next inference card")
    name = claim.rstrip("/").rsplit("/", 1)[1]
    made = demo.gateway.list("ResourceClaimTemplate").items
    labels = [one["metadata"].get("labels", {}) for one in made]
    assert [one.get("berth.dev/claim") for one in labels].count(name) == 1, "what is held stays"
    names = {one["metadata"]["name"] for one in made}
    assert "dry-run-inference" not in names, "a dry run keeps nothing"
