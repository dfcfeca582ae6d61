"""The simulated kubelet is held to the real one: the same situations on both, the same stories.

A real kubelet does not tell one story twice: whether a container has installed its handler of
signals when it is stopped, which of two news comes first. So a situation is played again where
the stories part, and only what never agrees is a disagreement. What parted once is printed.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec
import pytest

from devices.cluster.gateway import Gateway, Ref
from playground.fleet.fleet import Fleet
from playground.plane.components import Tuning
from playground.plane.controlplane import ControlPlane
from playground.realnodes import described
from playground.realnodes.node import RealNode
from tests.playground.planes import NEWEST, OLDER, built
from tests.playground.realnode import (
    ALIASES,
    NODE_GRACE,
    REAL_FLEET,
    SETTINGS,
    RealGround,
    real_nodes_built,
    start_together,
)
from tests.playground.situations.compare import differences, without
from tests.playground.situations.machines import Machine
from tests.playground.situations.record import Chronicle, Masked, Story
from tests.playground.situations.table import TABLE, Situation, Stage

pytestmark = pytest.mark.cluster

TOLD_WITHIN = 10.0
# A wait may be so many times as long as on the other kind of node: a busy machine makes them late.
FACTOR = 2.0
PLAYED_AT_MOST = 3
_number = itertools.count(1)


@dataclass(slots=True)
class Act:
    """A situation on one node, from its beginning: `since` is the chronicle's mark of that."""

    stage: Stage
    since: int
    seconds: float = 0.0


class Lane:
    """Situations that come one after the other, each on a real and on a simulated node at once."""

    def __init__(self, real: Machine, simulated: Machine, admin: Gateway, chronicle: Chronicle):
        self.machines = (real, simulated)
        self.admin = admin
        self.chronicle = chronicle
        self.told: dict[str, Future[Outcome]] = {}
        self._thread = threading.Thread(target=self._work, name=f"lane-{real.name}", daemon=True)
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
                future.set_result(self._agreed(situation))
            except BaseException as error:  # pytest.fail's too: told where the test asks
                future.set_exception(error)

    def _agreed(self, situation: Situation) -> Outcome:
        """As it went when both stories were the same for the first time, else the last time."""
        parted: list[list[str]] = []
        while True:
            last = len(parted) + 1 == PLAYED_AT_MOST
            try:
                real, simulated, found = self._play(situation)
            except (AssertionError, pytest.fail.Exception) as error:
                if last:
                    raise
                parted.append([str(error), *getattr(error, "__notes__", ())])
                continue
            if not found or last:
                return Outcome(real, simulated, found, parted)
            parted.append(found)

    def _play(self, situation: Situation) -> tuple[Act, Act, list[str]]:
        with ThreadPoolExecutor(2) as both:
            acts = list(both.map(self._begin, self.machines))
            try:
                # As lists: the second is played to its end where the first fails.
                played = [both.submit(self._act, situation, act) for act in acts]
                wait(played)
                for one in played:
                    one.result()
                real, simulated = acts
                return real, simulated, self._compare(situation, real, simulated)
            finally:
                list(both.map(self._clear, acts))

    def _begin(self, machine: Machine) -> Act:
        ground = RealGround(self.admin, f"situation-{next(_number)}")
        namespace = {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": ground.namespace},
        }
        ground.admin.create(namespace)
        account = lambda: ground.get("ServiceAccount", "default")  # noqa: E731
        ground.wait("the account", account, seconds=60)
        quiet_since = partial(self.chronicle.quiet_since, ground.namespace)
        stage = Stage(machine, ground, quiet_since)
        stage.slices(2, seconds=90)
        return Act(stage, self.chronicle.here)

    def _act(self, situation: Situation, act: Act) -> None:
        began = time.monotonic()
        try:
            situation.script(act.stage)
        except (AssertionError, pytest.fail.Exception) as error:
            error.add_note(f"on {act.stage.machine.name}, {time.monotonic() - began:.1f} s in")
            raise
        act.seconds = time.monotonic() - began
        act.stage.rest()

    def _compare(self, situation: Situation, real: Act, simulated: Act) -> list[str]:
        """What differs when all is told: on a busy machine the last news may be late."""
        until = time.monotonic() + TOLD_WITHIN
        while True:
            stories = (without(self._story(act), situation.by_chance) for act in (real, simulated))
            found = differences(*stories)
            if not found or time.monotonic() > until:
                return found + untimely(real.stage, simulated.stage)
            time.sleep(0.5)

    def _story(self, act: Act) -> Story:
        namespace, name = act.stage.ground.namespace, act.stage.machine.name
        story = self.chronicle.story(namespace, name, since=act.since)
        masked = Masked(namespace, name)
        return story | {what: masked(seen) for what, seen in act.stage.looks.items()}

    def _clear(self, act: Act) -> None:
        ground = act.stage.ground
        act.stage.machine.mend()
        for pod in ground.admin.list("Pod", namespace=ground.namespace).items:
            ground.delete("Pod", pod["metadata"]["name"], grace_seconds=1)
        left = lambda: ground.admin.list("Pod", namespace=ground.namespace).items  # noqa: E731
        ground.wait("no Pod left", lambda: not left(), seconds=60)
        ground.admin.delete(Ref("Namespace", ground.namespace))


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a situation went the last time, what differed then, and each time before."""

    real: Act
    simulated: Act
    found: list[str]
    parted: list[list[str]]


def untimely(real: Stage, simulated: Stage) -> list[str]:
    """Which waits, in seconds, were not alike on both nodes."""
    found = []
    for name, seconds in real.times.items():
        other = simulated.times[name]
        if most := real.most.get(name):
            alike = max(seconds, other) <= most * FACTOR
        else:
            alike = seconds / FACTOR <= other <= seconds * FACTOR
        if not alike:
            found.append(f"{name}: really {seconds:.1f} s, simulated {other:.1f} s")
    return found


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(NEWEST, id=NEWEST),
        pytest.param(OLDER, id=OLDER, marks=[pytest.mark.cluster136, pytest.mark.long]),
    ],
)
def stage_plane(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ControlPlane]:
    """A control plane of the release; that of the newest is the run's own for real nodes."""
    release = request.param
    real_nodes_built(release)
    if release == NEWEST:
        yield request.getfixturevalue("real_plane")
        return
    tuning = Tuning(node_grace=NODE_GRACE, audit=False)
    with ControlPlane(tmp_path_factory.mktemp(release), built(release), tuning=tuning) as plane:
        yield plane


