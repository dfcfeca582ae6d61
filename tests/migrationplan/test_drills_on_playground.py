"""Every drill on a real control plane: the playground breaks and mends, the product only watches.

What in production is a person's hand is here a fault of the playground, or the product's own verb.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from devices import cluster
from devices.cluster.gateway import Gateway, Ref
from devices.dra.names import SYSTEM_NAMESPACE
from devices.fleet import leakboard
from devices.fleet.nodepools import standings
from devices.fleet.ownershipbook import scan
from devices.forecasts.picture import Picture
from devices.forecasts.warm import fresh
from devices.models import NodePool
from migrationplan.drills import running
from migrationplan.drills.words import Kind
from migrationplan.models import Drill, Evidence
from migrationplan.moving import moves, reconcile
from migrationplan.steps import Direction
from playground.faults.table import broken
from playground.fleet.fleet import Fleet
from playground.plane.controlplane import ControlPlane
from portal.alerts.models import Alert
from tenants.access import PlatformAccess
from tests.deploy.ground import rights
from tests.devices.following import following, until
from tests.factories import NOON, make_person
from tests.playground.conftest import a_pod
from tests.playground.conversion.test_conversion import start_fleet
from tests.playground.realnode import RealGround

pytestmark = [pytest.mark.cluster, pytest.mark.django_db(transaction=True)]

RESOURCE, DRIVER = "helios.example/gpu", "gpu.helios.example"
SCALE = 0.05
SPACE = "drilled"


class Ground:
    """The product with a watch process, and the playground's hands."""

    def __init__(self, fleet: Fleet, worker: Gateway, pool: NodePool, by: PlatformAccess) -> None:
        self.fleet, self.admin, self.worker = fleet, fleet.admin, worker
        self.pool, self.by, self.node = pool, by, next(iter(fleet.kubelets))

    def picture(self) -> Picture:
        """As the beat's sweeps would have it: book and leak board are up to date."""
        seen = until(fresh, what="the mirror")
        scan(seen.now, timezone.now())
        leakboard.scan(seen.now, timezone.now())
        return seen

    def standing(self) -> Any:
        """The node as its pool has it; None while the mirror is being filled."""
        found = standings(self.pool, self.picture(), timezone.now())
        return next((one for one in found if one.node.name == self.node), None)

    def by_dra(self) -> bool:
        found = self.standing()
        return found is not None and found.owner == "dra"

    def begin(self, kind: Kind) -> Drill:
        until(self.by_dra, seconds=90, what="the driver's devices")
        return running.begin(
            self.pool, kind, self.standing(), self.picture(), access=self.by, request_id="d",
            now=timezone.now(),
        )  # fmt: skip

    def until(self, drill: Drill, done: Callable[[Drill], bool], seconds: float = 150) -> Drill:
        """Turns as the sweep calls them, until it is so."""
        end = time.monotonic() + seconds
        while True:
            self.picture()
            running.turn(drill.public_id, connect=lambda: self.worker, now=timezone.now())
            drill.refresh_from_db()
            if done(drill):
                return drill
            said = [f"{one.step}: {one.text}" for one in drill.marks.all()]
            assert not drill.ended_at, f"{drill.result}: {drill.why} {drill.evidence}\n{said}"
            assert time.monotonic() < end, f"{drill.position}: {drill.why}\n{said}"
            time.sleep(0.2)

    def at(self, drill: Drill, position: int) -> Drill:
        return self.until(drill, lambda one: one.position >= position)

    def passes(self, drill: Drill) -> None:
        self.until(drill, lambda one: one.ended_at is not None)
        assert drill.result == "passed", (drill.result, drill.why, drill.evidence)
        assert running.passed_by_pool()[self.pool.pk, drill.kind] == drill.ended_at

    @contextlib.contextmanager
    def work(self) -> Iterator[None]:
        """A Pod with a device runs on the node for as long as the block lasts."""
        pod = a_pod("work", node=self.node, limits={RESOURCE: "1"})
        pod["metadata"]["namespace"] = SPACE
        self.admin.create(pod)
        ref = Ref("Pod", "work", SPACE)

        def runs() -> bool:
            found = self.admin.get(ref) or {}
            return bool(found.get("status", {}).get("phase") == "Running")

        try:
            until(runs, seconds=60, what="the Pod")
            yield
        finally:
            self.admin.delete(ref, grace_seconds=1)
            until(lambda: self.admin.get(ref) is None, what="its end")


@pytest.fixture(scope="module")
def fleet(real_plane: ControlPlane) -> Iterator[Fleet]:
    """Two simulated nodes on DRA, with the rights of `deploy/`."""
    with ExitStack() as stack:
        made = start_fleet(stack, real_plane, 2, SCALE)
        for obj in rights():
            made.admin.apply(obj, manager="berth-playground", force=True)
        for name in (SPACE, "drilled-others"):
            space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
            made.admin.apply(space, manager="test")
            stack.callback(made.admin.delete, Ref("Namespace", name))
        ground = RealGround(made.admin, SPACE)
        ground.wait("the account", lambda: ground.get("ServiceAccount", "default"))
        switches = {"helios.example/driver": "true", "helios.example/plugin": None}
        for name in made.kubelets:
            made.admin.merge(Ref("Node", name), {"metadata": {"labels": switches}})
        yield made


