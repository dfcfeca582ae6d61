"""A pool's first wave, by two people in two browsers: asked for, agreed to, begun, rolled back.
Nobody loads a page anew meanwhile: what can be decided comes with the news.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from devices.cluster.gateway import Ref
from devices.dra.names import QUIESCING_TAINT
from tests.journeys.conftest import Demo, SignIn
from tests.journeys.looking import look_at
from tests.journeys.test_every_page import make_plan
from tests.journeys.test_first_device import SOON, until

pytestmark = [pytest.mark.cluster, pytest.mark.browser]

CLASS = "l40s-48gb"
PLUGIN, PLUGIN_LABEL = "helios.example/l40s", "helios.example/gpu.plugin"
#: A node that goes back first has to be without its driver's Pods and slices.
BACK_WITHIN = 240_000


def test_a_wave_is_agreed_to_begins_and_is_rolled_back(demo: Demo, sign_in: SignIn) -> None:
    operator = sign_in("olm")
    open_plan(operator)
    decide = operator.get_by_role("region", name="Decide about wave 1")
    expect(decide.get_by_role("button", name="Discard the wave")).to_be_visible()
    decide.get_by_label("Why").fill("Its users agreed")
    decide.get_by_role("button", name="Submit").click()
    expect(operator.locator(".head-line .pill")).to_contain_text("In review", timeout=SOON)
    operator.evaluate("window.stayed = true")
    asked = operator.get_by_role("link", name=re.compile(r"^A-\d+$")).first
    number, address = asked.inner_text(), asked.get_attribute("href") or ""
    node = operator.locator("table.lanes tbody th").first.inner_text().strip()

    approver = sign_in("pike")
    approver.goto(address)
    approver.get_by_role("button", name=f"Approve {number}").click()
    expect(approver.get_by_text("approved").first).to_be_visible()

    decide.get_by_label("Why").fill("Half a sentence")
    expect(operator.locator(".head-line .pill")).to_contain_text("Running", timeout=2 * SOON)
    until(lambda: QUIESCING_TAINT in taints(demo, node))
    expect(decide.get_by_role("button", name="Roll back, end nothing")).to_be_visible(timeout=SOON)
    expect(decide.get_by_role("button", name="Discard the wave")).to_have_count(0)
    expect(decide.get_by_label("Why")).to_have_value("Half a sentence")

    for namespace, name in holders(demo, node):
        expect(operator.locator("table.lanes")).to_contain_text(name, timeout=SOON)
        demo.gateway.delete(Ref("Pod", name, namespace))
    until(lambda: PLUGIN_LABEL not in labels(demo, node), 120)
    expect(operator.locator("table.lanes")).to_contain_text(node)
    look_at(operator, "plan-running")

    assert operator.evaluate("window.stayed") is True, "the page was never loaded anew"
    decide.get_by_label("Why").fill("The canary was enough for today")
    decide.get_by_role("button", name="Roll back, end nothing").click()
    expect(operator.locator(".head-line .pill")).to_contain_text("Rolled back", timeout=BACK_WITHIN)
    assert labels(demo, node)[PLUGIN_LABEL] == "true" and QUIESCING_TAINT not in taints(demo, node)
    until(lambda: offered(demo, node) == "4")
    log = operator.get_by_role("region", name="Log")
    expect(log).to_contain_text("The canary was enough for today")
    # New work goes the old way until somebody says that it need not.
    operator.goto("/platform/routes/")
    operator.get_by_role("button", name=f"End the route of {CLASS}").click()
    expect(operator.get_by_text("Nothing is set any more").first).to_be_visible()


def open_plan(page: Page) -> None:
    """The plan for the demo's pool, which another journey may have made."""
    page.goto("/platform/plans/")
    made = page.get_by_role("link", name="L40S to DRA")
    if made.count():
        made.first.click()
    else:
        make_plan(page)


def holders(demo: Demo, node: str) -> list[tuple[str, str]]:
    """Namespace and name of each Pod that holds the plugin's devices there."""
    pods = demo.gateway.list("Pod").items
    return [
        (pod["metadata"]["namespace"], pod["metadata"]["name"])
        for pod in pods
        if pod["spec"].get("nodeName") == node
        and any(
            PLUGIN in one.get("resources", {}).get("limits", {})
            for one in pod["spec"]["containers"]
        )
    ]


def labels(demo: Demo, node: str) -> dict[str, str]:
    return dict(node_of(demo, node)["metadata"]["labels"])


def taints(demo: Demo, node: str) -> set[str]:
    return {taint["key"] for taint in node_of(demo, node)["spec"].get("taints", ())}


def offered(demo: Demo, node: str) -> str:
    return str(node_of(demo, node)["status"]["allocatable"].get(PLUGIN, "0"))


def node_of(demo: Demo, node: str) -> dict[str, Any]:
    found = demo.gateway.get(Ref("Node", node))
    assert found is not None
    return found
