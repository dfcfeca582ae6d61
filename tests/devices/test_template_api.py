"""Templates by the API: questions with their conditions and bounds, and answers of every kind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from devices.models import Claim
from portal.management.demo_templates import TEMPLATES
from tenants.access import Access
from tests.devices.demofleet import fleet_objects, mirror
from tests.devices.dra.templates.contents import EVERYTHING
from tests.devices.test_api import Caller, problem
from tests.factories import make_access, make_version

pytestmark = pytest.mark.django_db
TENANT = "/api/v1/tenants/tidewater"
ASK = {"template": "gpu", "namespace": "tidewater-train", "name": "train"}


@pytest.fixture
def access() -> Access:
    content = {**EVERYTHING, "tenant_defaults": {"tidewater": {"clients": 1}}}
    make_version(content=content)
    return make_access()


def listed(access: Access) -> dict[str, Any]:
    [template] = json.loads(Caller(access).get(f"{TENANT}/templates").content)
    return {one["name"]: one for one in template["parameters"]} | {"": template}


def test_questions_are_listed_with_all_that_decides_them(access: Access) -> None:
    found = listed(access)
    assert found["speed"]["when"] == {"network": ["rdma", "tcp"]}
    assert found["speed"]["options"][1]["when"] == {"network": ["rdma"]}
    assert [one["value"] for one in found["network"]["options"]] == ["none", "tcp", "rdma"]
    assert found["clients"]["default"] == 1, "this tenant's own"
    assert found["clients"]["bounds"] == [
        {"when": {"network": ["rdma"]}, "minimum": None, "maximum": 4}
    ]
    memory = found["memory"]
    assert (memory["kind"], memory["minimum"], memory["maximum"]) == ("quantity", "1Gi", "64Gi")
    assert (memory["unit"], memory["step"], memory["optional"]) == ("Gi", "512Mi", True)
    assert memory["required_when"] == {"clients": {"minimum": 3, "maximum": None}}
    assert memory["capacity"] == "cpu.example.com/memory" and memory["default"] is None
    gpu = found[""]["requests"][0]
    assert [one["name"] for one in gpu["alternatives"]] == ["big", "small"]
    assert "rdma-expression" not in json.dumps(found), "fragments are the author's business"


def test_answers_of_every_kind_are_taken(access: Access) -> None:
    values = {"network": "rdma", "speed": "100", "clients": 4, "memory": "1.5", "patient": True}
    answer = Caller(access).post({**ASK, "values": values})
    assert answer.status_code == 201
    assert json.loads(answer.content)["values"] == {**values, "memory": "1536Mi"}
    claim = Claim.objects.get()
    wish = claim.wish()
    assert wish.device_classes == {"h100", "a100", "nic", "cpu"}
    assert claim.classes == ["a100", "cpu", "h100", "nic"]
    assert [one.driver for one in wish.configs] == ["gpu.example.com", "nic.example.com"]
    assert wish.configs[0].parameters["sharing"] == {"clients": 4, "memory": "1536Mi"}


@pytest.mark.parametrize(
    ("values", "field"),
    [
        pytest.param({"speed": "100"}, "values.speed", id="a question that is not asked"),
        pytest.param(
            {"network": "tcp", "speed": "400"}, "values.speed", id="an option that is excluded"
        ),
        pytest.param({"clients": 3}, "values.memory", id="what another answer makes necessary"),
        pytest.param({"memory": "1.7"}, "values.memory", id="between two steps"),
        pytest.param({"memory": {"$gt": 0}}, "values.memory", id="an object for an amount"),
        pytest.param({"network": ["rdma"]}, "values.network", id="a list for a choice"),
    ],
)
@pytest.mark.parametrize("path", ["claims", "what-if"])
def test_what_is_refused_names_its_field(
    access: Access, values: dict[str, Any], field: str, path: str
) -> None:
    answer = Caller(access).post({**ASK, "values": values}, f"{TENANT}/{path}")
    assert problem(answer) == (422, "INVALID")
    assert list(json.loads(answer.content)["facts"]["fields"]) == [field]
    assert not Claim.objects.exists()


def test_what_if_tries_smaller_amounts_and_other_orders() -> None:
    make_version("cores", TEMPLATES["cores"][3])
    mirror(fleet_objects())
    caller = Caller(make_access(), "read")
    whole = {"template": "cores", "values": {"cores": 62, "two": True}}
    assert json.loads(caller.post(whole, f"{TENANT}/what-if").content)["outlook"]["fits"]