@pytest.fixture
def ground(real_plane: ControlPlane, fleet: Fleet) -> Iterator[Ground]:
    worker = cluster.connect(
        real_plane.service_account_kubeconfig(SYSTEM_NAMESPACE, "berth-worker")
    )
    by = PlatformAccess(make_person("olga"), frozenset({"operator"}))
    pool = NodePool.objects.create(
        slug="helios",
        name="Helios",
        selector={"kubernetes.io/os": "linux"},
        resource=RESOURCE,
        driver=DRIVER,
        device_class="l40s",
        plugin_label="helios.example/plugin=true",
        driver_label="helios.example/driver=true",
        plugin_sets=["helios/gpu-plugin-helios-example-plugin"],
        driver_sets=["helios/gpu-helios-example-node"],
        devices_per_node=2,
        settling=timedelta(seconds=320) * SCALE,
        made_by=by.user.person,
        made_at=NOON,
    )
    with following(fleet.admin):
        yield Ground(fleet, worker, pool, by)


def test_a_driver_restarts(ground: Ground) -> None:
    with ground.work():
        drill = ground.at(ground.begin(Kind.DRIVER_RESTART), 1)
        pod = drill.baseline["driver_names"][0].split("/")
        ground.admin.delete(Ref("Pod", pod[1], pod[0]), grace_seconds=1)
        ground.passes(drill)
    kept = drill.marks.get(step="kept")
    assert kept.text.startswith("1 Pod with claims runs on")


def test_a_node_is_lost_and_comes_back(ground: Ground) -> None:
    drill = ground.at(ground.begin(Kind.NODE_LOSS), 1)
    with broken(ground.fleet, "kubelet-down", node=ground.node):
        ground.at(drill, 3)
    ground.passes(drill)


@pytest.mark.parametrize(
    ("kind", "fault"),
    [(Kind.DUPLICATE_ALLOCATION, "device-doubled"), (Kind.LEAKED_CLAIM, "claim-leaked")],
)
def test_what_is_held_by_nobody_or_twice_is_found(ground: Ground, kind: Kind, fault: str) -> None:
    drill = ground.begin(kind)
    given = {"node": ground.node, "namespace": SPACE, "device_class": "l40s"}
    with broken(ground.fleet, fault, claim=drill.mark, **given):
        ground.at(drill, 2)
    ground.passes(drill)
    assert drill.marks.get(step="made").evidence


def test_somebody_else_s_claim_is_out_of_reach(ground: Ground) -> None:
    ground.admin.create(
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": {"name": "theirs", "namespace": "drilled-others"},
            "spec": {
                "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "l40s"}}]}
            },
        }
    )
    until(lambda: ("drilled-others", "theirs") in ground.picture().now.claims, what="their claim")
    drill = ground.begin(Kind.CROSS_NAMESPACE)
    ground.passes(drill)
    assert ground.admin.get(Ref("Pod", drill.mark, SYSTEM_NAMESPACE)) is None
    theirs = ground.admin.get(Ref("ResourceClaim", "theirs", "drilled-others"))
    assert theirs is not None and not theirs.get("status", {}).get("reservedFor")


def test_an_older_generation_changes_nothing(ground: Ground) -> None:
    drill = ground.at(ground.begin(Kind.GENERATION_REGRESSION), 1)
    with broken(ground.fleet, "slices-older", node=ground.node):
        ground.at(drill, 3)
    ground.passes(drill)


@pytest.mark.long
def test_slices_that_nobody_keeps(ground: Ground) -> None:
    """A kubelet that is down takes its driver's readiness with it, and the slices stay."""
    drill = ground.at(ground.begin(Kind.STALE_SLICE), 1)
    with broken(ground.fleet, "kubelet-down", node=ground.node):
        ground.at(drill, 2)
    ground.passes(drill)


@pytest.mark.long
def test_rollback_is_rehearsed(ground: Ground) -> None:
    drill = ground.begin(Kind.ROLLBACK)
    given: dict[str, Any] = {"access": ground.by, "request_id": "m"}
    move = moves.begin(
        ground.pool, ground.standing(), Direction.TO_PLUGIN, now=timezone.now(), **given
    )

    def go(done: Callable[[], bool]) -> None:
        end = time.monotonic() + 120
        while not done():
            reconcile.turn(move.public_id, gateway=ground.worker, now=timezone.now())
            move.refresh_from_db()
            assert time.monotonic() < end and not move.called, (move.step, move.called, move.why)
            time.sleep(0.2)

    go(lambda: move.step == "slices gone")
    ground.at(drill, 1)
    moves.turn_back(move, now=timezone.now(), **given)
    go(lambda: move.ended_at is not None)
    ground.passes(drill)
    made = Evidence.objects.get(public_id=drill.bundle)
    assert made.moves == [move.public_id]
    assert not Alert.objects.filter(over_at=None).exists()
