"""A device on a real node: a real kubelet's times on the claim's page, and its words when it fails.

Needs Linux, root and the programs of real nodes; elsewhere it says what is missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
import yaml
from playwright.sync_api import Page, expect

from devices.cluster.gateway import Ref
from playground.faults.table import broken
from playground.realnodes import nodes
from playground.realnodes.node import RealNode
from tests.journeys.conftest import Demo, SignIn, start_demo, stop_demo, taken_demo
from tests.playground.realnode import real_nodes_built

pytestmark = [pytest.mark.cluster, pytest.mark.browser]

SOON = 40_000
NAMESPACE = "tidewater-eval"
STAGES = ["Claim generated", "Allocated", "Bound", "Prepared", "Running"]
WORDS = "the GPU is asleep, and nobody may wake it"


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A demo with one real node beside its simulated machines."""
    real_nodes_built()
    folder = tmp_path_factory.mktemp("real") / "demo"
    running = taken_demo() or start_demo(folder, "--real-nodes", "1", up="real nodes ")
    yield running
    stop_demo(running)


@pytest.fixture(scope="module")
def node(demo: Demo) -> RealNode:
    [found] = nodes.known(demo.plane)
    return found


def ask_for_an_h100(page: Page, name: str) -> None:
    page.goto("/t/tidewater-vision/ask/gpu/")
    page.get_by_label("Name", exact=True).fill(name)
    page.get_by_label("Namespace").select_option(NAMESPACE)
    page.get_by_text("80 GB, NVLink", exact=True).click()
    page.get_by_role("button", name="Ask for").click()
    page.wait_for_url("**/claims/*/")
    expect(page.get_by_text("WAITING_FOR_POD").first).to_be_visible(timeout=SOON)


def run_the_pod_of(page: Page, demo: Demo, node: RealNode) -> str:
    """Makes the Pod that the page shows, on the real node; returns its name."""
    pod = yaml.safe_load(page.locator("#pod").inner_text())
    pod["spec"]["nodeSelector"] = {"kubernetes.io/hostname": node.name}
    demo.gateway.create(pod)
    return str(pod["metadata"]["name"])


def stages_of(page: Page) -> dict[str, str]:
    """What each reached stage took, by its word, as the page says it."""
    rows = page.locator("table.stages tbody tr:not(.next)")
    return {
        row.locator("th").inner_text().strip(): row.locator("td").first.inner_text().strip()
        for row in rows.all()
    }


def release(page: Page, demo: Demo, pod: str) -> None:
    demo.gateway.delete(Ref("Pod", pod, NAMESPACE))
    page.get_by_role("button", name="Release").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Release").click()
    expect(page.locator(".pill")).to_contain_text("Released", timeout=SOON)


def test_a_real_kubelet_takes_a_request_through_every_stage(
    demo: Demo, node: RealNode, sign_in: SignIn
) -> None:
    page = sign_in("plover")
    ask_for_an_h100(page, "on-a-real-node")
    pod = run_the_pod_of(page, demo, node)
    running = page.get_by_role("heading", name=f"Running with 1 device on {node.name}")
    expect(running).to_be_visible(timeout=SOON)
    last = page.locator("table.stages tbody tr:not(.next)", has_text="Running")
    expect(last).to_be_visible(timeout=SOON)
    assert list(stages_of(page)) == STAGES
    found = demo.gateway.get(Ref("Pod", pod, NAMESPACE)) or {}
    assert stages_of(page)["Running"] == in_words(times_of(found))
    expect(page.locator("#claim-live")).to_contain_text("Healthy")
    release(page, demo, pod)


def test_a_failed_preparation_shows_the_kubelet_s_own_words_and_is_overcome(
    demo: Demo, node: RealNode, sign_in: SignIn
) -> None:
    page = sign_in("plover", width=390)
    ask_for_an_h100(page, "not-at-once")
    with broken(node, "prepare-fails", claims=f"{NAMESPACE}/*", message=WORDS):
        pod = run_the_pod_of(page, demo, node)
        expect(page.get_by_text("PREPARE_FAILED").first).to_be_visible(timeout=SOON)
        said = page.locator("#claim-live")
        expect(said).to_contain_text(
            "Failed to prepare dynamic resources: prepare dynamic resources:"
        )
        expect(said).to_contain_text(WORDS)
    # A kubelet tries again after 60 to 90 s; an update of the Pod makes it try at once.
    touched = {"metadata": {"annotations": {"tidewater.example/touched": "once"}}}
    demo.gateway.merge(Ref("Pod", pod, NAMESPACE), touched)
    running = page.get_by_role("heading", name=f"Running with 1 device on {node.name}")
    expect(running).to_be_visible(timeout=SOON)
    expect(page.locator("#claim-live")).not_to_contain_text("PREPARE_FAILED")
    release(page, demo, pod)


def times_of(pod: dict[str, Any]) -> float:
    """Seconds from prepared to running, by the kubelet's own stamps."""
    status = pod["status"]
    [prepared] = [
        one["lastTransitionTime"]
        for one in status["conditions"]
        if one["type"] == "PodReadyToStartContainers"
    ]
    [container] = status["containerStatuses"]
    started = container["state"]["running"]["startedAt"]
    return (datetime.fromisoformat(started) - datetime.fromisoformat(prepared)).total_seconds()


def in_words(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds >= 1 else "under 1 s"
