"""The first device: from signing in to a running Pod, and back; once by browser, once by API."""

from __future__ import annotations

import json
import time
import urllib.error
import urllib.request
from typing import Any

import pytest
import yaml
from playwright.sync_api import Page, expect

from devices.cluster.gateway import Gateway, Ref
from tests.journeys.conftest import Demo, SignIn

pytestmark = [pytest.mark.cluster, pytest.mark.browser]

SOON = 30_000
TIDEWATER = "/t/tidewater-vision"


def ask_for_a_slice(page: Page, name: str) -> str:
    """Fills in the form as a person would; returns the new claim's public id."""
    page.get_by_role("link", name="Catalogue", exact=True).click()
    expect(page.get_by_role("heading", name="A100 slice, 10 GB")).to_be_visible()
    page.goto(f"{TIDEWATER}/ask/gpu/")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Namespace").select_option("tidewater-eval")
    page.get_by_text("10 GB", exact=True).click()
    expect(page.get_by_text("a100-mig-1g").first).to_be_attached()
    page.get_by_role("button", name="Ask for").click()
    page.wait_for_url("**/claims/*/")
    return page.url.rstrip("/").rsplit("/", 1)[1]


def test_from_signing_in_to_a_running_pod_and_back(demo: Demo, sign_in: SignIn) -> None:
    page = sign_in("plover")
    public_id = ask_for_a_slice(page, "first-device")
    page.evaluate("window.stayed = true")
    expect(page.get_by_text("WAITING_FOR_POD").first).to_be_visible(timeout=SOON)

    manifest = page.locator("#pod").inner_text()
    pod = yaml.safe_load(manifest)
    pod["metadata"]["annotations"] = {"playground.berth.dev/run-for": "3600s"}
    demo.gateway.create(pod)
    expect(page.get_by_role("heading", name="Running with 1 device")).to_be_visible(timeout=SOON)

    claim = claim_of(demo.gateway, "tidewater-eval", public_id)
    (result,) = claim["status"]["allocation"]["devices"]["results"]
    expect(page.locator("#claim-live")).to_contain_text(result["device"])
    expect(page.locator("#claim-live")).to_contain_text(result["pool"])
    assert page.evaluate("window.stayed") is True, "the page was never loaded anew"

    page.get_by_role("button", name="Release").first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text(pod["metadata"]["name"])
    dialog.get_by_role("button", name="Release").click()
    expect(page.get_by_text("IN_USE_UNTIL_PODS_END").first).to_be_visible(timeout=SOON)
    demo.gateway.delete(Ref("Pod", pod["metadata"]["name"], "tidewater-eval"))
    expect(page.locator(".pill")).to_contain_text("Released", timeout=SOON)
    label = f"berth.dev/claim={public_id}"
    for kind in ("ResourceClaim", "ResourceClaimTemplate"):
        assert demo.gateway.list(kind, namespace="tidewater-eval", labels=label).items == ()


def test_a_viewer_is_told_who_may_and_a_stranger_learns_nothing(
    demo: Demo, sign_in: SignIn
) -> None:
    member = sign_in("plover")
    public_id = ask_for_a_slice(member, "not-for-all")
    viewer = sign_in("heron")
    viewer.goto(f"{TIDEWATER}/claims/{public_id}/")
    release = viewer.get_by_role("button", name="Release").first
    expect(release).to_have_attribute("aria-disabled", "true")
    expect(viewer.get_by_text("one must be member or owner").first).to_be_visible()
    stranger = sign_in("basil")
    for path in (TIDEWATER, f"{TIDEWATER}/claims/{public_id}", f"{TIDEWATER}/events"):
        answer = stranger.request.get(f"{path}/")
        assert answer.status == 404
        assert "not-for-all" not in answer.text()
    member.get_by_role("button", name="Release").first.click()
    member.get_by_role("dialog").get_by_role("button", name="Release").click()
    expect(member.locator(".pill")).to_contain_text("Released", timeout=SOON)


def test_the_same_by_api(demo: Demo, sign_in: SignIn) -> None:
    page = sign_in("avocet")
    page.goto("/account/tokens/")
    page.get_by_label("Name", exact=True).fill("journey")
    page.get_by_label("Ask and release").check()
    page.get_by_role("button", name="Make").click()
    token = page.locator("#new-token").inner_text().strip()

    claims = f"{demo.address}/api/v1/tenants/tidewater-vision/claims"
    body = {
        "template": "gpu",
        "namespace": "tidewater-eval",
        "name": "by-api",
        "values": {"memory": "10"},
    }
    key = {"Idempotency-Key": "journey-1"}
    status, made = call(claims, token, body, key)
    assert (status, made["state"]) == (201, "requested")
    assert call(claims, token, body, key) == (201, made), "asked twice, done once"
    where = f"{claims}/{made['id']}"
    until(lambda: call(where, token)[1]["state"] == "applied")
    assert len(call(f"{claims}?state=applied", token)[1]["results"]) >= 1
    offers = call(claims.replace("/claims", "/offers"), token)[1]
    assert {offer["name"] for offer in offers} >= {"h100-80gb", "a100-mig-1g", "nic-rdma"}
    status, problem = call(claims, token, {**body, "values": {"gpus": 99}}, {})
    assert (status, problem["code"]) == (422, "INVALID")
    status, _ = call(f"{where}/release", token, {})
    assert status == 202
    until(lambda: call(where, token)[1]["state"] == "released")
    assert call(claims.replace("tidewater-vision", "basalt-genomics"), token)[0] == 404


def claim_of(gateway: Gateway, namespace: str, public_id: str) -> dict[str, Any]:
    label = f"berth.dev/claim={public_id}"
    (claim,) = gateway.list("ResourceClaim", namespace=namespace, labels=label).items
    return claim


def call(
    url: str, token: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, Any]:
    """One call as a program makes it: status and decoded body."""
    request = urllib.request.Request(
        url,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/json",
            **(headers or {}),
        },
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def until(true: Any, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come true in time"
        time.sleep(0.2)
