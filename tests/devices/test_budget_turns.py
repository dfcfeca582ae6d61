"""What an ask took is given back when the real cluster has nothing of it, and not before."""

from __future__ import annotations

import time
from datetime import timedelta

import pytest

from devices.asks import reconcile
from devices.asks.claims import release_claim
from devices.cluster.gateway import Gateway, Ref
from devices.dra.lifecycle import State
from devices.models import Claim
from devices.tenancy import places
from tenants.access import Access
from tenants.models import BudgetLine
from tests.factories import GPU_CONTENT, NOON, make_access, make_claim, make_version

pytestmark = [pytest.mark.cluster, pytest.mark.django_db(transaction=True)]
SHARED = {**GPU_CONTENT, "shared": True}
HOLD = "example.com/hold"


@pytest.fixture
def access(place: str) -> Access:
    """A tenant with two devices at most, whose namespace is this test's alone."""
    return make_access(namespaces=(place,), limits={"gpu": 2})


def turned(claim: Claim, gateway: Gateway, times: int = 1) -> Claim:
    for _ in range(times):
        reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
    claim.refresh_from_db()
    return claim


def held() -> int:
    return BudgetLine.objects.filter(given_back_at=None, measure="devices").count()


def test_it_counts_until_the_cluster_has_confirmed_that_it_is_gone(
    gateway: Gateway, access: Access
) -> None:
    claim = make_claim(access, make_version(content=SHARED))
    turned(claim, gateway)
    ref = Ref("ResourceClaim", claim.object_name, claim.namespace.name)
    path = "/metadata/finalizers"
    gateway.patch(ref, [{"op": "add", "path": path, "value": [HOLD]}])
    release_claim(access=access, public_id=claim.public_id, request_id="request-2", now=NOON)
    assert held() == 1, "asking for its release gives nothing back"
    assert turned(claim, gateway, times=2).state == State.RELEASING
    assert held() == 1, "nor does a deletion that is only begun"
    gateway.patch(ref, [{"op": "remove", "path": path}])
    assert turned(claim, gateway).state == State.RELEASED
    assert held() == 0


def test_what_the_cluster_never_took_counts_no_more(gateway: Gateway, access: Access) -> None:
    broken = {
        "shared": True,
        "requests": [
            {"name": "gpu", "device_class": "gpu", "words": "GPU", "selectors": ["no(such)"]}
        ],
    }
    claim = turned(make_claim(access, make_version(content=broken)), gateway)
    assert (claim.state, held()) == (State.FAILED, 0)


def test_what_somebody_deleted_in_the_cluster_counts_no_more(
    gateway: Gateway, access: Access
) -> None:
    claim = turned(make_claim(access, make_version(content=SHARED)), gateway)
    gateway.delete(Ref("ResourceClaim", claim.object_name, claim.namespace.name))
    assert (turned(claim, gateway).code, held()) == ("DELETED_OUTSIDE", 0)


def test_an_ask_that_a_quota_keeps_back_is_counted_and_goes_when_it_may(
    gateway: Gateway, access: Access
) -> None:
    """The quota of a namespace follows the budget by seconds; that must lose nobody's ask."""
    claim = make_claim(access, make_version(content=SHARED))
    places.place_ready(claim.namespace, gateway=gateway, now=NOON)
    quota = Ref("ResourceQuota", "late", claim.namespace.name)
    gateway.apply(
        {
            "apiVersion": "v1",
            "kind": "ResourceQuota",
            "metadata": {"name": "late", "namespace": claim.namespace.name},
            "spec": {"hard": {"gpu.deviceclass.resource.k8s.io/devices": "0"}},
        },
        manager="test",
    )
    assert (turned(claim, gateway).code, held()) == ("QUOTA_EXCEEDED", 1)
    gateway.delete(quota)
    end = time.monotonic() + 15
    now = NOON
    while turned_at(claim, gateway, now).state == State.HELD and time.monotonic() < end:
        now += timedelta(minutes=1)
        time.sleep(0.2)
    assert (claim.state, held()) == (State.APPLIED, 1)


def turned_at(claim: Claim, gateway: Gateway, now: object) -> Claim:
    reconcile.turn(claim.public_id, gateway=gateway, now=now)  # type: ignore[arg-type]
    claim.refresh_from_db()
    return claim
