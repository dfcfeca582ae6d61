"""The simulated kubelet is held to the real one: the same situations on both, the same stories."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path

import msgspec
import pytest

from devices.cluster.gateway import Gateway, Ref
from playground.controlplane import ControlPlane
from playground.fleet.fleet import Fleet
from playground.realnodes import described
from playground.realnodes.node import RealNode
from playground.realnodes.nodes import wait_ready
from tests.playground.realnode import ALIASES, REAL_FLEET, SETTINGS, RealGround
from tests.playground.situations.compare import differences
from tests.playground.situations.machines import Machine, Real, Simulated
from tests.playground.situations.record import Chronicle, Masked, Story
from tests.playground.situations.table import TABLE, Situation, Stage

pytestmark = pytest.mark.cluster

SCALE = 0.1  # a simulated node's minutes last six seconds
# A wait may be so many times as long as on the other kind of node, once the scale is taken off.
# The widest is a driver that restores its slices: 26 s, or 57 s where it has just started.
FACTOR = 2.5
_number = itertools.count(1)


class Run:
    """A lane's situations on one node, one after the other, in a thread of its own."""

    def __init__(self, machine: Machine, admin: Gateway, chronicle: Chronicle) -> None:
        self.machine = machine
        self.admin = admin
        self.chronicle = chronicle
        self.told: dict[str, Future[tuple[Story, Stage, float]]] = {}
        self._thread = threading.Thread(target=self._work, name=f"run-{machine.name}", daemon=True)
        self._situations: list[Situation] = []

    def start(self, situations: list[Situation]) -> None:
        self._situations = situations
        self.told = {one.name: Future() for one in situations}
        self._thread.start()

    def join(self) -> None:
        self._thread.join()

    def _work(self) -> None:
        for situation in self._situations:
            future = self.told[situation.name]
            try:
                future.set_result(self._play(situation))
            except BaseException as error:  # pytest.fail's too: told where the test asks
                future.set_exception(error)

    def _play(self, situation: Situation) -> tuple[Story, Stage, float]:
        ground = RealGround(self.admin, f"situation-{next(_number)}")
        namespace = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": ground.namespace},
        }
        ground.admin.create(namespace)
        ground.wait("the account", lambda: ground.get("ServiceAccount", "default"))
        stage = Stage(self.machine, ground)
        stage.slices(2, seconds=90)
        since = self.chronicle.here
        began = time.monotonic()
        try:
            situation.script(stage)
            stage.rest()
            lasted = time.monotonic() - began
            story = self.chronicle.story(ground.namespace, self.machine.name, since=since)
            masked = Masked(ground.namespace, self.machine.name)
            return story | {name: masked(seen) for name, seen in stage.looks.items()}, stage, lasted
        finally:
            self.machine.mend()
            for pod in ground.admin.list("Pod", namespace=ground.namespace).items:
                ground.delete("Pod", pod["metadata"]["name"], grace_seconds=1)
            left = lambda: ground.admin.list("Pod", namespace=ground.namespace).items  # noqa: E731
            ground.wait("no Pod left", lambda: not left(), seconds=60)
            ground.admin.delete(Ref("Namespace", ground.namespace))


Runs = dict[str, tuple[Run, Run]]


@pytest.fixture(scope="module")
def runs(
    request: pytest.FixtureRequest,
    real_plane: ControlPlane,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Runs]:
    """By lane: the run on a real node and that on a simulated one, all under way."""
    chosen = {
        item.name.partition("[")[2].removesuffix("]")
        for item in request.session.items
        if item.path == Path(__file__) and isinstance(item, pytest.Function)
    }
    situations = [one for one in TABLE if one.name in chosen]
    lanes = list(dict.fromkeys(one.lane for one in situations))
    groups = [
        msgspec.structs.replace(group, count=len(lanes), node="like-{number}")
        if group.name == "sim"
        else group
        for group in REAL_FLEET.groups
    ]
    spec = msgspec.structs.replace(REAL_FLEET, groups=groups, time_scale=SCALE)
    fleet = Fleet(spec, real_plane, objects=partial(described.objects, plane=real_plane))
    names = list(fleet.kubelets)
    settings = described.settings_of(REAL_FLEET, SETTINGS)
    nodes: list[RealNode] = []
    chronicle = Chronicle(fleet.admin)
    made: Runs = {}
    try:
        fleet.start()
        for lane in lanes:
            folder = tmp_path_factory.mktemp(f"real-{lane}")
            name = f"situations-{lane}"
            node = RealNode(folder, real_plane, name, settings=settings, aliases=ALIASES)
            described.describe(node, REAL_FLEET)
            nodes.append(node)
            node.start(tied=True, wait=False)
        wait_ready(nodes)
        for lane, node, name in zip(lanes, nodes, names, strict=True):
            pair = tuple(
                Run(machine, fleet.admin, chronicle)
                for machine in (Real(node), Simulated(fleet, name))
            )
            made[lane] = (pair[0], pair[1])
            for run in pair:
                run.start([one for one in situations if one.lane == lane])
        yield made
        for pair in made.values():
            for run in pair:
                run.join()
    finally:
        chronicle.close()
        fleet.stop()
        for node in nodes:
            node.wipe()
        for name in [*names, *(node.name for node in nodes)]:
            fleet.admin.delete(Ref("Node", name))


# Long although it takes 80 seconds: twelve nodes at once need the machine for themselves.
@pytest.mark.long
@pytest.mark.parametrize("situation", TABLE, ids=lambda one: one.name)
def test_a_simulated_node_does_what_a_real_one_does(runs: Runs, situation: Situation) -> None:
    real, simulated = (run.told[situation.name].result(300) for run in runs[situation.lane])
    print(f"{real[2]:.1f} s real, {simulated[2]:.1f} s simulated; {real[1].times}")
    found = differences(real[0], simulated[0])
    assert not found, "\n".join(found)
    for name, seconds in real[1].times.items():
        other = simulated[1].times[name]
        assert seconds / FACTOR <= other <= seconds * FACTOR, (name, seconds, other)
