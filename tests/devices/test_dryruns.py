"""Dry runs by the real API server: what it takes, what it refuses in its words, and silence."""

from __future__ import annotations

import threading
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from devices.authoring import dryruns
from devices.authoring.serveranswers import await_answer
from devices.cluster import connect
from devices.cluster.gateway import Gateway, Ref
from devices.models import DryRun
from playground.plane.controlplane import ControlPlane
from tests.deploy.ground import rights
from tests.factories import NOON

pytestmark = pytest.mark.django_db(transaction=True)
BO = uuid4()


def claim_template(namespace: str, expression: str = "true", **exactly: Any) -> dict[str, Any]:
    request = {
        "deviceClassName": "gpu.example.com",
        "allocationMode": "ExactCount",
        "count": 1,
        "selectors": [{"cel": {"expression": expression}}],
        **exactly,
    }
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "dry-run-gpu", "namespace": namespace},
        "spec": {"spec": {"devices": {"requests": [{"name": "gpu", "exactly": request}]}}},
    }


def asked(*objects: dict[str, Any], tenant: str = "") -> DryRun:
    return dryruns.ask(
        objects, about="a test", person=BO, request_id="request-d", now=NOON, tenant=tenant
    )


@pytest.fixture
def worker(plane_137: ControlPlane, gateway: Gateway, place: str) -> Gateway:
    """The worker with its own rights, and a namespace to look at."""
    for obj in rights():
        gateway.apply(obj, manager="berth-playground", force=True)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}}
    gateway.apply(namespace, manager="test")
    return connect(plane_137.service_account_kubeconfig("berth-system", "berth-worker"))


@pytest.mark.cluster
def test_what_the_server_takes_is_not_kept(worker: Gateway, gateway: Gateway, place: str) -> None:
    row = asked(claim_template(place))
    assert dryruns.answer(row.public_id, gateway=worker, now=NOON)
    assert not dryruns.answer(row.public_id, gateway=worker, now=NOON), "the first answer stays"
    row.refresh_from_db()
    assert (row.accepted, row.code, row.answered_at) == (True, "ACCEPTED", NOON)
    assert gateway.get(Ref("ResourceClaimTemplate", "dry-run-gpu", place)) is None


@pytest.mark.cluster
def test_what_it_refuses_is_said_in_its_own_words(worker: Gateway, place: str) -> None:
    row = asked(claim_template(place), claim_template(place, 'device.attributes["a" ==='))
    dryruns.answer(row.public_id, gateway=worker, now=NOON)
    row.refresh_from_db()
    assert (row.accepted, row.code) == (False, "REFUSED_BY_SERVER")
    assert row.refused == f"ResourceClaimTemplate {place}/dry-run-gpu"
    assert "Syntax error" in row.said


@pytest.mark.cluster
def test_a_place_that_is_not_there_is_a_refusal(worker: Gateway) -> None:
    row = asked(claim_template("no-such-place"))
    dryruns.answer(row.public_id, gateway=worker, now=NOON)
    row.refresh_from_db()
    assert (row.accepted, row.code) == (False, "REFUSED_BY_SERVER")
    assert "no-such-place" in row.said


def test_silence_is_no_answer(tmp_path: Any) -> None:
    row = asked(claim_template("anywhere"))
    nobody = connect(tmp_path / "no-such-kubeconfig")
    dryruns.answer(row.public_id, gateway=nobody, now=NOON)
    row.refresh_from_db()
    assert (row.accepted, row.code) == (None, "CLUSTER_UNREACHABLE")


def test_whoever_waits_gets_the_answer_as_soon_as_it_is_there() -> None:
    row = asked(claim_template("anywhere"))

    def later() -> None:
        DryRun.objects.filter(pk=row.pk).update(answered_at=NOON, accepted=True)
        connection.close()

    came = threading.Timer(0.3, later)
    came.start()
    assert await_answer(row, seconds=30).accepted is True
    came.join()


def test_old_ones_are_forgotten() -> None:
    row = asked(claim_template("anywhere"))
    assert dryruns.forget(NOON + dryruns.KEPT_FOR) == 0
    assert dryruns.forget(NOON + dryruns.KEPT_FOR * 2) == 1
    assert not DryRun.objects.filter(pk=row.pk).exists()


def test_a_dry_run_is_its_askers_own() -> None:
    row = asked(claim_template("anywhere"))
    assert dryruns.find(row.public_id, BO) == row
    assert dryruns.find(row.public_id, uuid4()) is None
