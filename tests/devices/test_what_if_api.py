"""What-if by API: the pages' words and codes, and no trace of having asked."""

from __future__ import annotations

import json
from typing import Any

import pytest

from devices.models import Claim, Forecast
from portal.audit.models import AuditLine
from portal.management.demo_templates import TEMPLATES
from portal.outbox.models import OutboxLine
from tenants.access import Access
from tests.devices.demofleet import fleet_objects, h100, holding, mirror
from tests.devices.test_api import Caller, problem
from tests.factories import make_access, make_version

pytestmark = pytest.mark.django_db
WHAT_IF = "/api/v1/tenants/tidewater/what-if"
WHOLE = {"template": "gpu", "values": {"memory": "80-nvlink", "gpus": 8}}


@pytest.fixture
def access() -> Access:
    make_version(content=TEMPLATES["gpu"][3])
    mirror(
        [
            *fleet_objects(),
            holding("secret-1", h100(1, *range(8))),
            holding("mine-2", h100(2, *range(8)), namespace="tidewater-train"),
            holding("secret-3", h100(3, *range(4))),
            holding("secret-4", h100(4, *range(4))),
        ]
    )
    return make_access()


def test_it_says_why_not_and_what_would_and_leaves_no_trace(access: Access) -> None:
    caller = Caller(access, "read")
    before = AuditLine.objects.count()
    answer = caller.post(WHOLE, WHAT_IF)
    assert answer.status_code == 200
    body = json.loads(answer.content)
    found = body["outlook"]
    assert (found["fits"], found["fate"], found["code"], found["who"]) == (
        False,
        "taken now",
        "NOT_ENOUGH_ON_ONE_NODE",
        "nobody",
    )
    assert [step["left"] for step in found["funnels"][0]["steps"]] == [168, 32, 8, 4]
    assert body["alternatives"][0]["values"]["gpus"] == 4
    assert {"yours": ["mine-2"], "others": 0, "node": "h100-a02", "until": None} in found["waits"]
    assert body["usual_wait"] == {"samples": 0, "p50": None, "p95": None}
    assert (body["route"]["path"], body["hit_rate"]) == ("claim", None)
    assert found["as_of"] and "DRAConsumableCapacity" in found["assumed"]
    assert "secret" not in answer.text and "basalt" not in answer.text
    assert not (Claim.objects.exists() or Forecast.objects.exists() or OutboxLine.objects.exists())
    assert AuditLine.objects.count() == before


def test_an_alternative_fits_when_it_is_asked_about(access: Access) -> None:
    caller = Caller(access)
    offered = json.loads(caller.post(WHOLE, WHAT_IF).content)["alternatives"]
    assert offered
    for one in offered:
        again = caller.post({"template": "gpu", "values": one["values"]}, WHAT_IF)
        assert json.loads(again.content)["outlook"]["fits"] is True


@pytest.mark.parametrize(
    ("more", "fields"),
    [
        pytest.param({"values": {"gpus": 99}}, {"values.gpus"}, id="an answer out of bounds"),
        pytest.param({"namespace": "kube-system"}, {"namespace"}, id="not the tenant's namespace"),
        pytest.param({"cpu": "many"}, {"cpu"}, id="no quantity"),
        pytest.param({"template": "nothing"}, {"template"}, id="no such template"),
    ],
)
def test_what_is_not_right_is_said_by_field(
    access: Access, more: dict[str, Any], fields: set[str]
) -> None:
    answer = Caller(access).post({**WHOLE, **more}, WHAT_IF)
    assert problem(answer) == (422, "INVALID")
    assert set(json.loads(answer.content)["facts"]["fields"]) == fields


def test_the_pod_beside_the_devices_counts(access: Access) -> None:
    body = {"template": "gpu", "values": {"memory": "80-nvlink", "gpus": 4}}
    caller = Caller(access)
    assert json.loads(caller.post(body, WHAT_IF).content)["outlook"]["fits"] is True
    found = json.loads(caller.post({**body, "cpu": "500"}, WHAT_IF).content)["outlook"]
    assert found["code"] == "NODE_RESOURCES_SHORT"
    assert found["beside"] == [{"text": "Insufficient cpu", "nodes": 2}]


def test_a_stranger_learns_nothing(access: Access) -> None:
    other = make_access("sorrel", slug="basalt", namespaces=("basalt-x",))
    assert problem(Caller(other).post(WHOLE, WHAT_IF)) == (404, "NOT_FOUND")
