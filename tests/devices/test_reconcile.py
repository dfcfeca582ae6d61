"""Turns against the real API server: one set of objects, whatever comes in between."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection

from devices import cluster
from devices.asks import reconcile, sent
from devices.asks.claims import release_claim
from devices.cluster.gateway import ClusterError, Forbidden, Gateway, Ref, Unreachable
from devices.dra.lifecycle import State
from devices.dra.names import CLAIM_LABEL, REQUEST_ID_ANNOTATION, TENANT_LABEL
from devices.dra.objects import claim_objects
from devices.models import Claim, ClaimEvent
from devices.models.claim import LEASE
from devices.tenancy import places
from playground.plane.controlplane import ControlPlane
from playground.plane.proxy import Fault, Proxy
from portal.outbox.models import OutboxLine
from tenants.access import Access
from tests.factories import GPU_CONTENT, NOON, make_access, make_claim, make_version

pytestmark = [pytest.mark.cluster, pytest.mark.django_db(transaction=True)]

KINDS = ("ResourceClaim", "ResourceClaimTemplate")
SHARED = {**GPU_CONTENT, "shared": True}


@pytest.fixture
def access(place: str) -> Access:
    """A tenant whose namespace is this test's alone."""
    return make_access(namespaces=(place,))


def ask(access: Access, content: dict[str, object] = SHARED) -> Claim:
    return make_claim(access, make_version(content=content))


def objects(gateway: Gateway, claim: Claim) -> list[dict[str, object]]:
    label = f"{CLAIM_LABEL}={claim.public_id}"
    return [
        {**obj, "kind": kind} for kind in KINDS for obj in gateway.list(kind, labels=label).items
    ]


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        pytest.param(SHARED, "ResourceClaim", id="a shared ask is one claim"),
        pytest.param(GPU_CONTENT, "ResourceClaimTemplate", id="an ask for each Pod is a template"),
    ],
)
def test_a_turn_makes_one_object_and_the_next_one_nothing(
    gateway: Gateway, access: Access, content: dict[str, object], kind: str
) -> None:
    claim = ask(access, content)
    for _ in range(3):
        assert reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
    (made,) = objects(gateway, claim)
    metadata = made["metadata"]
    assert isinstance(metadata, dict)
    assert (made["kind"], metadata["name"]) == (kind, claim.object_name)
    assert metadata["labels"][TENANT_LABEL] == access.tenant.slug
    assert metadata["annotations"][REQUEST_ID_ANNOTATION] == claim.request_id
    claim.refresh_from_db()
    assert (claim.state, claim.code) == (State.APPLIED, "WAITING_FOR_POD")
    assert claim.object_uid == metadata["uid"]
    assert not OutboxLine.objects.exists()
    assert [event.state for event in ClaimEvent.objects.all()] == ["applied", "requested"]


def test_two_workers_at_once_make_one_object(gateway: Gateway, access: Access) -> None:
    claim = ask(access)
    done: list[bool] = []

    def work() -> None:
        try:
            done.append(reconcile.turn(claim.public_id, gateway=gateway, now=NOON))
        finally:
            connection.close()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 6 and any(done)
    assert len(objects(gateway, claim)) == 1


def test_a_turn_that_died_after_making_it_is_taken_up(gateway: Gateway, access: Access) -> None:
    claim = ask(access)
    claim.take_lease("dead", NOON)
    places.place_ready(claim.namespace, gateway=gateway, now=NOON)
    (obj,) = claim_objects(claim.wish())
    uid = gateway.apply(obj, manager="berth-claim")["metadata"]["uid"]
    assert not reconcile.turn(claim.public_id, gateway=gateway, now=NOON), "the lease still holds"
    assert reconcile.turn(claim.public_id, gateway=gateway, now=NOON + LEASE + timedelta(seconds=1))
    (found,) = objects(gateway, claim)
    assert found["metadata"]["uid"] == uid  # type: ignore[index]


def test_releasing_takes_it_out_of_the_cluster(gateway: Gateway, access: Access) -> None:
    claim = ask(access)
    reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
    release_claim(access=access, public_id=claim.public_id, request_id="request-2", now=NOON)
    for _ in range(2):
        reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
    claim.refresh_from_db()
    assert (claim.state, objects(gateway, claim)) == (State.RELEASED, [])


