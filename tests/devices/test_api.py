"""The API's ground: who gets in, what is done once, how it says no."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from devices.models import Claim
from tenants.access import Access, tenant_for
from tenants.models import Membership
from tenants.tokens import make_token
from tests.factories import make_access, make_claim, make_person, make_tenant, make_version

pytestmark = pytest.mark.django_db
CLAIMS = "/api/v1/tenants/tidewater/claims"
ASK = {"template": "gpu", "namespace": "tidewater-train", "name": "train", "values": {"count": 2}}


class Caller:
    """A program with a token."""

    def __init__(self, access: Access, *scopes: str) -> None:
        now = timezone.now()
        made = make_token(
            access=access,
            name="test",
            scopes=list(scopes or ("read", "request")),
            expires_at=now + timedelta(hours=1),
            now=now,
            request_id="request-0001",
        )
        self.client = Client(headers={"Authorization": f"Bearer {made.text}"})

    def get(self, path: str = CLAIMS) -> HttpResponse:
        return self.client.get(path)  # type: ignore[return-value]

    def post(self, body: Any = None, path: str = CLAIMS, **headers: str) -> HttpResponse:
        return self.client.post(  # type: ignore[return-value]
            path, json.dumps(body), content_type="application/json", headers=headers
        )


def problem(answer: HttpResponse) -> tuple[int, str]:
    assert answer["Content-Type"] == "application/problem+json", answer.content
    body = json.loads(answer.content)
    assert body["status"] == answer.status_code
    assert body["request_id"] == answer["X-Request-ID"]
    assert body["detail"]
    return answer.status_code, body["code"]


@pytest.fixture
def access() -> Access:
    make_version()
    return make_access()


def test_an_ask_is_accepted_and_found_again(access: Access) -> None:
    caller = Caller(access)
    answer = caller.post(ASK)
    assert answer.status_code == 201
    made = json.loads(answer.content)
    assert (made["state"], made["words"], made["kind"]) == (
        "requested",
        "2 × GPU",
        "ResourceClaimTemplate",
    )
    again = caller.get(answer["Location"])
    assert json.loads(again.content)["id"] == made["id"]
    assert again["ETag"] == answer["ETag"]
    assert [row["id"] for row in json.loads(caller.get().content)["results"]] == [made["id"]]


def test_a_request_id_goes_from_the_call_to_the_row(access: Access) -> None:
    answer = Caller(access).post(ASK, **{"X-Request-ID": "ci-run-4711"})
    assert answer["X-Request-ID"] == "ci-run-4711"
    assert Claim.objects.get().request_id == "ci-run-4711"


@pytest.mark.parametrize("given", ["short", "with space in it", "<script>alert(1)</script>"])
def test_a_harmful_request_id_is_replaced(access: Access, given: str) -> None:
    assert Caller(access).post(ASK, **{"X-Request-ID": given})["X-Request-ID"] != given


def test_the_same_key_is_done_once(access: Access) -> None:
    caller, key = Caller(access), {"Idempotency-Key": "deploy-1"}
    first, second = caller.post(ASK, **key), caller.post(ASK, **key)
    assert (first.status_code, second.status_code) == (201, 201)
    assert json.loads(first.content) == json.loads(second.content)
    assert second["Idempotency-Replayed"] == "true"
    assert not first.has_header("Idempotency-Replayed")
    assert second["Location"] == first["Location"]
    assert Claim.objects.count() == 1


def test_the_same_key_for_another_ask_is_refused(access: Access) -> None:
    caller, key = Caller(access), {"Idempotency-Key": "deploy-1"}
    caller.post(ASK, **key)
    answer = caller.post({**ASK, "name": "other"}, **key)
    assert problem(answer) == (422, "IDEMPOTENCY_KEY_REUSED")
    assert Claim.objects.count() == 1


def test_a_refused_ask_may_be_mended_under_the_same_key(access: Access) -> None:
    caller, key = Caller(access), {"Idempotency-Key": "deploy-1"}
    assert problem(caller.post({**ASK, "values": {"count": 99}}, **key)) == (422, "INVALID")
    assert caller.post(ASK, **key).status_code == 201


def test_release_needs_the_state_that_was_looked_at(access: Access) -> None:
    caller = Caller(access)
    claim = make_claim(access, Claim.objects.none().first() or make_version("other"))
    path = f"{CLAIMS}/{claim.public_id}/release"
    stale = caller.post(None, path, **{"If-Match": '"7"'})
    assert problem(stale) == (412, "OUTDATED")
    assert json.loads(stale.content)["facts"]["etag"] == '"1"'
    assert caller.post(None, path, **{"If-Match": '"1"'}).status_code == 202
    claim.refresh_from_db()
    assert claim.state == "releasing"


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        pytest.param({}, {"template", "namespace", "name"}, id="an empty body"),
        pytest.param({**ASK, "values": {"count": 9}}, {"values.count"}, id="too many"),
        pytest.param({**ASK, "values": {"colour": 1}}, {"values.colour"}, id="no such parameter"),
        pytest.param({**ASK, "template": "unknown"}, {"template"}, id="no such template"),
        pytest.param({**ASK, "namespace": "kube-system"}, {"namespace"}, id="foreign namespace"),
        pytest.param({**ASK, "name": "A B"}, {"name"}, id="a name Kubernetes would refuse"),
        pytest.param({**ASK, "values": []}, {"values"}, id="values of the wrong shape"),
    ],
)
def test_bad_input_names_its_fields(access: Access, body: Any, fields: set[str]) -> None:
    answer = Caller(access).post(body)
    assert problem(answer) == (422, "INVALID")
    assert set(json.loads(answer.content)["facts"]["fields"]) == fields
    assert not Claim.objects.exists()


def test_half_a_document_is_not_json(access: Access) -> None:
    answer = Caller(access).client.post(CLAIMS, "{", content_type="application/json")
    assert problem(answer) == (400, "NOT_JSON")  # type: ignore[arg-type]


def test_a_reading_token_does_not_ask(access: Access) -> None:
    caller = Caller(access, "read")
    assert caller.get().status_code == 200
    assert problem(caller.post(ASK)) == (403, "NOT_PERMITTED")


def test_a_viewers_session_does_not_ask(access: Access) -> None:
    viewer = make_person("heron", access.tenant, "viewer")
    client = Client()
    client.force_login(viewer)
    answer = client.post(CLAIMS, json.dumps(ASK), content_type="application/json")
    assert problem(answer) == (403, "NOT_PERMITTED")  # type: ignore[arg-type]


@pytest.mark.parametrize("path", [CLAIMS, "/api/v1/tenants/nothing-here/claims"])
def test_a_stranger_learns_nothing(access: Access, path: str) -> None:
    other = make_tenant("basalt", namespaces=("basalt-x",))
    stranger = Caller(tenant_for(make_person("sorrel", other, "owner"), "basalt"))
    answer = stranger.get(path)
    assert problem(answer) == (404, "NOT_FOUND")
    assert "tidewater" not in answer.content.decode()


def test_a_token_reaches_no_other_tenant_of_its_person(access: Access) -> None:
    caller = Caller(access)
    other = make_tenant("basalt", namespaces=("basalt-x",))
    Membership.objects.create(tenant=other, user=access.user, role="owner")
    assert problem(caller.get("/api/v1/tenants/basalt/claims")) == (404, "NOT_FOUND")


def test_a_token_dies_with_the_membership(access: Access) -> None:
    caller = Caller(access)
    Membership.objects.all().delete()
    assert problem(caller.get()) == (404, "NOT_FOUND")


@pytest.mark.parametrize("header", ["Bearer nonsense", "Bearer berth_0123456789_x"])
def test_a_bad_token_is_401(access: Access, header: str) -> None:
    answer = Client(headers={"Authorization": header}).get(CLAIMS)
    assert problem(answer) == (401, "TOKEN_INVALID")  # type: ignore[arg-type]
    assert answer["WWW-Authenticate"].startswith("Bearer")


def test_nobody_is_401() -> None:
    assert problem(Client().get(CLAIMS)) == (401, "NOT_SIGNED_IN")  # type: ignore[arg-type]


def test_lists_come_in_pages_that_survive_inserts(access: Access) -> None:
    version = make_version("other")
    ids = [make_claim(access, version, name=f"c{n}").public_id for n in range(5)]
    caller = Caller(access)
    first = json.loads(caller.get(f"{CLAIMS}?limit=2").content)
    make_claim(access, version, name="newer")
    second = json.loads(caller.get(first["next"]).content)
    seen = [row["id"] for row in (*first["results"], *second["results"])]
    assert seen == [*reversed(ids)][:4]


def test_a_list_costs_the_same_queries_for_any_length(
    access: Access, django_assert_num_queries: Any
) -> None:
    version = make_version("other")
    caller = Caller(access)
    caller.get()
    for n in range(3):
        make_claim(access, version, name=f"c{n}")
    with django_assert_num_queries(3):
        caller.get()
    for n in range(20):
        make_claim(access, version, name=f"d{n}")
    with django_assert_num_queries(3):
        caller.get()


def test_the_document_describes_every_operation(access: Access) -> None:
    document = json.loads(Caller(access).get("/api/v1/openapi.json").content)
    operations = {
        one["operationId"] for path in document["paths"].values() for one in path.values()
    }
    assert operations >= {
        "list_claims",
        "ask_for_devices",
        "get_claim",
        "release_claim",
        "list_templates",
        "list_offers",
    }
    for path in document["paths"].values():
        for operation in path.values():
            assert {"401", "403", "404"} <= set(operation["responses"])
