"""The catalogue by API: the words of the pages, page by page, and nobody's claim but one's own."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from devices.catalogue.capabilities import served
from devices.dra.features import Stage
from devices.forecasts.warm import warm
from devices.models import AssumedGate, ClusterState
from portal.audit.models import AuditLine
from tenants.models import PlatformRole, Tenant
from tests.devices.demofleet import h100, holding
from tests.devices.pages import client_of, text
from tests.devices.test_browsing import OTHERS, OWN, look_again, machines
from tests.factories import make_person, make_tenant

pytestmark = pytest.mark.django_db

TENANT, PLATFORM = "/api/v1/tenants/tidewater", "/api/v1/platform"
DEVICE = "devices/gpu.helios.example/h100-a01"
SHARES = "DRAConsumableCapacity"


@pytest.fixture
def tenant() -> Client:
    make_tenant("tidewater", (OWN,), {"h100-80gb": 8})
    make_tenant("basalt", (OTHERS,), {"*": None})
    look_again(
        *machines(),
        holding("mine", h100(1, 0, 1), namespace=OWN),
        holding("secret-fold", h100(1, 2, 3), namespace=OTHERS),
    )
    return client_of(make_person("tim", Tenant.objects.get(slug="tidewater")))


def somebody(role: str) -> Client:
    person = make_person(f"the-{role}")
    PlatformRole.objects.create(user=person, role=role)
    return client_of(person)


def pages(client: Client, address: str) -> list[list[dict[str, Any]]]:
    """Every page of a list, by its own links."""
    found, here = [], address
    while here:
        answer = client.get(here).json()
        found.append(answer["results"])
        here = answer["next"]
    return found


def test_lists_come_page_by_page_and_in_order(tenant: Client) -> None:
    parts = pages(tenant, f"{TENANT}/devices?class=h100-80gb&limit=10")
    assert [len(part) for part in parts] == [10, 10, 10, 2]
    keys = [(one["pool"], one["name"]) for part in parts for one in part]
    assert keys == sorted(keys) and len(set(keys)) == 32
    last = tenant.get(f"{TENANT}/devices?class=h100-80gb&limit=10").json()["next"]
    back = tenant.get(tenant.get(last).json()["previous"]).json()["results"]
    assert back == parts[0]
    assert len(pages(tenant, f"{TENANT}/pools?limit=5")[0]) == 5
    assert [one["name"] for one in tenant.get(f"{TENANT}/nodes?q=fpga").json()["results"]] == [
        "fpga-e01",
        "fpga-e02",
    ]
    refused = tenant.get(f"{TENANT}/pools?cursor=nonsense")
    assert (refused.status_code, refused.json()["code"]) == (422, "INVALID")


def test_a_class_has_the_figures_of_its_page(tenant: Client) -> None:
    found = tenant.get(f"{TENANT}/classes/h100-80gb").json()
    assert found["figures"] == {
        "total": 32, "free": 28, "allocated": 4, "shared": 0, "fragmented": 0, "unavailable": 0,
        "unknown": 0,
    }  # fmt: skip
    assert found["may_use"] == {"allowed": True, "left": 6, "limit": 8, "tenants": None}
    assert found["largest"] == {"count": 8, "code": ""}
    assert found["groups"][0]["traits"][0]["words"] == "memory 79.6 GiB"
    names = [one["name"] for part in pages(tenant, f"{TENANT}/classes?limit=4") for one in part]
    assert names == sorted(names) and len(names) == 9
    assert tenant.get(f"{TENANT}/classes/nothing").status_code == 404
    every = somebody("auditor").get(f"{PLATFORM}/classes/h100-80gb").json()
    assert every["may_use"]["tenants"] == ["Tidewater", "Basalt"]


def test_others_claims_have_no_name(tenant: Client) -> None:
    theirs = tenant.get(f"{TENANT}/{DEVICE}/gpu-2").json()
    assert (theirs["holders"], theirs["other_holders"]) == ([], 1)
    assert tenant.get(f"{TENANT}/{DEVICE}/gpu-0").json()["holders"][0]["name"] == "mine"
    history = tenant.get(f"{TENANT}/history/{DEVICE}/gpu-2").json()["results"]
    assert [(one["own"], one["claim"], one["tenant"]) for one in history] == [(False, "", "")]
    for address in (f"{DEVICE}/gpu-2", f"history/{DEVICE}/gpu-2", "devices?node=h100-a01"):
        assert "secret-fold" not in tenant.get(f"{TENANT}/{address}").content.decode()
    seen = somebody("operator").get(f"{PLATFORM}/history/{DEVICE}/gpu-2").json()["results"]
    assert [(one["claim"], one["tenant"]) for one in seen] == [("secret-fold", "basalt")]
    for address in (f"{DEVICE}/gpu-77", f"history/{DEVICE}/gpu-77", "nodes/x", "pools/a/b"):
        assert tenant.get(f"{TENANT}/{address}").status_code == 404


def test_a_search_says_what_it_understood(tenant: Client) -> None:
    found = tenant.get(f"{TENANT}/search", {"q": "80 GB NVLink"}).json()
    assert found["understood"] == ["at least 80 GB of memory", "“NVLink”"]
    assert [one["device_class"] for one in found["fits"]] == ["h100-80gb"]
    near = tenant.get(f"{TENANT}/search", {"q": "200 GB"}).json()
    assert near["fits"] == [] and near["near"][0]["lacks"]


def test_before_the_cluster_was_seen() -> None:
    client = client_of(make_person("tim", make_tenant("tidewater")))
    answer = client.get(f"{TENANT}/pools")
    assert (answer.status_code, answer.json()["code"]) == (503, "CLUSTER_NOT_SEEN")


def test_tenants_get_the_short_form_of_what_is_served(tenant: Client) -> None:
    short = tenant.get(f"{TENANT}/capabilities").json()
    whole = somebody("operator").get(f"{PLATFORM}/capabilities").json()
    assert len(short["features"]) < len(whole["features"])
    assert short["said"] is None and short["features"][0]["evidence"] is None
    assert whole["features"][0]["evidence"]


def test_an_admin_says_how_a_gate_is_set_and_forecasts_go_by_it(tenant: Client) -> None:
    fact = {"name": SHARES, "state": "on", "source": "metric", "stage": "beta"}
    ClusterState.objects.update(capabilities=[fact])
    admin, address = somebody("admin"), f"{PLATFORM}/capabilities/scheduler/{SHARES}"

    def put(on: bool | None, note: str = "", client: Client = admin) -> Any:
        body = json.dumps({"on": on, "note": note})
        return client.put(address, body, content_type="application/json")

    before = warm()
    assert before is not None and SHARES in before.now.gates
    assert put(False, "its flags, in git").status_code == 204
    after = warm()
    assert after is not None and SHARES not in after.now.gates
    [shares] = [one for one in served().features if one.feature.key == "shares"]
    assert shares.stage is Stage.NOT_SERVED and shares.said
    page = text(admin.get("/platform/capabilities/"))
    assert "its flags, in git" in page
    assert put(None).status_code == 204 and not AssumedGate.objects.exists()
    assert put(None).status_code == 204, "twice is fine"
    actions = AuditLine.objects.filter(action__startswith="feature.").values_list("action")
    assert sorted(actions) == [("feature.assumed",), ("feature.not assumed",)]
    assert put(True, client=somebody("operator")).status_code == 403
    assert put(True, client=tenant).status_code == 404
    wrong = admin.put(f"{PLATFORM}/capabilities/scheduler/NoSuch", json.dumps({"on": True}),
                      content_type="application/json")  # fmt: skip
    assert (wrong.status_code, wrong.json()["code"]) == (422, "INVALID")
    assert "gate" in wrong.json()["facts"]["fields"]


def test_the_same_by_the_page(tenant: Client) -> None:
    admin = somebody("admin")
    form = {"what": f"scheduler:{SHARES}", "on": "on", "note": "seen"}
    assert admin.post("/platform/capabilities/assumed/", form).status_code == 302
    assert AssumedGate.objects.get().said_at <= timezone.now()
    refused = admin.post("/platform/capabilities/assumed/", {"what": "nonsense", "on": "on"})
    assert refused.status_code == 422 and "Select a valid choice" in text(refused)
    auditor = somebody("auditor")
    assert auditor.post("/platform/capabilities/assumed/", form).status_code == 403
    assert 'aria-disabled="true"' in text(auditor.get("/platform/capabilities/"))
