"""What stands in the way of closing a tenant: finalizers of strangers, a namespace that is gone or
taken, the cluster away, workers that die.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from devices import cluster
from devices.asks import reconcile
from devices.cluster.gateway import Gateway, Ref, Unreachable
from devices.dra.closing import Phase
from devices.dra.lifecycle import State
from devices.dra.namespaces import QUOTA_NAME
from devices.dra.receipt import faults
from devices.models import Closure, Observed
from devices.tenancy import turns
from devices.tenancy.receipts import proved
from playground.plane.controlplane import ControlPlane
from portal.audit.models import AuditLine
from portal.outbox.models import OutboxLine
from tenants.access import Access, PlatformAccess
from tenants.models import Tenant
from tests.devices.closing.acts import Clock, applied, begin, berths_names, codes, turn
from tests.devices.cluster.objects import until
from tests.devices.dying import Died
from tests.factories import NOON

pytestmark = [pytest.mark.cluster, pytest.mark.django_db(transaction=True)]


def test_a_strangers_finalizer_is_named_and_waited_for(
    gateway: Gateway, access: Access, admin: PlatformAccess, place: str, clock: Clock
) -> None:
    turns.turn("tidewater", gateway=gateway, now=NOON)
    claim = applied(access, gateway)
    ref = Ref("ResourceClaim", claim.object_name, place)
    gateway.merge(ref, {"metadata": {"finalizers": ["example.com/keep"]}})
    begin(access, admin)
    for _ in range(2):
        closure = turn(gateway, clock.tick())
    assert closure.phase == Phase.RECLAIMING
    (blocker,) = closure.blockers
    assert (blocker["code"], blocker["subject"]) == ("FINALIZER", str(ref))
    assert "example.com/keep" in blocker["why"]
    gateway.merge(ref, {"metadata": {"finalizers": []}})
    for _ in range(2):
        closure = turn(gateway, clock.tick())
    assert closure.phase == Phase.CLOSED and proved(closure) == []


def test_a_finalizer_on_the_quota_is_named_too(
    gateway: Gateway, access: Access, admin: PlatformAccess, place: str, clock: Clock
) -> None:
    turns.turn("tidewater", gateway=gateway, now=NOON)
    ref = Ref("ResourceQuota", QUOTA_NAME, place)
    gateway.merge(ref, {"metadata": {"finalizers": ["example.com/keep"]}})
    begin(access, admin)
    closure = turn(gateway, clock.tick())
    assert closure.phase == Phase.LETTING_GO and codes(closure) == ["FINALIZER"]
    assert "example.com/keep" in closure.blockers[0]["why"]
    gateway.merge(ref, {"metadata": {"finalizers": []}})
    closure = turn(gateway, clock.tick())
    assert closure.phase == Phase.CLOSED
    assert [one["kind"] for one in closure.receipt["items"]] == ["ResourceQuota", "Namespace"]


def test_a_namespace_deleted_behind_its_back_is_not_made_again(
    gateway: Gateway, access: Access, admin: PlatformAccess, place: str, clock: Clock
) -> None:
    turns.turn("tidewater", gateway=gateway, now=NOON)
    claim = applied(access, gateway)
    begin(access, admin)
    gateway.delete(Ref("Namespace", place))
    until(lambda: gateway.get(Ref("Namespace", place)) is None, 30)
    for _ in range(3):
        closure = turn(gateway, clock.tick())
    assert closure.phase == Phase.CLOSED
    assert gateway.get(Ref("Namespace", place)) is None
    claim.refresh_from_db()
    assert claim.state == State.RELEASED
    found = {item["kind"]: item["how"] for item in closure.receipt["items"]}
    assert found == {"ResourceClaim": "deleted outside", "Namespace": "left as it was"}


def test_a_namespace_that_another_has_taken_over_is_left_alone(
    gateway: Gateway, access: Access, admin: PlatformAccess, place: str, clock: Clock
) -> None:
    turns.turn("tidewater", gateway=gateway, now=NOON)
    labels = {"berth.dev/tenant": "basalt"}
    gateway.merge(Ref("Namespace", place), {"metadata": {"labels": labels}})
    gateway.delete(Ref("ResourceQuota", QUOTA_NAME, place))
    begin(access, admin)
    closure = turn(gateway, clock.tick())
    assert closure.phase == Phase.CLOSED
    metadata = (gateway.get(Ref("Namespace", place)) or {})["metadata"]
    assert metadata["labels"]["berth.dev/tenant"] == "basalt"
    assert "berth.dev/device-classes" in metadata["annotations"]


def test_while_the_cluster_is_away_it_says_so_and_goes_on_afterwards(
    gateway: Gateway,
    access: Access,
    admin: PlatformAccess,
    plane_137: ControlPlane,
    tmp_path: Path,
    clock: Clock,
) -> None:
    turns.turn("tidewater", gateway=gateway, now=NOON)
    claim = applied(access, gateway)
    nowhere = tmp_path / "kubeconfig"
    text = plane_137.admin_kubeconfig.read_text()
    nowhere.write_text(text.replace(plane_137.url, "https://127.0.0.1:9"))
    begin(access, admin)
    with pytest.raises(Unreachable):
        turns.turn("tidewater", gateway=cluster.connect(nowhere), now=clock.tick())
    closure = Closure.objects.get()
    assert closure.phase == Phase.STOPPING and codes(closure) == ["CLUSTER_UNREACHABLE"]
    assert OutboxLine.objects.filter(key="tidewater").exists(), "the promise stands"
    for _ in range(2):
        closure = turn(gateway, clock.tick())
    assert closure.phase == Phase.CLOSED
    claim.refresh_from_db()
    assert claim.state == State.RELEASED


def test_what_others_made_stays_and_stands_on_the_receipt(
    gateway: Gateway, access: Access, admin: PlatformAccess, place: str, clock: Clock
) -> None:
    turns.turn("tidewater", gateway=gateway, now=NOON)
    spec = {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}
    obj = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "by-hand", "namespace": place},
        "spec": spec,
    }
    made = gateway.create(obj)
    Observed.objects.create(
        uid=made["metadata"]["uid"],
        kind="ResourceClaim",
        api_version="resource.k8s.io/v1",
        namespace=place,
        name="by-hand",
        resource_version="1",
        raw=json.dumps(obj).encode(),
        seen_at=NOON,
    )
    begin(access, admin)
    closure = turn(gateway, clock.tick())
    assert closure.phase == Phase.CLOSED
    assert gateway.get(Ref("ResourceClaim", "by-hand", place)) is not None
    left = {"kind": "ResourceClaim", "namespace": place, "name": "by-hand"}
    assert closure.receipt["left"] == [left]


@contextmanager
def dying_at(number: int) -> Iterator[None]:
    """The process dies before its statement of that number, and does none after it either."""
    done = 0

    def count(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        nonlocal done
        if sql.lstrip().split(" ", 1)[0] in {"SELECT", "INSERT", "UPDATE", "DELETE"}:
            done += 1
            if done >= number:
                raise Died
        return execute(sql, params, many, context)

    with connection.execute_wrapper(count), suppress(Died):
        yield


def test_whatever_statement_a_worker_dies_at_the_next_one_takes_it_up(
    gateway: Gateway, access: Access, admin: PlatformAccess, place: str, clock: Clock
) -> None:
    """Each turn dies one statement later than the one before, from the first to beyond the last."""
    turns.turn("tidewater", gateway=gateway, now=NOON)
    claims = [applied(access, gateway, name=name) for name in ("one", "two")]
    begin(access, admin)
    closure, number = Closure.objects.get(), 0
    while not closure.over:
        number += 1
        assert number < 400, "it never ends"
        with dying_at(number):
            turns.turn("tidewater", gateway=gateway, now=clock.tick())
        for claim in claims:
            reconcile.turn(claim.public_id, gateway=gateway, now=clock.now)
        phases = list(Phase)
        before, closure = closure, Closure.objects.select_related("tenant").get()
        assert phases.index(Phase(before.phase)) <= phases.index(Phase(closure.phase))
    assert closure.phase == Phase.CLOSED and closure.tenant.state == Tenant.State.CLOSED
    assert berths_names(gateway, place) == []
    assert gateway.get(Ref("ResourceQuota", QUOTA_NAME, place)) is None
    assert [gateway.get(Ref("ResourceClaim", one.object_name, place)) for one in claims] == [
        None,
        None,
    ]
    kinds = sorted(item["kind"] for item in closure.receipt["items"])
    assert kinds == ["Namespace", "ResourceClaim", "ResourceClaim", "ResourceQuota"]
    assert faults(closure.receipt) == [] and proved(closure) == []
    assert AuditLine.objects.filter(action="tenant.closed").count() == 1
    assert AuditLine.objects.filter(action="namespace.left").count() == 1
