"""Berth's own turns with its own rights, the policies in effect: nothing it needs is denied it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connections
from django.utils import timezone

from devices.asks import reconcile
from devices.asks.claims import release_claim
from devices.cluster.gateway import ClusterError, Ref
from devices.dra.lifecycle import State
from devices.models import Claim, Closure, Freeze, Observed, Sync
from devices.tenancy import closures, turns
from tenants.access import Access, PlatformAccess, tenant_for
from tests.deploy.acts import Attempt, denied
from tests.deploy.ground import DRIVER, EXPLICIT, Ground, until
from tests.deploy.objects import device_class, pod
from tests.devices.following import following
from tests.factories import NOON, make_claim, make_person, make_tenant, make_version

pytestmark = pytest.mark.django_db(transaction=True)

SHARED_BY_TWO = {
    "requests": [{"name": "gpu", "device_class": "bypass-gpu", "words": "GPU"}],
    "shared": True,
    "pods": 2,
}
#: Pods that a tenant starts at the same time on a claim with two places.
AT_ONCE = 24


@pytest.fixture
def place(ground: Ground) -> Iterator[str]:
    """A namespace that Berth makes in the test, and that is the test's alone."""
    name = f"bypass-turns-{uuid4().hex[:8]}"
    yield name
    ground.admin.delete(Ref("Namespace", name))


@pytest.fixture
def access(place: str) -> Access:
    """A member of the tenant *tide*."""
    tenant = make_tenant("tide", namespaces=(place,), limits={"bypass-gpu": 8})
    return tenant_for(make_person("tess", tenant), "tide")


@pytest.fixture(autouse=True)
def classes() -> None:
    """The mirror has the ground's classes."""
    Sync.objects.create(kind="DeviceClass", listed_at=NOON, alive_at=NOON)
    for name, extended in EXPLICIT.items():
        Observed.objects.create(
            uid=name,
            kind="DeviceClass",
            api_version="resource.k8s.io/v1",
            name=name,
            resource_version="1",
            raw=json.dumps(device_class(name, driver=DRIVER, extended=extended)).encode(),
            seen_at=NOON,
        )


def turn(ground: Ground) -> None:
    assert turns.turn("tide", gateway=ground.worker, now=timezone.now())


def annotation(ground: Ground, place: str, key: str) -> str:
    found = ground.admin.get(Ref("Namespace", place)) or {"metadata": {}}
    return str(found["metadata"].get("annotations", {}).get(f"berth.dev/{key}", ""))


def test_the_worker_has_the_rights_for_every_turn(
    ground: Ground, access: Access, place: str
) -> None:
    """A namespace, its quota, the parameter, a claim and its end: with nothing but its own role."""
    turn(ground)
    assert annotation(ground, place, "device-classes") == "bypass-gpu"
    assert ground.admin.get(Ref("ResourceQuota", "berth", place)) is not None
    assert turns.turn_policy(gateway=ground.worker, now=NOON)
    claim = make_claim(access, make_version(content=SHARED_BY_TWO))
    assert reconcile.turn(claim.public_id, gateway=ground.worker, now=NOON)
    assert ground.admin.get(Ref("ResourceClaim", claim.object_name, place)) is not None
    release_claim(access=access, public_id=claim.public_id, request_id="request-2", now=NOON)
    for _ in range(2):
        reconcile.turn(claim.public_id, gateway=ground.worker, now=NOON)
    claim.refresh_from_db()
    assert claim.state == State.RELEASED


def test_a_freeze_closes_the_cluster_and_its_end_opens_it(
    ground: Ground, access: Access, place: str
) -> None:
    turn(ground)
    asking = Attempt("a claim past the portal", past_the_portal(ground, place))
    until(lambda: denied(ground, asking) == "")
    made = Freeze.objects.create(
        scope="all",
        reason="r",
        frozen_by=access.user.person,
        frozen_at=NOON,
        request_id="request-f",
        until=timezone.now() + timedelta(hours=1),
    )
    turn(ground)
    until(lambda: "Berth FROZEN" in denied(ground, asking))
    Freeze.objects.filter(pk=made.pk).update(ended_at=timezone.now(), end="lifted")
    turn(ground)
    until(lambda: denied(ground, asking) == "")


def past_the_portal(ground: Ground, place: str) -> Callable[[Ground], object]:
    """What an editor of the namespace makes with kubectl."""
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "bypass-gpu"}}]}}
    obj = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "past", "namespace": place},
        "spec": spec,
    }
    return lambda _: ground.admin.create(obj, dry_run=True)


