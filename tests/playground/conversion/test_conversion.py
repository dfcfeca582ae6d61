"""From device plugin to DRA driver and back, on real kubelets and on simulated ones.

The scripts run side by side, each on nodes of its own, and ask at every step what the API server
proves. `docs/playground.md` says how to run them and where their stories are.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from devices.cluster.gateway import Gateway, Ref
from playground.fleet.fleet import MANAGER, Fleet
from playground.fleet.site import gateway
from playground.plane.components import Tuning
from playground.plane.controlplane import ControlPlane
from playground.realnodes import described
from playground.realnodes.node import RealNode
from tests.playground.conversion.quick import QUICK
from tests.playground.conversion.stand import Stand
from tests.playground.conversion.whole import WHOLE, there_and_back, trapped_and_cured
from tests.playground.planes import NEWEST, OLDER, built
from tests.playground.probing import install_probe
from tests.playground.realnode import (
    ALIASES,
    NODE_GRACE,
    REAL_FLEET,
    SETTINGS,
    RealGround,
    real_nodes_built,
    start_together,
)
from tests.playground.situations.machines import Machine

pytestmark = pytest.mark.cluster

Script = Callable[[Stand], None]
Lane = Sequence[Script]
Stories = dict[str, "Future[str]"]

REAL, SIMULATED = "real", "simulated"
# Where nothing waits for the end of a simulated kubelet's five minutes, they must not end under a
# busy machine: a minute. Else 30 seconds.
QUICK_SCALE, WHOLE_SCALE = 0.2, 0.1
# As a kubelet does by default: what a node offers is up to ten seconds old.
TRUE_PACE = replace(SETTINGS, status_seconds=10.0)
_number = itertools.count(1)


def play(script: Script, machine: Machine, admin: Gateway, scale: float) -> str:
    """Goes through a script in a namespace of its own; its story."""
    ground = RealGround(admin, f"conversion-{next(_number)}")
    ground.admin.create(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": ground.namespace}}
    )
    ground.wait("the account", lambda: ground.get("ServiceAccount", "default"), seconds=60)
    stand = Stand(machine, ground, scale)
    try:
        script(stand)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{stand.story()}") from error
    for pod in admin.list("Pod", namespace=ground.namespace).items:
        ground.delete("Pod", pod["metadata"]["name"], grace_seconds=1)
    admin.delete(Ref("Namespace", ground.namespace))
    return "\n".join(stand.said)


class Company:
    """Machines of one pace with a lane of scripts each, all under way at once."""

    def __init__(self, admin: Gateway, scale: float = 1.0) -> None:
        self._scale = scale
        self.stories: Stories = {}
        self._admin = admin
        self._threads = ThreadPoolExecutor(32)

    def begin(self, lane: Lane, machine: Machine) -> None:
        told: list[Future[str]] = [Future() for _ in lane]
        self.stories |= {one.__name__: future for one, future in zip(lane, told, strict=True)}
        self._threads.submit(self._play, lane, machine, told)

    def _play(self, lane: Lane, machine: Machine, told: Sequence[Future[str]]) -> None:
        for script, future in zip(lane, told, strict=True):
            try:
                future.set_result(play(script, machine, self._admin, self._scale))
            except BaseException as error:  # pytest.fail's too: told where the test asks
                future.set_exception(error)

    def end(self) -> None:
        self._threads.shutdown()


def chosen(request: pytest.FixtureRequest, kind: str, lanes: Sequence[Lane]) -> list[Lane]:
    """The lanes with a script that a test of this run asks for, on nodes of that kind."""
    wanted = {
        item.callspec.params["script"]
        for item in request.session.items
        if item.path == Path(__file__)
        and isinstance(item, pytest.Function)
        and item.callspec.params["kind"] == kind
    }
    return [lane for lane in lanes if wanted & set(lane)]


def start_nodes(
    stack: ExitStack, plane: ControlPlane, folder: Path, names: Sequence[str], **options: Any
) -> list[RealNode]:
    """Real nodes that neither plugin nor driver is called to, Ready; gone with the stack."""
    admin = gateway(plane.admin_kubeconfig)
    nodes = []
    for name in names:
        node = RealNode(folder / name, plane, name, aliases=ALIASES, **options)
        described.describe(node, REAL_FLEET)
        stack.callback(admin.delete, Ref("Node", name))
        stack.callback(node.wipe)
        nodes.append(node)
    start_together(nodes)
    return nodes


@pytest.fixture(scope="module")
def stories(
    request: pytest.FixtureRequest,
    real_plane: ControlPlane,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[dict[str, Stories]]:
    """By kind of node: the quick scripts on real ones, all scripts on simulated ones."""
    admin = gateway(real_plane.admin_kubeconfig)
    install_probe(RealGround(admin, ""))
    found: dict[str, Stories] = {REAL: {}, SIMULATED: {}}
    with ExitStack() as stack:
        for scale, every in ((QUICK_SCALE, QUICK), (WHOLE_SCALE, [(one,) for one in WHOLE])):
            lanes = chosen(request, SIMULATED, every)
            if not lanes:
                continue
            fleet = start_fleet(stack, real_plane, len(lanes), scale)
            company = Company(admin, scale)
            stack.callback(company.end)
            for lane, name in zip(lanes, fleet.kubelets, strict=True):
                company.begin(lane, Machine(fleet, name))
            found[SIMULATED] |= company.stories
        lanes = chosen(request, REAL, QUICK)
        names = [f"convert-{number}" for number in range(len(lanes))]
        folder = tmp_path_factory.mktemp("convert")
        nodes = start_nodes(stack, real_plane, folder, names, settings=SETTINGS)
        company = Company(admin)
        stack.callback(company.end)
        for lane, node in zip(lanes, nodes, strict=True):
            company.begin(lane, Machine(node, node.name))
        found[REAL] |= company.stories
        yield found


def start_fleet(stack: ExitStack, plane: ControlPlane, count: int, scale: float) -> Fleet:
    """Simulated nodes like the real ones; gone with the stack."""
    node = f"pretend-{round(scale * 100)}-{{number}}"
    groups = [
        msgspec.structs.replace(group, count=count, node=node, labels={})
        if group.name == "sim"
        else group
        for group in REAL_FLEET.groups
    ]
    spec = msgspec.structs.replace(REAL_FLEET, groups=groups, time_scale=scale)
    fleet = Fleet(spec, plane, objects=partial(described.objects, plane=plane))
    ground = RealGround(fleet.admin, "")
    for name in fleet.kubelets:
        stack.callback(fleet.admin.delete, Ref("Node", name))
    stack.callback(fleet.stop)
    fleet.start()
    ground.wait("the nodes", lambda: all(ground.node(name) for name in fleet.kubelets), seconds=30)
    return fleet


@pytest.fixture(scope="module")
def older_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    real_nodes_built(OLDER)
    tuning = Tuning(node_grace=NODE_GRACE, audit=False)
    with ControlPlane(tmp_path_factory.mktemp(OLDER), built(OLDER), tuning=tuning) as plane:
        admin = gateway(plane.admin_kubeconfig)
        for one in described.objects(REAL_FLEET, plane):
            admin.apply(one, manager=MANAGER, force=True)
        yield plane


# The trap's script ends with the way back, so it alone has all steps on the older release.
LONG = {NEWEST: [(there_and_back,), (trapped_and_cured,)], OLDER: [(trapped_and_cured,)]}


@pytest.fixture(scope="module")
def at_true_pace(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Stories]]:
    """By release: whole conversions on real nodes with a kubelet's own times, all at once."""
    with ExitStack() as stack:
        stories: dict[str, Stories] = {}
        for release, every in LONG.items():
            lanes = chosen(request, release, every)
            if not lanes:
                continue
            fixture = "real_plane" if release == NEWEST else "older_plane"
            plane: ControlPlane = request.getfixturevalue(fixture)
            admin = gateway(plane.admin_kubeconfig)
            install_probe(RealGround(admin, ""))
            names = [f"whole-{lane[0].__name__.replace('_', '-')}" for lane in lanes]
            folder = tmp_path_factory.mktemp(f"whole-{release}")
            nodes = start_nodes(stack, plane, folder, names, settings=TRUE_PACE)
            company = Company(admin)
            stack.callback(company.end)
            for lane, node in zip(lanes, nodes, strict=True):
                company.begin(lane, Machine(node, node.name))
            stories[release] = company.stories
        yield stories


def by_name(script: Script) -> str:
    return script.__name__.replace("_", " ")


@pytest.mark.parametrize(
    "kind, script",
    [
        pytest.param(kind, script, id=f"{kind}: {by_name(script)}")
        for kind, scripts in (
            (REAL, itertools.chain(*QUICK)),
            (SIMULATED, itertools.chain(*QUICK, WHOLE)),
        )
        for script in scripts
    ],
)
def test_a_node_proves_each_step(stories: dict[str, Stories], kind: str, script: Script) -> None:
    print(stories[kind][script.__name__].result(300))


@pytest.mark.long
@pytest.mark.timeout(1500)
@pytest.mark.parametrize(
    "kind, script",
    [
        pytest.param(
            release,
            script,
            id=f"{release}: {by_name(script)}",
            marks=[pytest.mark.cluster136] if release == OLDER else [],
        )
        for release, lanes in LONG.items()
        for lane in lanes
        for script in lane
    ],
)
def test_a_real_node_at_its_own_pace(
    at_true_pace: dict[str, Stories], kind: str, script: Script
) -> None:
    print(at_true_pace[kind][script.__name__].result(1400))
