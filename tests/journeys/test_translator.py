"""A manifest that asks a device plugin becomes one with claims, is proved, pasted and runs; and new
work is sent to another path, which the open page of whoever waits follows by itself.
"""

from __future__ import annotations

import pytest
import yaml
from playwright.sync_api import expect

from devices.cluster.gateway import Ref
from tests.journeys.conftest import Demo, SignIn
from tests.journeys.looking import look_at
from tests.journeys.test_first_device import SOON, TIDEWATER, ask_for_a_slice, until

pytestmark = [pytest.mark.cluster, pytest.mark.browser]

NAMESPACE, CLASS = "tidewater-eval", "a100-mig-1g"
RESOURCE = f"deviceclass.resource.kubernetes.io/{CLASS}"
MANIFEST = f"""\
# Renders the evening's frames.
apiVersion: v1
kind: Pod
metadata:
  name: renderer
  namespace: {NAMESPACE}
spec:
  restartPolicy: Never
  containers:
    - name: render          # the only one
      image: registry.k8s.io/pause:3.10
      resources:
        limits:
          {RESOURCE}: 1   # a slice will do
---
apiVersion: ray.io/v1
kind: RayCluster
metadata:
  name: frames
spec:
  headGroupSpec:
    template:
      spec:
        containers:
          - name: head
            resources: {{limits: {{{RESOURCE}: 1}}}}
"""


def test_a_manifest_is_translated_proved_pasted_and_runs(demo: Demo, sign_in: SignIn) -> None:
    page = sign_in("plover", width=390)
    page.goto(f"{TIDEWATER}/translate/")
    look_at(page, "translation-empty")
    page.get_by_label("Manifest").fill("kind: [Pod")
    page.get_by_role("button", name="Translate").click()
    result, more = page.locator("#translated"), page.locator("#translation-more")
    expect(more.get_by_text("NOT_YAML")).to_be_visible(timeout=SOON)
    look_at(page, "translation-refused")

    page.get_by_label("Manifest").fill(MANIFEST)
    page.get_by_label("Namespace").select_option(NAMESPACE)
    page.get_by_role("button", name="Translate").click()
    expect(result.locator("#with-claims")).to_contain_text("resourceClaimTemplateName")
    text = result.locator("#with-claims").inner_text()
    assert "# Renders the evening's frames." in text
    assert "# the only one" in text
    expect(more.get_by_role("heading", name="Left as it is")).to_be_visible()
    expect(more).to_contain_text("RayCluster")
    expect(more.get_by_role("heading", name="With claims")).to_be_visible(timeout=SOON)
    expect(more.get_by_text(": refused")).to_have_count(0)
    look_at(page, "translation-done")

    result.get_by_role("button", name="Copy").click()
    for one in yaml.safe_load_all(page.evaluate("navigator.clipboard.readText()")):
        if one["kind"] == "RayCluster":
            assert one == list(yaml.safe_load_all(MANIFEST))[1], "what it does not know stays"
        else:
            demo.gateway.create(one)
    pod = Ref("Pod", "renderer", NAMESPACE)

    def runs() -> bool:
        found = demo.gateway.get(pod) or {}
        return bool(found.get("status", {}).get("phase") == "Running")

    until(runs)
    assert demo.gateway.get(pod)["spec"]["resourceClaims"]  # type: ignore[index]
    demo.gateway.delete(pod)


def test_new_work_is_sent_another_way_and_an_open_page_follows(sign_in: SignIn) -> None:
    tenant, operator = sign_in("plover"), sign_in("olm")
    ask_for_a_slice(tenant, "goes-elsewhere")
    pod = tenant.locator("#pod")
    expect(tenant.get_by_text("WAITING_FOR_POD").first).to_be_visible(timeout=SOON)
    expect(pod).to_contain_text("resourceClaimTemplateName")

    operator.goto("/platform/routes/")
    operator.get_by_label("New work for").select_option(CLASS)
    operator.get_by_label("Goes by").select_option("extended")
    operator.get_by_label("Tenant").select_option(label="Tidewater Vision")
    operator.get_by_label("Template").select_option(label="GPU")
    operator.get_by_label("Why").fill("The claims' path is being looked at.")
    look_at(operator, "routes-form")
    operator.get_by_role("button", name="Set", exact=True).click()
    expect(operator.get_by_role("heading", name="Set now")).to_be_visible()
    look_at(operator, "routes-set")

    expect(pod).to_contain_text(RESOURCE, timeout=SOON)
    expect(pod).not_to_contain_text("resourceClaimTemplateName")
    expect(tenant.locator("#claim-path")).to_contain_text("The claims' path is being looked at.")
    expect(tenant.get_by_role("heading", name="Share it")).to_be_visible()
    look_at(tenant, "claim-rerouted")
    tenant.goto(f"{TIDEWATER}/ask/gpu/")
    tenant.get_by_text("10 GB", exact=True).click()
    tenant.get_by_role("tab", name="Pod", exact=True).click()
    expect(tenant.locator("#panel-pod")).to_contain_text(RESOURCE, timeout=SOON)
    tenant.go_back()

    operator.get_by_role("button", name="End the route of a100-mig-1g").click()
    expect(operator.get_by_text("Nothing is set any more")).to_be_visible()
    expect(pod).to_contain_text("resourceClaimTemplateName", timeout=SOON)