def test_a_shared_claim_closes_when_it_is_full_and_opens_again(
    ground: Ground, access: Access, place: str
) -> None:
    """How far a race can overshoot: Pods pass until the news of the last free place has gone round
    (mirror, turn, the API server's own copy of the namespace); nobody passes afterwards.
    """
    claim = make_claim(access, make_version(content=SHARED_BY_TWO))
    with following(ground.admin):
        until(lambda: Sync.objects.filter(kind="Pod").exclude(listed_at=None).exists())
        turn(ground)
        reconcile.turn(claim.public_id, gateway=ground.worker, now=NOON)
        started = start_pods(ground, claim)
        assert len(started) >= 2
        until(lambda: turned(ground, place, "full-claims", claim.object_name), 20)
        until(lambda: "Berth CLAIM_FULL" in start_one(ground, claim, "late"), 5)
        passed = pods_of(ground, place)
        for number in range(8):
            assert "Berth CLAIM_FULL" in start_one(ground, claim, f"later-{number}")
        assert pods_of(ground, place) == passed
        for name in passed:
            ground.admin.delete(Ref("Pod", name, place), grace_seconds=0)
        until(lambda: turned(ground, place, "full-claims", ""), 20)
        until(lambda: start_one(ground, claim, "again") == "", 5)


def test_a_tenant_that_is_being_closed_is_closed_for_kubectl_too(
    ground: Ground, access: Access, place: str
) -> None:
    """The message says so, for new claims and for Pods on a claim that is there; and Berth's own
    rights are enough for all of it, to the receipt.
    """
    turn(ground)
    claim = make_claim(access, make_version(content=SHARED_BY_TWO))
    assert reconcile.turn(claim.public_id, gateway=ground.worker, now=NOON)
    asking = Attempt("a claim past the portal", past_the_portal(ground, place))
    until(lambda: denied(ground, asking) == "")
    assert start_one(ground, claim, "before") == ""
    admin = PlatformAccess(make_person("ada"), frozenset({"admin"}))
    closures.begin(
        access=admin,
        tenant=access.tenant,
        reason="Over",
        typed="tide",
        deadline=None,
        request_id="request-c",
        now=timezone.now(),
    )
    turn(ground)
    until(lambda: "Berth TENANT_CLOSING: tenant tide is being closed" in denied(ground, asking))
    assert "Berth TENANT_CLOSING" in start_one(ground, claim, "late")
    assert Closure.objects.get().blockers[0]["subject"] == f"Pod {place}/before"
    ground.admin.delete(Ref("Pod", "before", place), grace_seconds=0)
    for _ in range(3):
        turn(ground)
        reconcile.turn(claim.public_id, gateway=ground.worker, now=timezone.now())
    assert Closure.objects.get().phase == "closed"
    assert annotation(ground, place, "device-classes") == ""
    until(lambda: denied(ground, asking) == "")


def turned(ground: Ground, place: str, key: str, value: str) -> bool:
    """A turn, and whether the namespace says so now."""
    turn(ground)
    return annotation(ground, place, key) == value


def start_pods(ground: Ground, claim: Claim) -> list[str]:
    """Names of the Pods that passed, of many that are started at the same moment."""
    passed: list[str] = []
    ready = threading.Barrier(AT_ONCE)

    def start(number: int) -> None:
        ready.wait()
        if start_one(ground, claim, f"race-{number}") == "":
            passed.append(f"race-{number}")
        connections.close_all()

    threads = [threading.Thread(target=start, args=(number,)) for number in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return passed


def start_one(ground: Ground, claim: Claim, name: str) -> str:
    """What the API server says against one Pod more; empty where it is there now."""
    obj = pod(name, claims={"c": claim.object_name}, nodeSelector={"example.com/no-such": "node"})
    obj["metadata"]["namespace"] = claim.namespace.name
    try:
        ground.admin.create(obj)
    except ClusterError as error:
        return error.message
    return ""


def pods_of(ground: Ground, place: str) -> list[str]:
    found = ground.admin.list("Pod", namespace=place).items
    return sorted(one["metadata"]["name"] for one in found)


def test_a_namespace_of_berths_can_still_be_deleted(
    ground: Ground, access: Access, place: str
) -> None:
    """Its quota is guarded against people, not against the end of the namespace."""
    turn(ground)
    ground.admin.delete(Ref("Namespace", place))
    until(lambda: ground.admin.get(Ref("Namespace", place)) is None, 30)
