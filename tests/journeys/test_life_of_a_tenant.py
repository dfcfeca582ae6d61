"""A tenant's life: made, joined, given more by approval, lent a device, closed with a receipt."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml
from playwright.sync_api import Page, expect

from devices.cluster.gateway import Gateway, Ref
from tests.journeys.conftest import Demo, SignIn
from tests.journeys.looking import look_at
from tests.journeys.test_first_device import SOON, until

pytestmark = [pytest.mark.cluster, pytest.mark.browser]
LAGOON, BASALT = "/t/lagoon-robotics", "/t/basalt-genomics"
PLATFORM = "/platform/tenants/lagoon-robotics"
CLASS = "a100-mig-1g"
LIMIT = f"{LAGOON}/limits/one/?measure=devices&class={CLASS}"
TRAIN, OLD = "lagoon-train", "lagoon-old"


def hard(gateway: Gateway, namespace: str, device_class: str) -> str:
    """What the cluster's own quota allows there; empty where it says nothing."""
    quota = gateway.get(Ref("ResourceQuota", "berth", namespace)) or {"spec": {}}
    key = f"{device_class}.deviceclass.resource.k8s.io/devices"
    return str(quota["spec"].get("hard", {}).get(key, ""))


def said(gateway: Gateway, namespace: str, key: str) -> str | None:
    """An annotation of Berth's on a namespace; None where it is not there."""
    metadata = (gateway.get(Ref("Namespace", namespace)) or {"metadata": {}})["metadata"]
    found = (metadata.get("annotations") or {}).get(f"berth.dev/{key}")
    return None if found is None else str(found)


def test_from_the_first_owner_to_the_receipt(demo: Demo, sign_in: SignIn, tmp_path: Path) -> None:
    admin, owner = sign_in("asp"), sign_in("tansy")
    found_there(demo.gateway)
    made(admin, demo.gateway)
    member = sign_in("sorrel")
    joined(owner, member)
    more_by_approval(owner, sign_in("pike"), demo.gateway)
    claim = lent(sign_in("basil"), owner, member, demo.gateway)
    closed(admin, owner, member, claim, demo.gateway, tmp_path)


def found_there(gateway: Gateway) -> None:
    """A namespace with a claim that somebody made by hand."""
    gateway.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": OLD}})
    exactly = {"deviceClassName": "l40s-48gb", "count": 1, "allocationMode": "ExactCount"}
    gateway.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "by-hand", "namespace": OLD},
            "spec": {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}},
        }
    )


def made(admin: Page, gateway: Gateway) -> None:
    """A tenant with a new namespace, an adopted one, and its first limit."""
    admin.goto("/platform/tenants/")
    admin.get_by_label("Name", exact=True).fill("Lagoon Robotics")
    admin.get_by_label("Short name").fill("lagoon-robotics")
    admin.get_by_label("First owner").fill("tansy")
    look_at(admin, "tenants")
    admin.get_by_role("button", name="Make the tenant").click()
    admin.wait_for_url(f"**{PLATFORM}/")
    add = admin.locator("section", has=admin.get_by_role("heading", name="Add a namespace"))
    add.get_by_label("Name").fill(TRAIN)
    add.get_by_role("button", name="Have it made").click()
    expect(admin.get_by_text("In force").first).to_be_visible(timeout=SOON)

    add.get_by_label("Name").fill(OLD)
    add.get_by_role("button", name="Look at one that is there").click()
    expect(admin.get_by_text("by-hand").first).to_be_visible()
    expect(admin.get_by_text("CLASS_NOT_ALLOWED").first).to_be_visible()
    look_at(admin, "namespace-survey")
    admin.get_by_role("button", name=f"Adopt {OLD}").click()
    admin.wait_for_url(f"**{PLATFORM}/")
    until(lambda: said(gateway, OLD, "device-classes") == "")
    assert gateway.get(Ref("ResourceClaim", "by-hand", OLD)) is not None
    look_at(admin, "platform-tenant")

    admin.goto("/platform/limits/lagoon-robotics/")
    admin.get_by_label("Device class").select_option(CLASS)
    admin.locator("[name=amount]").fill("1")
    admin.get_by_role("button", name="Set the limit").click()
    until(lambda: hard(gateway, TRAIN, CLASS) == "1")


def joined(owner: Page, member: Page) -> None:
    """An invitation, and whoever opens its link."""
    owner.goto(f"{LAGOON}/members/")
    owner.get_by_label("For", exact=True).fill("Jonas")
    owner.get_by_label("Role", exact=True).select_option("member")
    owner.get_by_role("button", name="Make an invitation").click()
    link = owner.locator("#new-invitation").inner_text().strip()
    member.goto(link)
    look = member.get_by_role("button", name="Look at the invitation")
    if look.is_visible():
        look.click()
    member.get_by_role("button", name="Join as sorrel").click()
    member.goto(f"{LAGOON}/")
    expect(member.get_by_text("You are member")).to_be_visible()


def more_by_approval(owner: Page, approver: Page, gateway: Gateway) -> None:
    """A limit that an owner asks for and an approver grants."""
    owner.goto(LIMIT)
    expect(owner.locator(".strip-head").first).to_contain_text("1 free of 1")
    owner.get_by_label("New limit").fill("3")
    owner.get_by_label("What for").fill("a second rack arrives")
    owner.get_by_role("button", name="Ask for a limit").click()
    expect(owner.get_by_text("1 → 3")).to_be_visible()
    approver.goto("/approvals/")
    approver.get_by_role("link", name=CLASS).click()
    expect(approver.get_by_text("a second rack arrives")).to_be_visible()
    approver.get_by_role("button", name="Approve A-").click()
    until(lambda: hard(gateway, TRAIN, CLASS) == "3")
    owner.goto(LIMIT)
    expect(owner.locator(".strip-head").first).to_contain_text("3 free of 3")
    look_at(owner, "limit-raised")


