"""Nodes moved by the product, with real kubelets, containers and DaemonSets, at their own pace.

Three nodes side by side: one goes there and back, one is kept as baseline, and on one the kubelet's
trap is provoked, recognised and cured. A witness lists the API server all the time; what it wrote
is judged at the end. Needs Linux, root and the programs of real nodes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from devices import cluster
from devices.cluster.gateway import Gateway, Ref
from devices.dra.conversion import Times, kubelet_trap
from devices.dra.names import QUIESCING_TAINT, SYSTEM_NAMESPACE
from devices.dra.pods import read_pod
from devices.fleet.nodepools import standings
from devices.fleet.ownershipbook import scan
from devices.forecasts.warm import fresh
from devices.models import NodePool
from devices.models.nodepool import SETTLING
from migrationplan.models import Move
from migrationplan.moving import moves, reconcile
from migrationplan.steps import PATIENCE, SETTLING_PATIENCE, Direction, Step
from playground.fleet.site import gateway
from playground.plane.controlplane import ControlPlane
from playground.realnodes.node import RealNode
from portal.alerts.models import Alert
from tenants.access import PlatformAccess
from tests.deploy.ground import rights
from tests.devices.following import following, until
from tests.factories import NOON, make_person
from tests.migrationplan.sampling import restarted, samples, sampling, used_twice
from tests.playground.conftest import a_pod
from tests.playground.conversion.stand import DRIVER, RESOURCE, TOLERATES
from tests.playground.conversion.test_conversion import TRUE_PACE, start_nodes
from tests.playground.probing import install_probe
from tests.playground.realnode import RealGround
from tests.playground.situations.machines import Machine

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.long,
    pytest.mark.timeout(2400),
    pytest.mark.django_db(transaction=True),
]

SPACE = "moved-for-real"
POOL_LABEL = "test.berth.dev/pool"
SWITCHES = ("helios.example/plugin", "helios.example/driver")
Story = Generator[None]


@dataclass
class Site:
    """The product's hands and eyes, and a person's."""

    admin: Gateway
    worker: Gateway
    by: PlatformAccess
    machines: dict[str, Machine]

    def pool(self, slug: str, node: str, settling: timedelta = SETTLING) -> NodePool:
        self.admin.merge(Ref("Node", node), {"metadata": {"labels": {POOL_LABEL: slug}}})
        return NodePool.objects.create(
            slug=slug,
            name=slug.title(),
            selector={POOL_LABEL: slug},
            resource=RESOURCE,
            driver=DRIVER,
            device_class="l40s",
            plugin_label=f"{SWITCHES[0]}=true",
            driver_label=f"{SWITCHES[1]}=true",
            plugin_sets=["helios/gpu-plugin-helios-example-plugin"],
            driver_sets=["helios/gpu-helios-example-node"],
            devices_per_node=2,
            settling=settling,
            made_by=self.by.user.person,
            made_at=NOON,
        )

    def node(self, name: str) -> dict[str, Any]:
        found = self.admin.get(Ref("Node", name))
        assert found is not None
        return found

    def owner(self, pool: NodePool, name: str) -> str:
        seen, now = fresh(), timezone.now()
        if seen is None:
            return ""
        scan(seen.now, now)
        return {one.node.name: one.owner for one in standings(pool, seen, now)}.get(name, "")

    def begin(self, pool: NodePool, name: str, direction: Direction) -> Move:
        seen, now = fresh(), timezone.now()
        assert seen is not None
        scan(seen.now, now)
        found = {one.node.name: one for one in standings(pool, seen, now)}[name]
        return moves.begin(pool, found, direction, access=self.by, request_id="real", now=now)

    def make(self, name: str, node: str, *, device: bool = True, **spec: Any) -> None:
        made = a_pod(name, node=node, limits={RESOURCE: "1"} if device else {}, **spec)
        made["metadata"]["namespace"] = SPACE
        made["spec"]["terminationGracePeriodSeconds"] = 1
        self.admin.create(made)

    def pod(self, name: str) -> dict[str, Any]:
        return self.admin.get(Ref("Pod", name, SPACE)) or {}

    def remove(self, name: str) -> None:
        self.admin.delete(Ref("Pod", name, SPACE), grace_seconds=1)


def awaited(seen: Callable[[], Any], what: str, seconds: float = 120) -> Story:
    """Lets the others go on until it is so."""
    end = time.monotonic() + seconds
    while not seen():
        assert time.monotonic() < end, f"not seen in time: {what}"
        yield


def running(site: Site, pod: str) -> bool:
    status = site.pod(pod).get("status", {})
    return any("running" in one["state"] for one in status.get("containerStatuses", ()))


def turned(site: Site, move: Move, done: Callable[[Move], bool], seconds: float = 900) -> Story:
    """Turns as the sweep calls them, until it is so; a person who is called is a failure, unless
    that is what is waited for."""
    end = time.monotonic() + seconds
    while True:
        reconcile.turn(move.public_id, gateway=site.worker, now=timezone.now())
        move.refresh_from_db()
        labels = site.node(move.node)["metadata"]["labels"]
        assert not all(one in labels for one in SWITCHES), "both paths were called to the node"
        if done(move):
            return
        told = "\n".join(f"{one.at:%H:%M:%S} {one.step}: {one.text}" for one in move.events.all())
        assert not move.called, f"{move.called}: {move.why} {move.evidence}\n{told}"
        assert time.monotonic() < end, f"{move.step}: {move.why} {move.evidence}\n{told}"
        yield


def ended(move: Move) -> bool:
    return move.ended_at is not None


def by(site: Site) -> dict[str, Any]:
    return {"access": site.by, "request_id": "real", "now": timezone.now()}


def told(move: Move) -> None:
    """Prints what each step took, beside the patience that it is allowed."""
    events = list(move.events.filter(direction=move.direction))
    ends: list[datetime] = [one.at for one in events[1:]] + [move.ended_at or timezone.now()]
    for one, end in zip(events, ends, strict=True):
        allowed = PATIENCE.get(Step(one.step))
        if one.step == Step.SETTLING:
            allowed = move.pool.settling + SETTLING_PATIENCE
        took = (end - one.at).total_seconds()
        of = f"of {allowed.total_seconds():.0f} s" if allowed else "no end of its own"
        print(f"{move.node} {move.direction:13} {one.step:16} {took:7.1f} s  {of}")


def opened(site: Site, name: str) -> bool:
    taints = site.node(name)["spec"].get("taints", ())
    return not any(one["key"] == QUIESCING_TAINT for one in taints)


def there_and_back(site: Site, name: str) -> Story:
    """The holder is waited for, each time; the bystander sees nothing of it."""
    pool = site.pool("alpha", name)
    site.make("bystander", name, device=False)
    yield from awaited(lambda: site.owner(pool, name) == "plugin", "the plugin's devices")
    for number, direction in enumerate((Direction.TO_DRA, Direction.TO_PLUGIN)):
        work = f"work-{number}"
        site.make(work, name)
        yield from awaited(lambda pod=work: running(site, pod), work)
        yield from awaited(lambda: site.owner(pool, name) != "", "the owner")
        move = site.begin(pool, name, direction)
        yield from turned(
            site, move, lambda one, pod=work: one.step == "quiescing" and _waits(one, pod)
        )
        assert running(site, work), "nobody is evicted"
        site.remove(work)
        yield from turned(site, move, ended)
        told(move)
        assert opened(site, name)
        path = direction.path.value
        yield from awaited(lambda path=path: site.owner(pool, name) == path, f"{path}'s ownership")
    site.make("work-2", name)
    yield from awaited(lambda: running(site, "work-2"), "work after both moves")


def _waits(move: Move, pod: str) -> bool:
    """By the plugin the Pod is named, by DRA the claim that was made for it."""
    return any(f"{SPACE}/{pod}" in one for one in move.evidence)


def trapped_and_cured(site: Site, name: str) -> Story:
    """A kubelet restarts before its notes are clean, and whoever went on would meet the trap."""
    pool = site.pool("omega", name, timedelta(minutes=1))
    site.make("unlucky", name, device=False)
    yield from awaited(lambda: site.owner(pool, name) == "plugin", "the plugin's devices")
    site.make("long-gone", name)
    yield from awaited(lambda: running(site, "long-gone"), "long-gone")
    site.remove("long-gone")
    yield from awaited(lambda: not site.pod("long-gone"), "its end")
    move = site.begin(pool, name, Direction.TO_DRA)
    yield from turned(site, move, lambda one: one.step == Step.SETTLING)
    site.machines[name].fault("kubelet-restart")
    yield from turned(site, move, lambda one: bool(one.called), 300)
    assert (move.step, move.called) == (Step.SETTLING, "KUBELET_MEMORY_KEPT"), move.why
    assert not opened(site, name), "it stays closed until somebody decides"
    alert = Alert.objects.get(subject=f"move {move.public_id}", over_at=None)
    assert alert.code == move.called
    print(f"{name}: {move.called}: {move.why}")
    # That it called somebody was right: five minutes after another restart no Pod starts.
    site.machines[name].fault("kubelet-restart")
    at, grace = time.monotonic(), Times().grace.total_seconds() + 15
    yield from awaited(lambda: time.monotonic() - at > grace, "the grace", grace + 60)
    site.make("caught", name, tolerations=TOLERATES)
    yield from awaited(lambda: kubelet_trap(read_pod(site.pod("caught"))), "the trap")
    assert kubelet_trap(read_pod(site.pod("caught"))) == RESOURCE
    print(f"{name}: KUBELET_TRAP")
    site.remove("caught")
    # The cure: the way back, where the plugin runs for a moment, and the way again in true time.
    NodePool.objects.filter(pk=pool.pk).update(settling=SETTLING)
    move = moves.turn_back(move, **by(site))
    yield from turned(site, move, ended)
    told(move)
    pool.refresh_from_db()
    yield from awaited(lambda: site.owner(pool, name) == "plugin", "the plugin's ownership")
    again = site.begin(pool, name, Direction.TO_DRA)
    yield from turned(site, again, ended)
    told(again)
    assert not Alert.objects.filter(subject=f"move {move.public_id}", over_at=None).exists()
    site.make("at-last", name)
    yield from awaited(lambda: running(site, "at-last"), "a Pod by DRA at last")


@pytest.fixture
def site(real_plane: ControlPlane, tmp_path: Path) -> Iterator[Site]:
    """Three real nodes, called to by the plugin, and the product with the rights of `deploy/`."""
    admin = gateway(real_plane.admin_kubeconfig)
    install_probe(RealGround(admin, ""))
    for obj in rights():
        admin.apply(obj, manager="berth-playground", force=True)
    admin.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}, manager="test"
    )
    ground = RealGround(admin, SPACE)
    ground.wait("the account", lambda: ground.get("ServiceAccount", "default"))
    names = ["mover", "keeper", "trapped"]
    with ExitStack() as stack:
        stack.callback(admin.delete, Ref("Namespace", SPACE))
        nodes: list[RealNode] = start_nodes(stack, real_plane, tmp_path, names, settings=TRUE_PACE)
        for name in names:
            admin.merge(Ref("Node", name), {"metadata": {"labels": {SWITCHES[0]: "true"}}})
        account = real_plane.service_account_kubeconfig
        watcher = cluster.connect(account(SYSTEM_NAMESPACE, "berth-watch"))
        with following(watcher):
            yield Site(
                admin,
                cluster.connect(account(SYSTEM_NAMESPACE, "berth-worker")),
                PlatformAccess(make_person("olga"), frozenset({"operator"})),
                {node.name: Machine(node, node.name) for node in nodes},
            )


def test_there_and_back_beside_a_baseline_and_a_trap_that_is_cured(
    site: Site, real_plane: ControlPlane, tmp_path: Path
) -> None:
    site.make("baseline", "keeper")
    site.make("beside", "keeper", device=False)
    until(lambda: running(site, "baseline"), seconds=90, what="the baseline")
    before = site.pod("baseline")["status"]["containerStatuses"]
    witness = gateway(real_plane.admin_kubeconfig)
    with sampling(witness, tmp_path / "witness.jsonl", namespace=SPACE, resource=RESOURCE) as file:
        stories = [there_and_back(site, "mover"), trapped_and_cured(site, "trapped")]
        while stories:
            stories = [one for one in stories if next(one, "over") is None]
            time.sleep(0.25)
    assert site.pod("baseline")["status"]["containerStatuses"] == before
    seen = samples(file)
    span = seen[-1]["at"] - seen[0]["at"]
    print(f"{len(seen)} samples in {span:.0f} s, one every {span / len(seen) * 1000:.0f} ms")
    assert len(seen) > span, "at least one look a second"
    both = [one for one in seen if one["plugin"] and one["claims"]]
    assert both, "the witness saw both books in use, on different nodes"
    assert restarted(seen) == []
    assert used_twice(seen) == []
