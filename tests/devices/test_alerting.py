"""Which states of an ask ring the bell, and what ends it."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import transaction

from devices.asks import reconcile
from devices.asks.alerting import ring
from devices.models import Claim
from portal.alerts.models import Alert
from tests.factories import NOON, make_access, make_claim, make_version

pytestmark = pytest.mark.django_db


@pytest.fixture
def claim() -> Claim:
    return make_claim(make_access(), make_version(), now=NOON)


def becomes(claim: Claim, state: str, code: str, *, hours: float = 0, why: str = "") -> None:
    claim.state, claim.code, claim.why, claim.since = state, code, why, NOON
    claim.save()
    with transaction.atomic():
        ring(claim, NOON + timedelta(hours=hours))


@pytest.mark.parametrize(
    ("state", "code", "hours", "severity"),
    [
        pytest.param("requested", "SENDING", 0, "", id="being sent is no alert"),
        pytest.param("applied", "WAITING_FOR_POD", 90, "", id="nor is waiting for a Pod"),
        pytest.param("held", "FROZEN", 5, "", id="nor a freeze"),
        pytest.param("pending", "NO_MATCHING_DEVICE_FREE", 1, "", id="nor that others hold it"),
        pytest.param("failed", "REFUSED_BY_CLUSTER", 0, "warning", id="a refusal is the tenant's"),
        pytest.param("failed", "FIELD_OWNED_BY_OTHERS", 0, "critical", id="a clash of owners"),
        pytest.param("held", "NAMESPACE_MISSING", 0, "critical", id="a namespace that is gone"),
        pytest.param("pending", "SOMETHING_NEW", 0, "warning", id="what nobody knows"),
    ],
)
def test_what_rings(claim: Claim, state: str, code: str, hours: float, severity: str) -> None:
    becomes(claim, state, code, hours=hours)
    rung = Alert.objects.filter(over_at=None)
    assert [one.severity for one in rung] == ([severity] if severity else [])


def test_it_rings_once_and_names_the_cluster_s_words(claim: Claim) -> None:
    for hours in range(3):
        becomes(claim, "failed", "REFUSED_BY_CLUSTER", hours=hours, why="spec is invalid")
    alert = Alert.objects.get()
    assert alert.times == 3 and alert.path.endswith(f"/claims/{claim.public_id}/")
    assert {"label": "The cluster's message", "value": "spec is invalid"} in alert.evidence


def test_another_code_ends_the_one_before(claim: Claim) -> None:
    becomes(claim, "held", "NAMESPACE_MISSING")
    becomes(claim, "held", "NAMESPACE_OF_ANOTHER", hours=1)
    assert list(Alert.objects.filter(over_at=None).values_list("code", flat=True)) == [
        "NAMESPACE_OF_ANOTHER"
    ]
    becomes(claim, "in use", "", hours=2)
    assert not Alert.objects.filter(over_at=None).exists()


def test_a_release_ends_it(claim: Claim) -> None:
    becomes(claim, "failed", "REFUSED_BY_CLUSTER")
    claim.released_at = NOON
    becomes(claim, "released", "")
    assert Alert.objects.get().over_at is not None


def test_a_turn_rings_for_what_it_found_and_not_for_what_was_before(claim: Claim) -> None:
    def turn(state: str, code: str) -> list[str]:
        row = Claim.objects.get(pk=claim.pk)
        Claim.objects.filter(pk=claim.pk).update(lease="me")
        reconcile._record(row, NOON, "me", {"state": state, "code": code})
        return list(Alert.objects.filter(over_at=None).values_list("code", flat=True))

    assert turn("pending", "TEMPLATE_MISSING") == ["TEMPLATE_MISSING"]
    assert turn("in use", "") == []
    Claim.objects.filter(pk=claim.pk).update(state="pending", code="TEMPLATE_MISSING")
    stale = Claim.objects.get(pk=claim.pk)
    assert turn("in use", "") == []
    reconcile._record(stale, NOON, "somebody whose lease is over", {"state": "pending"})
    assert not Alert.objects.filter(over_at=None), "a turn that lost its lease says nothing"