def test_an_ask_released_before_it_was_sent_is_never_made(gateway: Gateway, access: Access) -> None:
    claim = ask(access)
    release_claim(access=access, public_id=claim.public_id, request_id="request-2", now=NOON)
    reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
    claim.refresh_from_db()
    assert (claim.state, objects(gateway, claim)) == (State.RELEASED, [])


def test_what_others_deleted_is_not_made_again(gateway: Gateway, access: Access) -> None:
    claim = ask(access)
    reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
    gateway.delete(Ref("ResourceClaim", claim.object_name, claim.namespace.name))
    for _ in range(2):
        reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
    claim.refresh_from_db()
    assert (claim.state, claim.code) == (State.RELEASED, "DELETED_OUTSIDE")
    assert objects(gateway, claim) == []


def test_what_came_and_went_before_anybody_recorded_it_is_not_made_again(
    gateway: Gateway, access: Access
) -> None:
    claim = ask(access)
    places.place_ready(claim.namespace, gateway=gateway, now=NOON)
    assert claim.take_lease("dead", NOON) and sent.note(claim, gateway, "dead")
    (obj,) = claim_objects(claim.wish())
    uid = gateway.apply(obj, manager="berth-claim")["metadata"]["uid"]
    gateway.delete(Ref("ResourceClaim", claim.object_name, claim.namespace.name))
    reconcile.turn(claim.public_id, gateway=gateway, now=NOON + LEASE + timedelta(seconds=1))
    claim.refresh_from_db()
    found = (claim.state, claim.code, claim.object_uid, objects(gateway, claim))
    assert found == (State.RELEASED, "DELETED_OUTSIDE", uid, [])
    assert not sent.note(claim, gateway, "dead"), "whose lease is over makes nothing"


def test_the_late_write_of_a_dead_worker_is_cleaned_up(gateway: Gateway, access: Access) -> None:
    claim = ask(access)
    release_claim(access=access, public_id=claim.public_id, request_id="request-2", now=NOON)
    reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
    places.place_ready(claim.namespace, gateway=gateway, now=NOON)
    (obj,) = claim_objects(claim.wish())
    gateway.apply(obj, manager="berth-claim")
    reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
    assert objects(gateway, claim) == []


def test_what_the_api_server_refuses_is_failed_with_its_words(
    gateway: Gateway, access: Access
) -> None:
    broken = {
        "shared": True,
        "requests": [
            {"name": "gpu", "device_class": "gpu", "words": "GPU", "selectors": ["no(such)"]}
        ],
    }
    claim = ask(access, broken)
    reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
    claim.refresh_from_db()
    assert (claim.state, claim.code) == (State.FAILED, "REFUSED_BY_CLUSTER")
    assert "undeclared reference" in claim.why
    assert not OutboxLine.objects.exists(), "asking again would change nothing"


def test_quota_is_named(gateway: Gateway, access: Access) -> None:
    claim = ask(access)
    places.place_ready(claim.namespace, gateway=gateway, now=NOON)
    key = "gpu.deviceclass.resource.k8s.io/devices"
    gateway.apply(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "gpus", "namespace": claim.namespace.name},
            "spec": {"hard": {key: "0"}},
        },
        manager="test",
    )
    reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
    claim.refresh_from_db()
    assert (claim.state, claim.code) == (State.HELD, "QUOTA_EXCEEDED")
    assert key in claim.why


def test_a_cluster_that_does_not_answer_holds_the_ask_and_it_resumes(
    gateway: Gateway, access: Access, plane_137: ControlPlane, tmp_path: Path
) -> None:
    nowhere = tmp_path / "kubeconfig"
    text = plane_137.admin_kubeconfig.read_text()
    nowhere.write_text(text.replace(plane_137.url, "https://127.0.0.1:9"))
    claim = ask(access)
    with pytest.raises(Unreachable):
        reconcile.turn(claim.public_id, gateway=cluster.connect(nowhere), now=NOON)
    claim.refresh_from_db()
    assert (claim.state, claim.code) == (State.HELD, "CLUSTER_UNREACHABLE")
    assert OutboxLine.objects.exists(), "the promise stands"
    reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
    claim.refresh_from_db()
    assert (claim.state, len(objects(gateway, claim))) == (State.APPLIED, 1)


