"""The translator's page and its operation: what people see and programs get."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from devices.models import PluginResource, Proof
from devices.routing import proofs
from devices.translation.translate import LONGEST
from tenants.access import Access, tenant_for
from tenants.models import ApiToken
from tenants.tokens import make_token
from tests.devices.demofleet import fleet_objects, mirror
from tests.devices.pages import client_of, text
from tests.factories import NOON, make_access, make_claim, make_person, make_version

pytestmark = pytest.mark.django_db

NAME = "vendor.example/card"
POD = f"""\
apiVersion: v1
kind: Pod
metadata:
  name: train   # ours
spec:
  containers:
  - name: main
    image: x
    resources:
      limits:
        {NAME}: 2
"""
PAGE = "/t/tidewater/translate/"


@pytest.fixture
def access() -> Access:
    """A member, in a cluster whose plugin's name stands for a class of the demo's fleet."""
    access = make_access()
    mirror(fleet_objects())
    PluginResource.objects.create(
        resource=NAME, device_class="h100-80gb", set_by=access.user.person, set_at=NOON
    )
    return access


def post(access: Access, **given: Any) -> Any:
    return client_of(access.user).post(PAGE, {"text": POD, **given})


def test_the_page_offers_the_form_and_an_example(access: Access) -> None:
    client = client_of(access.user)
    page = text(client.get(PAGE))
    assert "Paste a manifest" in page and "A new template in the manifest" in page
    example = text(client.get(f"{PAGE}?example"))
    assert f"{NAME}: 1 # a whole card" in example


def test_what_was_pasted_comes_back_with_claims(access: Access) -> None:
    page = text(post(access))
    assert "resourceClaimTemplateName: train-devices" in page
    assert "deviceClassName: h100-80gb" in page
    assert "1 of 1 document changed" in page
    assert "ONE_CLAIM_PER_POD" in page and "Each Pod gets a claim of its own" in page
    assert "name: train # ours" in page, "the comment stays"
    assert "It was not asked." in page and not Proof.objects.exists()


def test_a_fragment_is_the_result_alone(access: Access) -> None:
    answer = client_of(access.user).post(PAGE, {"text": POD}, headers={"HX-Request": "true"})
    assert answer.status_code == 200
    assert "<html" not in answer.text and "with-claims" in answer.text


def test_a_manifest_without_devices_is_said_to_be_unchanged(access: Access) -> None:
    page = text(post(access, text="kind: ConfigMap\n"))
    assert "nothing changed" in page and "asks for devices by a name" in page


def test_what_cannot_be_read_is_named_with_its_line(access: Access) -> None:
    page = text(post(access, text=f"{POD}---\na: {{{{ .Values.x }}}}\n"))
    assert "TEMPLATE_BRACES" in page and "line 13" in page
    assert "1 of 2 documents changed" in page


def test_too_long_is_refused_at_the_field(access: Access) -> None:
    answer = post(access, text="a" * (LONGEST + 1))
    assert answer.status_code == 422
    assert "at most 1000000 characters" in text(answer)


def test_the_file_has_what_the_page_shows(access: Access) -> None:
    answer = client_of(access.user).post(f"{PAGE}file/", {"text": POD.replace("\n", "\r\n")})
    assert answer["Content-Disposition"] == 'attachment; filename="with-claims.yaml"'
    body = answer.content.decode()
    assert "resourceClaims:\n  - name: devices" in body and "\r" not in body


def test_a_claim_of_the_tenants_takes_the_place_of_a_template(access: Access) -> None:
    content = {
        "requests": [{"name": "gpu", "device_class": "h100-80gb", "words": "GPU", "count": 2}]
    }
    claim = make_claim(access, make_version("pair", content=content), name="pair")
    page = text(post(access, claim=claim.public_id))
    assert f"resourceClaimTemplateName: {claim.object_name}" in page
    assert "MADE_OUTSIDE" not in page
    assert "has not" in text(post(access, text=POD.replace(": 2", ": 3"), claim=claim.public_id))


def test_a_proof_is_asked_of_a_worker_and_shown_side_by_side(access: Access) -> None:
    post(access, prove="on", namespace="tidewater-train")
    row = Proof.objects.get()
    kinds = [(one["about"], one["before"]) for one in row.questions]
    assert kinds == [
        ("Pod train", True),
        ("ResourceClaimTemplate train-devices", False),
        ("Claim of train-devices", False),
        ("Pod train", False),
    ]
    assert {one["obj"]["metadata"]["namespace"] for one in row.questions} == {"tidewater-train"}
    client = client_of(access.user)
    assert "Asked" in text(client.get(f"{PAGE}proofs/{row.public_id}/"))
    Proof.objects.update(
        questions=[],
        answered_at=timezone.now(),
        answers=[
            {
                "about": "Pod train",
                "before": True,
                "accepted": True,
                "code": "ACCEPTED",
                "words": "",
            },
            {
                "about": "Pod train",
                "before": False,
                "accepted": False,
                "code": "REFUSED_BY_SERVER",
                "words": "not <b>allowed</b>",
            },
        ],
    )
    page = text(client.get(f"{PAGE}proofs/{row.public_id}/"))
    assert "As pasted" in page and "not &lt;b&gt;allowed&lt;/b&gt;" in page
    other = make_person("pearl", access.tenant, "owner")
    assert client_of(other).get(f"{PAGE}proofs/{row.public_id}/").status_code == 404


def test_nothing_is_asked_in_namespaces_of_others(access: Access) -> None:
    elsewhere = POD.replace("  name: train", "  namespace: basalt-pipelines\n  name: train")
    page = text(post(access, text=elsewhere, prove="on", namespace="tidewater-train"))
    assert "basalt-pipelines is no namespace of this tenant" in page
    assert not Proof.objects.exists()


def test_a_viewer_translates_and_asks_nothing(access: Access) -> None:
    iris = tenant_for(make_person("iris", access.tenant, "viewer"), "tidewater")
    page = text(post(iris, prove="on", namespace="tidewater-train"))
    assert "train-devices" in page and "Ask the API server too" not in page
    assert not Proof.objects.exists()


def test_the_operation_says_the_same(access: Access, client: Client) -> None:
    token = make_token(
        access=access,
        name="nightly",
        scopes=[ApiToken.Scope.READ],
        expires_at=timezone.now() + timedelta(days=1),
        now=timezone.now(),
        request_id="r",
    )
    crlf = POD.replace("\n", "\r\n")
    answer = client.post(
        "/api/v1/tenants/tidewater/translations",
        json.dumps({"text": crlf}),
        content_type="application/json",
        headers={"Authorization": f"Bearer {token.text}"},
    )
    assert answer.status_code == 200, answer.content
    found = answer.json()
    assert found["changed"] and found["documents"] == 1 and found["proof"] is None
    assert "resourceClaims:\r\n" in found["text"], "line ends stay as they were sent"
    assert {"sign": "-", "text": f"        {NAME}: 2", "before": 11, "after": None} in found["diff"]
    assert found["findings"][0]["code"] == "ONE_CLAIM_PER_POD"


def test_proofs_are_forgotten(access: Access) -> None:
    post(access, prove="on", namespace="tidewater-train")
    assert proofs.forget(timezone.now()) == 0
    assert proofs.forget(timezone.now() + proofs.KEPT_FOR) == 1