def lent(giver: Page, owner: Page, member: Page, gateway: Gateway) -> str:
    """A grant offered, accepted, used and revoked; returns the address of what stays by it."""
    giver.goto(f"{BASALT}/grants/offer/")
    giver.get_by_label("Their namespace").fill(TRAIN)
    giver.get_by_label("Template and class").select_option(label="FPGA card: VCK5000 FPGA")
    last = (datetime.now(UTC) + timedelta(days=20)).date().isoformat()
    giver.get_by_label("Last day").fill(last)
    giver.get_by_role("button", name="Offer the grant").click()
    giver.wait_for_url(lambda url: not url.endswith("/offer/"))
    public_id = giver.url.rstrip("/").rsplit("/", 1)[1]

    owner.goto(f"{LAGOON}/grants/")
    expect(owner.get_by_text("Offered to you")).to_be_visible()
    owner.goto(f"{LAGOON}/grants/{public_id}/")
    owner.get_by_role("button", name="Accept the grant").click()
    expect(owner.locator(".pill")).to_contain_text("Accepted")
    until(lambda: hard(gateway, TRAIN, "fpga-vck5000") == "1")

    member.goto(f"{LAGOON}/ask/fpga-card/")
    member.get_by_label("Name", exact=True).fill("by-grant")
    member.get_by_label("Namespace").select_option(TRAIN)
    member.get_by_label("Counts against").select_option(public_id)
    expect(member.locator("#summary")).to_contain_text("by the grant of Basalt", timeout=SOON)
    member.get_by_role("button", name="Ask for").click()
    member.wait_for_url("**/claims/*/")
    expect(member.get_by_text("WAITING_FOR_POD").first).to_be_visible(timeout=SOON)
    claim = member.url

    giver.goto(f"{BASALT}/grants/{public_id}/")
    expect(giver.get_by_text("1 of 1 device in use")).to_be_visible()
    assert claim not in giver.content(), "the giver learns how many, not what"
    giver.get_by_role("button", name="End the grant").click()
    dialog = giver.get_by_role("dialog")
    expect(dialog).to_contain_text("Asks that use it")
    look_at(giver, "grant-ending")
    dialog.get_by_role("button", name="End the grant").click()
    expect(giver.locator(".pill")).to_contain_text("Revoked")
    member.goto(claim)
    expect(member.get_by_text("WAITING_FOR_POD").first).to_be_visible(timeout=SOON)
    assert hard(gateway, TRAIN, "fpga-vck5000") == "1", "what runs by it stays within the quota"
    return claim


def closed(
    admin: Page, owner: Page, member: Page, claim: str, gateway: Gateway, folder: Path
) -> None:
    """A Pod still runs; the page names it; when it ends the rest goes by itself."""
    pod = yaml.safe_load(member.locator("#pod").inner_text())
    pod["metadata"]["annotations"] = {
        "playground.berth.dev/run-for": "3600s",
        "berth.dev/expected-end": "2030-01-01T18:00:00Z",
    }
    gateway.create(pod)
    expect(member.get_by_role("heading", name="Running with 1 device")).to_be_visible(timeout=SOON)

    admin.goto(f"{PLATFORM}/closing/")
    look_at(admin, "closing-begin")
    admin.get_by_label("Why").fill("The project is over")
    admin.get_by_label("Short name of the tenant").fill("lagoon-robotics")
    admin.get_by_role("button", name="Close Lagoon Robotics").click()
    name = pod["metadata"]["name"]
    expect(admin.get_by_text(f"{TRAIN}/{name}")).to_be_visible(timeout=SOON)
    expect(admin.get_by_text("1 Jan 2030 18:00 UTC").last).to_be_visible()
    assert said(gateway, TRAIN, "full-claims") == "*"
    look_at(admin, "closing-waits")
    member.goto(f"{LAGOON}/")
    expect(member.get_by_text("is being closed").first).to_be_visible()
    member.goto(f"{LAGOON}/closing/")
    expect(member.get_by_text("POD_RUNNING")).to_be_visible()
    member.goto("/")  # pages of a closed tenant lose their news, which the console says
    owner.goto(f"{LAGOON}/closing/")

    gateway.delete(Ref("Pod", name, TRAIN))
    expect(admin.get_by_role("heading", name="Lagoon Robotics is closed")).to_be_visible(
        timeout=SOON
    )
    look_at(admin, "closing-done")
    admin.get_by_role("link", name="Receipt").click()
    expect(admin.locator(".pill")).to_contain_text("Proved")
    expect(admin.get_by_text("by-hand")).to_be_visible()
    look_at(admin, "receipt")
    admin.emulate_media(media="print")
    admin.pdf(path=folder / "receipt.pdf")
    assert (folder / "receipt.pdf").stat().st_size > 10_000
    for namespace in (TRAIN, OLD):
        assert said(gateway, namespace, "device-classes") is None
        assert gateway.get(Ref("ResourceQuota", "berth", namespace)) is None
    assert gateway.get(Ref("ResourceClaim", "by-hand", OLD)) is not None
    assert member.request.get(f"{LAGOON}/").status == 404
    assert member.request.get(f"{LAGOON}/receipt/").status == 404
    # Who owned it to the end watched it, and keeps its receipt.
    owner.get_by_role("link", name="Receipt").click(timeout=SOON)
    expect(owner.locator(".pill")).to_contain_text("Proved")
    look_at(owner, "own-receipt")
