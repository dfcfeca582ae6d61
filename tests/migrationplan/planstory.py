"""A plan on a real control plane with simulated nodes: everything as the product does it, and a
witness beside it that shares nothing with the product.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.utils import timezone

from devices.catalogue import offers
from devices.cluster.gateway import ClusterError, Gateway, Ref
from devices.fleet.ownershipbook import scan
from devices.forecasts.warm import fresh
from devices.models import NodePool, OwnershipLine
from devices.tenancy import freezeturn as freeze_turns
from migrationplan.models import Move, Plan, Wave
from migrationplan.moving import reconcile as move_turns
from migrationplan.plans import making
from migrationplan.plans import reconcile as plan_turns
from migrationplan.plans.wishes import PlanWish, WaveWish
from playground.fleet.fleet import Fleet
from portal.approvals.decisions import decide
from portal.approvals.rules import Verdict
from tenants.access import PlatformAccess, decider_of
from tests.factories import NOON
from tests.migrationplan.sampling import restarted, samples, used_twice
from tests.playground.conftest import a_pod

RESOURCE, DRIVER = "helios.example/gpu", "gpu.helios.example"
PLUGIN_SWITCH, DRIVER_SWITCH = "helios.example/plugin", "helios.example/driver"
NAMESPACE = "moved"
#: A label by which the nodes of a story are told from others of the same plane.
FLEET = "helios.example/fleet"


class PlanStory:
    """Turns as the sweeps call them, until something is so."""

    def __init__(
        self,
        fleet: Fleet,
        worker: Gateway,
        operator: PlatformAccess,
        approver: PlatformAccess,
        scale: float,
    ) -> None:
        self.admin, self.worker, self.fleet = fleet.admin, worker, fleet
        self.operator, self.approver, self.scale = operator, approver, scale
        self.names = list(fleet.kubelets)
        self.scanned = 0.0
        #: Whether its worker may die in a turn.
        self.mortal = False

    def pool(self) -> NodePool:
        """All of its nodes by plugin, as a node pool."""
        for name in self.names:
            labels = {PLUGIN_SWITCH: "true", DRIVER_SWITCH: None, FLEET: str(len(self.names))}
            self.admin.merge(Ref("Node", name), {"metadata": {"labels": labels}})
        space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
        self.admin.apply(space, manager="test")
        return NodePool.objects.create(
            slug="helios", name="Helios", selector={FLEET: str(len(self.names))},
            resource=RESOURCE, driver=DRIVER, device_class="l40s",
            plugin_label=f"{PLUGIN_SWITCH}=true", driver_label=f"{DRIVER_SWITCH}=true",
            plugin_sets=["helios/gpu-plugin-helios-example-plugin"],
            driver_sets=["helios/gpu-helios-example-node"], devices_per_node=2,
            settling=timedelta(seconds=320) * self.scale,
            made_by=self.operator.user.person, made_at=NOON,
        )  # fmt: skip

    def owners(self) -> dict[str, str]:
        lines = OwnershipLine.objects.filter(until=None, node__in=self.names)
        return {line.node: line.owner for line in lines if line.type in (RESOURCE, DRIVER)}

    def look(self) -> None:
        """The book of owners, as often as beat has it written, and a little more."""
        if time.monotonic() - self.scanned > 1 and (seen := fresh()) is not None:
            scan(seen.now, timezone.now())
            offers.count(timezone.now())
            self.scanned = time.monotonic()

    def owned(self, owner: str, names: Sequence[str] = (), seconds: float = 300) -> None:
        wanted = names or self.names
        self.until(lambda: all(self.owners().get(one) == owner for one in wanted), seconds, owner)

    def plan(self, *waves: WaveWish) -> Plan:
        seen = fresh()
        assert seen is not None
        return making.make(
            PlanWish("Helios to DRA", ("helios",), "to DRA", waves=waves),
            access=self.operator, snapshot=seen.now, request_id="request-p", now=timezone.now(),
        )  # fmt: skip

    def submit(self, wave: Wave, *, approve: bool = True) -> None:
        seen = fresh()
        making.submit(
            wave, access=self.operator, reason="Agreed", snapshot=seen.now if seen else None,
            request_id="request-s", now=timezone.now(),
        )  # fmt: skip
        wave.refresh_from_db()
        if approve:
            self.approve(wave)

    def approve(self, wave: Wave) -> None:
        assert wave.approval is not None
        decide(
            approval_id=wave.approval, decider=decider_of(self.approver.user, timezone.now()),
            verdict=Verdict.APPROVE, comment="", request_id="r", now=timezone.now(),
        )  # fmt: skip

    def by(self, access: PlatformAccess | None = None) -> dict[str, Any]:
        who = access or self.operator
        return {"access": who, "request_id": "request-v", "now": timezone.now()}

    def work(self, name: str, node: str, **labels: str) -> None:
        """A Pod with one device of the plugin, which runs until its owner ends it."""
        pod = a_pod(name, node=node, limits={RESOURCE: "1"})
        pod["metadata"] |= {"namespace": NAMESPACE, "labels": labels}
        self.admin.create(pod)

    def end(self, name: str) -> None:
        """Its owner ends it."""
        self.admin.delete(Ref("Pod", name, NAMESPACE), grace_seconds=1)

    def running(self, name: str) -> bool:
        found = self.admin.get(Ref("Pod", name, NAMESPACE))
        return found is not None and found["status"].get("phase") == "Running"

    def turn(self) -> None:
        """Whatever is due, once."""
        now = timezone.now()
        for public_id in plan_turns.due(now):
            self._turn(plan_turns.turn, public_id)
        for public_id in move_turns.due(now):
            self._turn(move_turns.turn, public_id)
        for public_id in freeze_turns.due(now):
            self._turn(freeze_turns.turn, public_id)
        self.look()

    def _turn(self, turn: Callable[..., object], public_id: str) -> None:
        try:
            turn(public_id, gateway=self.worker, now=timezone.now())
        except ClusterError:
            return  # as Celery's retry would
        except SystemExit:
            assert self.mortal

    def until(self, seen: Callable[[], object], seconds: float = 600, what: str = "") -> None:
        end = time.monotonic() + seconds
        while not seen():
            self.turn()
            assert time.monotonic() < end, f"{what}\n{self.told()}"
            time.sleep(0.2)

    def phase(self, wave: Wave, phase: str, seconds: float = 600) -> Wave:
        def there() -> bool:
            wave.refresh_from_db()
            return wave.phase == phase

        self.until(there, seconds, f"the wave is {wave.phase}, not {phase}")
        return wave

    def told(self) -> str:
        lines = [f"owners {self.owners()}"]
        for wave in Wave.objects.all():
            lines.append(f"{wave}: {wave.phase}, {wave.why} {wave.code}")
            lines += [f"    {row}: {row.why}" for row in wave.nodes.all()]
            lines += [f"    {one.at:%H:%M:%S} {one}" for one in wave.events.all()]
        for move in Move.objects.all():
            lines.append(f"{move}: {move.why} {move.called} {move.evidence}")
        return "\n".join(lines)


@contextmanager
def load(gateway: Gateway, *, every: float = 1.0, lasts: float = 5.0) -> Iterator[set[str]]:
    """Pods that ask for one device come and go on any node for as long as the block lasts; their
    owners end them. Yields the names of those that ran.
    """
    stop, ran = threading.Event(), set[str]()
    running: dict[str, float] = {}

    def work() -> None:
        number = 0
        while not stop.wait(every):
            number += 1
            pod = a_pod(f"load-{number}", limits={RESOURCE: "1"})
            pod["metadata"]["namespace"] = NAMESPACE
            with suppress(ClusterError):
                gateway.create(pod)
                running[f"load-{number}"] = time.monotonic() + lasts
            for name, ends in list(running.items()):
                with suppress(ClusterError):
                    found = gateway.get(Ref("Pod", name, NAMESPACE)) or {}
                    if found.get("status", {}).get("phase") == "Running":
                        ran.add(name)
                        if time.monotonic() > ends:
                            gateway.delete(Ref("Pod", name, NAMESPACE), grace_seconds=1)
                            del running[name]

    thread = threading.Thread(target=work, name="load")
    thread.start()
    try:
        yield ran
    finally:
        stop.set()
        thread.join(30)
        for name in running:
            gateway.delete(Ref("Pod", name, NAMESPACE), grace_seconds=1)


@contextmanager
def witness(gateway: Gateway, names: Sequence[str], file: Path) -> Iterator[None]:
    """Writes every 200 ms who owns the devices of these nodes, by what the API server has: what a
    plugin offers and whether slices are there.
    """
    stop = threading.Event()

    def work() -> None:
        with file.open("w") as out:
            while not stop.wait(0.2):
                try:
                    nodes = gateway.list("Node").items
                    slices = gateway.list("ResourceSlice").items
                except ClusterError:
                    continue
                published = {
                    one["spec"].get("nodeName") for one in slices if one["spec"]["driver"] == DRIVER
                }
                line = {
                    one["metadata"]["name"]: [
                        int(one["status"].get("allocatable", {}).get(RESOURCE, 0)),
                        one["metadata"]["name"] in published,
                        PLUGIN_SWITCH in one["metadata"].get("labels", {}),
                        DRIVER_SWITCH in one["metadata"].get("labels", {}),
                    ]
                    for one in nodes
                    if one["metadata"]["name"] in names
                }
                out.write(json.dumps({"at": time.time(), "nodes": line}) + "\n")

    thread = threading.Thread(target=work, name="witness of owners")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(30)


def two_owners(file: Path) -> list[str]:
    """Moments at which a node had both: devices by plugin and slices, or both switches on."""
    found = []
    for text in file.read_text().splitlines():
        line = json.loads(text)
        for name, (offered, published, plugin, driver) in line["nodes"].items():
            if (offered and published) or (plugin and driver):
                found.append(f"{line['at']}: {name} {offered} {published} {plugin} {driver}")
    return found


def nothing_happened(folder: Path, *, least: int) -> None:
    """Judges both logs: no Pod restarted, no device used twice, no node with two owners."""
    seen = samples(folder / "pods.jsonl")
    assert len(seen) >= least, "the witness saw too little"
    assert restarted(seen) == []
    assert used_twice(seen) == []
    assert len((folder / "owners.jsonl").read_text().splitlines()) >= least
    assert two_owners(folder / "owners.jsonl") == []
