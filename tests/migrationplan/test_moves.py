"""A node moved by the product itself, on a real control plane: there, back, and what goes wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from typing import Any

import pytest
import yaml
from django.utils import timezone

from devices import cluster
from devices.cluster.gateway import Gateway, Ref
from devices.dra.names import QUIESCING_TAINT, SYSTEM_NAMESPACE
from devices.dra.ownpods import probe_pod
from devices.fleet.nodepools import standings
from devices.fleet.ownershipbook import scan
from devices.forecasts.warm import fresh
from devices.models import NodePool
from migrationplan.models import Move, MoveEvent
from migrationplan.moving import moves, reconcile
from migrationplan.steps import Direction
from migrationplan.views.moves import lane
from playground.fleet.fleet import Fleet
from playground.plane.controlplane import ControlPlane
from portal.alerts.models import Alert
from portal.audit.models import AuditLine
from tenants.access import PlatformAccess
from tests.deploy.ground import DEPLOY, rights
from tests.devices.following import following, until
from tests.factories import NOON, make_person
from tests.playground.conftest import a_pod
from tests.playground.conversion.test_conversion import start_fleet
from tests.playground.probing import install_probe
from tests.playground.realnode import RealGround

pytestmark = [pytest.mark.cluster, pytest.mark.django_db(transaction=True)]

RESOURCE, DRIVER = "helios.example/gpu", "gpu.helios.example"
#: A simulated node's five minutes last fifteen seconds.
SCALE = 0.05
PLUGIN_SWITCH, DRIVER_SWITCH = "helios.example/plugin", "helios.example/driver"


@pytest.fixture(scope="module")
def fleet(real_plane: ControlPlane) -> Iterator[Fleet]:
    """Two simulated nodes whose five minutes last fifteen seconds."""
    with ExitStack() as stack:
        made = start_fleet(stack, real_plane, 2, SCALE)
        install_probe(RealGround(made.admin, ""))
        for obj in rights():
            made.admin.apply(obj, manager="berth-playground", force=True)
        yield made


@pytest.fixture
def worker(real_plane: ControlPlane, fleet: Fleet) -> Gateway:
    """Berth's own worker, with the rights of `deploy/` and no others."""
    return cluster.connect(real_plane.service_account_kubeconfig(SYSTEM_NAMESPACE, "berth-worker"))


@pytest.fixture
def operator() -> PlatformAccess:
    return PlatformAccess(make_person("olga"), frozenset({"operator"}))


@pytest.fixture
def pool(operator: PlatformAccess) -> NodePool:
    return NodePool.objects.create(
        slug="helios",
        name="Helios",
        selector={"kubernetes.io/os": "linux"},
        resource=RESOURCE,
        driver=DRIVER,
        device_class="l40s",
        plugin_label=f"{PLUGIN_SWITCH}=true",
        driver_label=f"{DRIVER_SWITCH}=true",
        plugin_sets=["helios/gpu-plugin-helios-example-plugin"],
        driver_sets=["helios/gpu-helios-example-node"],
        devices_per_node=2,
        settling=timedelta(seconds=320) * SCALE,
        made_by=operator.user.person,
        made_at=NOON,
    )


class Story:
    """Moves as the product makes them, with a watch process and no other hand."""

    def __init__(self, fleet: Fleet, worker: Gateway, pool: NodePool, by: PlatformAccess) -> None:
        self.admin, self.worker, self.pool, self.by = fleet.admin, worker, pool, by
        self.owners: set[tuple[bool, bool]] = set()

    def node(self, name: str) -> dict[str, Any]:
        found = self.admin.get(Ref("Node", name))
        assert found is not None
        return found

    def owner(self, name: str) -> str:
        seen = fresh()
        if seen is None:
            return ""
        scan(seen.now, timezone.now())
        found = {one.node.name: one for one in standings(self.pool, seen, timezone.now())}
        return found[name].owner if name in found else ""

    def begin(self, name: str, direction: Direction) -> Move:
        seen = fresh()
        assert seen is not None
        scan(seen.now, timezone.now())
        found = {one.node.name: one for one in standings(self.pool, seen, timezone.now())}
        return moves.begin(
            self.pool, found[name], direction,
            access=self.by, request_id="request-m", now=timezone.now(),
        )  # fmt: skip

    def run(self, move: Move, done: Callable[[Move], bool], seconds: float = 120) -> Move:
        """Turns as the sweep calls them, until it is so."""
        end = time.monotonic() + seconds
        while True:
            reconcile.turn(move.public_id, gateway=self.worker, now=timezone.now())
            move.refresh_from_db()
            self._watch(move)
            if done(move):
                return move
            told = [f"{one.step}: {one.text}" for one in move.events.all()]
            assert time.monotonic() < end, f"{move.step}: {move.why} {move.evidence}\n{told}"
            assert not move.called, f"{move.called}: {move.why} {move.evidence}\n{told}"
            time.sleep(0.2)

    def _watch(self, move: Move) -> None:
        """Both switches are never on, at no moment that anybody could see."""
        labels = self.node(move.node)["metadata"]["labels"]
        on = (PLUGIN_SWITCH in labels, DRIVER_SWITCH in labels)
        self.owners.add(on)
        assert on != (True, True), "both paths were called to the node"


@pytest.fixture
def story(
    fleet: Fleet, worker: Gateway, pool: NodePool, operator: PlatformAccess
) -> Iterator[Story]:
    with following(fleet.admin):
        yield Story(fleet, worker, pool, operator)


def call(admin: Gateway, node: str, **switches: str | None) -> None:
    names = {"plugin": PLUGIN_SWITCH, "driver": DRIVER_SWITCH}
    labels = {names[key]: value for key, value in switches.items()}
    admin.merge(Ref("Node", node), {"metadata": {"labels": labels}})