def test_missing_rights_hold_the_ask_and_it_resumes_when_they_are_given(
    gateway: Gateway, access: Access, plane_137: ControlPlane
) -> None:
    nobody = cluster.connect(plane_137.kubeconfig("nobody-in-particular"))
    claim = ask(access)
    with pytest.raises(Forbidden):
        reconcile.turn(claim.public_id, gateway=nobody, now=NOON)
    claim.refresh_from_db()
    assert (claim.state, claim.code) == (State.HELD, "RIGHTS_MISSING")
    assert "cannot get resource" in claim.why
    assert OutboxLine.objects.exists(), "the promise stands"
    reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
    claim.refresh_from_db()
    assert claim.state == State.APPLIED


def test_the_next_turn_comes_when_a_dead_ones_lease_is_over(
    gateway: Gateway, access: Access
) -> None:
    claim = ask(access)
    OutboxLine.objects.update(due_at=NOON + timedelta(minutes=5))
    claim.take_lease("dead", NOON)
    assert not reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
    assert OutboxLine.objects.get().due_at == NOON + LEASE


def test_taking_the_label_off_does_not_take_the_claim_away(
    gateway: Gateway, access: Access
) -> None:
    claim = ask(access)
    reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
    ref = Ref("ResourceClaim", claim.object_name, claim.namespace.name)
    gateway.merge(ref, {"metadata": {"labels": {CLAIM_LABEL: None}}})
    reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
    claim.refresh_from_db()
    assert claim.state == State.APPLIED
    release_claim(access=access, public_id=claim.public_id, request_id="request-2", now=NOON)
    reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
    claim.refresh_from_db()
    assert (claim.state, gateway.get(ref)) == (State.RELEASED, None)


def test_a_copy_that_somebody_made_is_not_ours_to_delete(gateway: Gateway, access: Access) -> None:
    claim = ask(access)
    reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
    (copy,) = claim_objects(claim.wish())
    copy["metadata"]["name"] = "a-copy"
    gateway.create(copy)
    release_claim(access=access, public_id=claim.public_id, request_id="request-2", now=NOON)
    reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
    assert gateway.get(Ref("ResourceClaim", "a-copy", claim.namespace.name))


def test_a_release_during_a_turn_wins(gateway: Gateway, access: Access) -> None:
    claim = ask(access)
    claim.take_lease("slow", NOON)
    release_claim(access=access, public_id=claim.public_id, request_id="request-2", now=NOON)
    seen = {"state": State.APPLIED, "code": "WAITING_FOR_POD", "why": "late"}
    assert not claim.record(NOON, holder="slow", **seen)
    claim.drop_lease("slow")
    claim.refresh_from_db()
    assert (claim.state, claim.code) == (State.RELEASING, "RELEASING")
    reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
    claim.refresh_from_db()
    assert claim.state == State.RELEASED


@pytest.mark.parametrize("answer", ["500", "429", "html", "html-404", "html-502"])
def test_nonsense_in_the_api_servers_place_fails_no_claim(
    gateway: Gateway, access: Access, plane_137: ControlPlane, answer: str
) -> None:
    claim = ask(access)
    reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
    with in_front_of(plane_137, answer) as broken, pytest.raises(ClusterError):
        reconcile.turn(claim.public_id, gateway=broken, now=NOON)
    claim.refresh_from_db()
    assert claim.state == State.APPLIED
    assert len(objects(gateway, claim)) == 1


@contextmanager
def in_front_of(plane: ControlPlane, answer: str) -> Iterator[Gateway]:
    """A gateway that reaches a proxy which answers in the API server's place."""
    target = int(plane.url.rpartition(":")[2])
    with Proxy(target, plane.authority.server("proxy")) as proxy:
        proxy.set(Fault(answer=answer))
        yield cluster.connect(plane.kubeconfig("admin", ["system:masters"], server=proxy.url))
