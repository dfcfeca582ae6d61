"""Held asks: what keeps them back, the order in which they go on, and the page of the queue."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from devices.asks import line, reconcile
from devices.cluster.gateway import Gateway
from devices.dra.lifecycle import State
from devices.dra.snapshot import read
from devices.fleet.poolmarks import scan as look_at_pools
from devices.models import Claim, ClusterState, PoolMark, Sync
from portal.outbox.models import OutboxLine
from tenants.access import Access, tenant_for
from tenants.models import PlatformRole
from tests.devices.demofleet import mirror
from tests.devices.pages import client_of, text
from tests.factories import (
    GPU_CONTENT,
    NOON,
    make_access,
    make_claim,
    make_person,
    make_tenant,
    make_version,
)

pytestmark = pytest.mark.django_db(transaction=True)
Obj = dict[str, Any]
SENT = (State.APPLIED, "WAITING_FOR_POD")


def a_class() -> Obj:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu", "uid": "class-gpu"},
        "spec": {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example"'}}]},
    }


def a_slice(node: str = "n1", generation: int = 1, count: int = 1) -> Obj:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": f"s-{node}", "uid": f"s-{node}"},
        "spec": {
            "driver": "gpu.example",
            "nodeName": node,
            "pool": {"name": node, "generation": generation, "resourceSliceCount": count},
            "devices": [{"name": "gpu-0"}],
        },
    }


def turn(gateway: Gateway, *claims: Claim) -> list[tuple[str, str]]:
    """A turn of each; how they stand then."""
    for claim in claims:
        reconcile.turn(claim.public_id, gateway=gateway, now=NOON)
        claim.refresh_from_db()
    return [(claim.state, claim.code) for claim in claims]


def heard_at(moment: Any) -> None:
    Sync.objects.update(alive_at=moment, listed_at=moment)


@pytest.mark.cluster
def test_an_ask_waits_while_its_only_pool_is_half_there(gateway: Gateway, place: str) -> None:
    mirror([a_class(), a_slice(count=2)])
    claim = make_claim(make_access(namespaces=(place,)))
    assert turn(gateway, claim) == [(State.HELD, "POOL_INCOMPLETE")]
    assert "1 of 2 slices" in claim.why
    assert line.due(NOON) == []
    mirror([a_class(), a_slice(generation=2)], version="2")
    assert line.due(NOON) == [claim.public_id]
    assert turn(gateway, claim) == [SENT]


@pytest.mark.cluster
def test_an_ask_waits_while_nothing_is_heard_of_devices(gateway: Gateway, place: str) -> None:
    mirror([a_class(), a_slice()])
    heard_at(NOON - timedelta(minutes=10))
    claim = make_claim(make_access(namespaces=(place,)))
    assert turn(gateway, claim) == [(State.HELD, "STALE_INVENTORY")]
    heard_at(NOON)
    assert turn(gateway, claim) == [SENT]


@pytest.mark.cluster
def test_an_ask_waits_where_a_generation_went_back_and_goes_on_in_a_new_life(
    gateway: Gateway, place: str
) -> None:
    look_at_pools(read([a_slice(generation=7)]), NOON)
    assert look_at_pools(read([a_slice(generation=5)]), NOON) == 1
    mirror([a_class(), a_slice(generation=5)])
    claim = make_claim(make_access(namespaces=(place,)))
    assert turn(gateway, claim) == [(State.HELD, "GENERATION_WENT_BACK")]
    assert look_at_pools(read([]), NOON) == 0, "the kubelet wiped them"
    assert look_at_pools(read([a_slice(generation=1)]), NOON) == 0
    assert PoolMark.objects.get().generation == 1
    assert turn(gateway, claim) == [SENT]


@pytest.mark.cluster
def test_they_go_on_in_the_order_of_asking_across_tenants_and_call_the_next(
    gateway: Gateway, place: str
) -> None:
    mirror([a_class(), a_slice(count=2)])
    tide = make_access(namespaces=(place,))
    version = make_version(content=GPU_CONTENT)
    first, second, third = (
        make_claim(tide, version, name=name, namespace=where)
        for name, where in (("first", place), ("second", place), ("third", place))
    )
    waits = (State.HELD, "POOL_INCOMPLETE")
    assert turn(gateway, third, second, first) == [waits] * 3
    assert [one.position for one in line.places()] == [1, 2, 3]
    mirror([a_class(), a_slice(generation=2)], version="2")
    assert line.due(NOON) == [first.public_id, second.public_id, third.public_id]
    assert turn(gateway, third) == [waits] and "first" in third.why
    assert turn(gateway, first) == [SENT]
    assert line.next_after(first) == second.public_id
    assert turn(gateway, second, third) == [SENT, SENT]
    assert not OutboxLine.objects.filter(key__in=[first.public_id, third.public_id]).exists()


def waiting(access: Access, code: str, **more: Any) -> Claim:
    name = more.pop("name", "first")
    claim = make_claim(access, make_version(slug=name, content=GPU_CONTENT), name=name)
    Claim.objects.filter(pk=claim.pk).update(state=State.HELD, code=code, **more)
    claim.refresh_from_db()
    return claim


@pytest.mark.parametrize(
    ("looked", "blocks"),
    [
        pytest.param(NOON - timedelta(minutes=9), True, id="nobody asked the cluster since"),
        pytest.param(NOON, False, id="asked since, so it waits for a reason of its own"),
    ],
)
def test_who_goes_first_when_the_cluster_is_back(looked: Any, blocks: bool) -> None:
    since = NOON - timedelta(minutes=1)
    ClusterState.objects.create(reachable=True, since=since)
    access = make_access()
    first = waiting(access, "CLUSTER_UNREACHABLE", looked_at=looked)
    later = make_claim(access, first.version, name="later")
    found = line.earlier(later, line.ground(NOON))
    assert (found == first) is blocks
    assert line.due(NOON) == [first.public_id]


def pages(client: Any, paths: Iterable[str]) -> list[str]:
    return [text(client.get(path)) for path in paths]


def test_a_tenant_sees_its_own_with_its_place_and_the_platform_sees_all() -> None:
    reef_tenant = make_tenant("reef", namespaces=("reef-train",))
    reef = tenant_for(make_person("coral", reef_tenant), "reef")
    tide = make_access()
    waiting(reef, "STALE_INVENTORY", name="secret-plan", why="Node n1 is not heard.")
    waiting(tide, "STALE_INVENTORY", name="mine", why="Node n1 is not heard.")
    client = client_of(tide.user)
    (page,) = pages(client, ["/t/tidewater/held/"])
    assert "mine" in page and "secret-plan" not in page and "Platform team" in page
    found = client.get("/api/v1/tenants/tidewater/held").json()
    assert [(one["name"], one["position"], one["code"]) for one in found] == [
        ("mine", 2, "STALE_INVENTORY")
    ]
    operator = make_person("olga")
    PlatformRole.objects.create(user=operator, role="operator")
    (whole,) = pages(client_of(operator), ["/platform/held/"])
    assert "mine" in whole and "secret-plan" in whole


def test_the_queue_costs_the_same_however_long_it_is() -> None:
    access = make_access()
    client = client_of(access.user)
    assert "Nothing waits" in text(client.get("/t/tidewater/held/"))
    waiting(access, "FROZEN", name="one")
    with CaptureQueriesContext(connection) as few:
        client.get("/t/tidewater/held/")
    version = make_version(slug="more", content=GPU_CONTENT)
    for number in range(8):
        claim = make_claim(access, version, name=f"more-{number}")
        Claim.objects.filter(pk=claim.pk).update(state=State.HELD, code="FROZEN")
    with CaptureQueriesContext(connection) as many:
        client.get("/t/tidewater/held/")
    assert len(many) == len(few)