def ended(move: Move) -> bool:
    return move.ended_at is not None


def test_there_and_back_with_a_pod_that_is_waited_for(story: Story, fleet: Fleet) -> None:
    name = next(iter(fleet.kubelets))
    call(story.admin, name, plugin="true", driver=None)
    until(lambda: story.owner(name) == "plugin", what="the plugin's devices")
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "moved"}}
    story.admin.apply(space, manager="test")
    work = a_pod("work", node=name, limits={RESOURCE: "1"})
    work["metadata"]["namespace"] = "moved"
    story.admin.create(work)
    ref = Ref("Pod", "work", "moved")
    until(lambda: story.admin.get(ref)["status"].get("phase") == "Running", what="the Pod")  # type: ignore[index]

    move = story.begin(name, Direction.TO_DRA)
    with pytest.raises(moves.NotMovable, match="on its way already"):
        story.begin(name, Direction.TO_DRA)
    story.run(move, lambda one: "moved/work" in " ".join(one.evidence))
    assert story.admin.get(ref) is not None, "nobody is evicted"
    assert any(one["key"] == QUIESCING_TAINT for one in story.node(name)["spec"]["taints"])
    story.admin.delete(ref, grace_seconds=1)
    story.run(move, ended)
    assert [one.step for one in move.events.all()] == [
        "quiescing", "plugin off", "node-side proof", "driver on", "settling", "verifying",
        "opening", "done",
    ]  # fmt: skip
    until(lambda: story.owner(name) == "dra", what="DRA's ownership")
    node = story.node(name)
    assert node["metadata"]["labels"]["berth.dev/path.helios"] == "dra"
    assert not any(one["key"] == QUIESCING_TAINT for one in node["spec"].get("taints", ()))
    assert not story.admin.list("Pod", namespace=SYSTEM_NAMESPACE).items

    back = story.begin(name, Direction.TO_PLUGIN)
    story.run(back, ended)
    until(lambda: story.owner(name) == "plugin", what="the plugin's ownership")
    assert story.owners == {(True, False), (False, False), (False, True)}
    assert not Alert.objects.exists()
    assert AuditLine.objects.filter(action="move.done").count() == 2


def test_given_up_while_it_waits_the_node_is_as_it_was(story: Story, fleet: Fleet) -> None:
    name = list(fleet.kubelets)[1]
    call(story.admin, name, plugin="true", driver=None)
    until(lambda: story.owner(name) == "plugin", what="the plugin's devices")
    move = story.begin(name, Direction.TO_DRA)
    story.run(move, lambda one: bool(one.trial))
    moves.turn_back(move, access=story.by, request_id="r", now=timezone.now())
    story.run(move, ended)
    assert move.cancelled and story.owner(name) == "plugin"
    untouched = [one.step for one in lane(move) if one.state == "spared"]
    assert len(untouched) == 5, "what was never begun is not called done"
    assert PLUGIN_SWITCH in story.node(name)["metadata"]["labels"]
    assert not any(
        one["key"] == QUIESCING_TAINT for one in story.node(name)["spec"].get("taints", ())
    )


def test_turned_back_in_the_middle_it_goes_the_whole_way_back(story: Story, fleet: Fleet) -> None:
    name = list(fleet.kubelets)[1]
    call(story.admin, name, plugin="true", driver=None)
    until(lambda: story.owner(name) == "plugin", what="the plugin's devices")
    move = story.begin(name, Direction.TO_DRA)
    story.run(move, lambda one: one.step == "settling")
    moves.turn_back(move, access=story.by, request_id="r", now=timezone.now())
    story.run(move, ended)
    assert (move.direction, move.step) == ("to the plugin", "done")
    until(lambda: story.owner(name) == "plugin", what="the plugin's ownership")
    assert (True, True) not in story.owners


def test_a_driver_that_publishes_too_many_calls_a_person(story: Story, fleet: Fleet) -> None:
    name = list(fleet.kubelets)[1]
    NodePool.objects.update(devices_per_node=1)
    story.pool.refresh_from_db()
    call(story.admin, name, plugin="true", driver=None)
    until(lambda: story.owner(name) == "plugin", what="the plugin's devices")
    move = story.begin(name, Direction.TO_DRA)
    move = Move.objects.get(pk=move.pk)
    end = time.monotonic() + 90
    while not move.called and time.monotonic() < end:
        reconcile.turn(move.public_id, gateway=story.worker, now=timezone.now())
        move.refresh_from_db()
        time.sleep(0.2)
    assert (move.called, move.step) == ("DRIFT_DEVICES_TOO_MANY", "driver on")
    alert = Alert.objects.get(over_at=None)
    assert alert.severity == "critical" and alert.path.endswith(f"/moves/{move.public_id}/")
    before = MoveEvent.objects.count()
    reconcile.turn(move.public_id, gateway=story.worker, now=timezone.now())
    assert MoveEvent.objects.count() == before, "it stands still until somebody decides"
    NodePool.objects.update(devices_per_node=2)
    moves.look_again(move, access=story.by, request_id="r", now=timezone.now())
    story.run(move, ended)
    assert not Alert.objects.filter(over_at=None).exists()


def test_the_objects_of_the_probe_are_those_of_the_manual() -> None:
    """`deploy/nodeprobe/pod.yaml` is for people; what Berth sends is the same."""
    said = yaml.safe_load((DEPLOY / "nodeprobe" / "pod.yaml").read_text())
    values = ("{name}", "{node}", "{image}", "{resource}", "{port}")
    made = probe_pod(*values, move="m")
    del made["metadata"]["labels"]["berth.dev/move"]
    assert made == said