@pytest.fixture(scope="module")
def lanes(
    request: pytest.FixtureRequest,
    stage_plane: ControlPlane,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Lane]]:
    """By name: every lane that a test of this run asks for, all under way."""
    plane = stage_plane
    chosen = {
        item.callspec.params["situation"].name
        for item in request.session.items
        if item.path == Path(__file__)
        and isinstance(item, pytest.Function)
        and item.callspec.params["stage_plane"] == plane.release
    }
    situations = [one for one in TABLE if one.name in chosen]
    names = list(dict.fromkeys(one.lane for one in situations))
    groups = [
        msgspec.structs.replace(group, count=len(names), node="like-{number}")
        if group.name == "sim"
        else group
        for group in REAL_FLEET.groups
    ]
    # In true time: what is shortened is late on a busy machine before the real one is.
    spec = msgspec.structs.replace(REAL_FLEET, groups=groups, sync_seconds=SETTINGS.sync_seconds)
    fleet = Fleet(spec, plane, objects=partial(described.objects, plane=plane))
    settings = described.settings_of(REAL_FLEET, SETTINGS)
    nodes: list[RealNode] = []
    chronicle = Chronicle(fleet.admin)
    made: dict[str, Lane] = {}
    try:
        fleet.start()
        for name in names:
            folder = tmp_path_factory.mktemp(f"real-{name}")
            node = RealNode(folder, plane, f"really-{name}", settings=settings, aliases=ALIASES)
            described.describe(node, REAL_FLEET)
            nodes.append(node)
        start_together(nodes)
        for name, node, like in zip(names, nodes, fleet.kubelets, strict=True):
            pair = Machine(node, node.name), Machine(fleet, like)
            lane = made[name] = Lane(*pair, fleet.admin, chronicle)
            lane.start([one for one in situations if one.lane == name])
        yield made
    finally:
        for lane in made.values():
            lane.join()
        chronicle.close()
        fleet.stop()
        for node in nodes:
            node.wipe()
        for known in [*fleet.kubelets, *(node.name for node in nodes)]:
            fleet.admin.delete(Ref("Node", known))


@pytest.mark.parametrize("situation", TABLE, ids=lambda one: one.name)
def test_a_simulated_node_does_what_a_real_one_does(
    lanes: dict[str, Lane], situation: Situation
) -> None:
    outcome = lanes[situation.lane].told[situation.name].result(600)
    real, simulated = outcome.real, outcome.simulated
    print(f"{real.seconds:.1f} s real, {simulated.seconds:.1f} s simulated; {real.stage.times}")
    for found in outcome.parted:
        print("\n".join(["parted once:", *found]))
    assert not outcome.found, "\n".join(outcome.found)
