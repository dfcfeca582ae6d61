"""One node, real or simulated, and a namespace: what a script does there, and what it proves.

Proofs are asked of what the API server shows at that moment, as a controller would.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from devices.cluster.gateway import Ref
from devices.dra.conversion import (
    DaemonSet,
    Look,
    NodeReport,
    Place,
    Proof,
    Times,
    Uses,
    Verdict,
    claims_are_free,
    kubelet_trap,
    memory_is_clean,
    read_report,
    settling_is_over,
    taint_holds,
    uses,
)
from devices.dra.ownership import Ownership, ownership
from devices.dra.pods import read_pod
from devices.dra.snapshot import CLAIM, CLASS, NODE, POD, SLICE, read_kinds
from playground.faults.table import broken
from playground.fleet.fleet import Fleet
from playground.realnodes.node import RealNode
from tests.playground.conftest import a_pod, condition
from tests.playground.probing import ended_probe
from tests.playground.realnode import RealGround
from tests.playground.situations.machines import Machine

Obj = dict[str, Any]

RESOURCE = "helios.example/gpu"
DRIVER = "gpu.helios.example"
PLUGIN_SET = DaemonSet("helios", "gpu-plugin-helios-example-plugin")
DRIVER_SET = DaemonSet("helios", "gpu-helios-example-node")
TAINT = "berth.dev/quiescing"
CLOSED = {"key": TAINT, "value": "test", "effect": "NoSchedule"}
TOLERATES = [{"key": TAINT, "operator": "Exists", "effect": "NoSchedule"}]
ONE = {RESOURCE: "1"}
HEARD = (NODE, POD, CLAIM, SLICE, CLASS)
LOOK_EVERY = 0.25
# From here on the kubelet's own waits are short enough to be looked at with less patience.
LEAST = timedelta(seconds=2)


def times_of(scale: float) -> Times:
    """What is waited for on a node whose minutes last so much of a real one's."""
    real = Times()
    return Times(
        grace=real.grace * scale,
        settling=real.settling * scale,
        margin=max(real.margin * scale, LEAST),
        second_look=max(real.second_look * scale, LEAST),
        cleaning=max(real.cleaning * scale, LEAST),
    )


def now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Stand:
    """`said` is the story with the seconds since its beginning, for whoever reads the test's log.

    `mixed` are the moments at which both paths had given out devices of this node. `scale`: its
    minutes last so much of a real node's.
    """

    machine: Machine
    ground: RealGround
    scale: float = 1.0
    said: list[str] = field(default_factory=list)
    mixed: list[str] = field(default_factory=list)
    reports: list[NodeReport] = field(default_factory=list)
    began: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        uid = self.ground.node(self.node)["metadata"]["uid"]
        self.place = Place(
            node=self.node,
            uid=uid,
            resource=RESOURCE,
            driver=DRIVER,
            plugin_sets=(PLUGIN_SET,),
            driver_sets=(DRIVER_SET,),
            offered=2,
            hardware=2,
        )
        self.times = times_of(self.scale)

    @property
    def node(self) -> str:
        return self.machine.name

    @property
    def real(self) -> RealNode | None:
        return self.machine.ground if isinstance(self.machine.ground, RealNode) else None

    @property
    def fleet(self) -> Fleet:
        assert isinstance(self.machine.ground, Fleet)
        return self.machine.ground

    def say(self, text: str) -> None:
        self.said.append(f"{time.monotonic() - self.began:6.1f} s  {text}")

    # Looking

    def look(self) -> Look:
        """Everything that a proof may want to see, listed now."""
        moment = now()
        pairs = [(kind, one) for kind in HEARD for one in self.ground.admin.list(kind).items]
        look = Look(read_kinds(pairs), dict.fromkeys(HEARD, moment))
        used = uses(self.place, look.snapshot)
        if used.mixed:
            pods = ", ".join(str(each.pod) for each in used.holders)
            self.mixed.append(f"{pods} and {', '.join(map(str, used.claims))}")
        return look

    def uses(self) -> Uses:
        return uses(self.place, self.look().snapshot)

    def owned(self) -> Ownership:
        """Who owns the devices of this node, as its pages would say."""
        [found] = [
            each
            for each in ownership(self.look().snapshot)
            if each.node == self.node and each.type == RESOURCE
        ]
        return found

    def shown(self) -> tuple[str | None, str | None]:
        """Capacity and allocatable of the resource; None where the key is absent."""
        status = self.ground.node(self.node)["status"]
        return status["capacity"].get(RESOURCE), status["allocatable"].get(RESOURCE)

    # Proving

    def asked(self, proof: Callable[..., Proof], **options: Any) -> Proof:
        return proof(self.place, self.look(), now(), **options)

    def verdict(self, proof: Callable[..., Proof], **options: Any) -> str:
        found = self.asked(proof, **options)
        self.say(f"{proof.__name__}: {found.verdict} ({found.why})")
        return found.verdict.value

    def until(self, proof: Callable[..., Proof], *, seconds: float = 60, **options: Any) -> Proof:
        """The proof, as soon as it is one; fails with its last reason."""
        return self._until(proof.__name__, lambda: self.asked(proof, **options), seconds)

    def until_empty(self, proof: Callable[..., Proof], **options: Any) -> Proof:
        """The proof of a node that must be seen empty twice; it is asked for a report meanwhile,
        where the proof wants one. A kubelet that has just started counts later."""
        seconds = 90 + self.times.cleaning.total_seconds()
        since: datetime | None = None

        def ask() -> Proof:
            nonlocal since
            moment = now()
            if proof is claims_are_free:
                options["report"] = self.reports[-1] if self.reports else None
            given = {**options, "times": self.times, "empty_since": since}
            found = proof(self.place, self.look(), moment, **given)
            if found.verdict is Verdict.NOT_KNOWN and since is not None:
                self.probe()
            elif found.again is None and not found.proved:
                since = None
            elif since is None:
                since = moment
            return found

        return self._until(proof.__name__, ask, seconds)

    def until_kept_off(self, trial: str) -> None:
        """A Pod that the taint keeps off; it is made anew where it was placed before the scheduler
        had heard of the taint."""

        def ask() -> Proof:
            if self.ground.get("Pod", trial) is None:
                self.pod(trial, limits={}, ready=False)
            found = self.asked(taint_holds, taint=TAINT, trial=self.key(trial))
            if self.ground.pod(trial)["spec"].get("nodeName"):
                self.delete(trial)
            return found

        self._until("taint_holds", ask, 60)

    def until_settled(self, plugin_off: datetime) -> datetime:
        """Waits as long as the proof says, asking the node at the end; when it was proved."""
        options = {"plugin_off": plugin_off, "times": self.times}
        first = self.asked(settling_is_over, reports=self.reports, **options)
        assert first.verdict is Verdict.NOT_YET, first
        assert first.again is not None and first.again > now()

        def ask() -> Proof:
            found = self.asked(settling_is_over, reports=self.reports, **options)
            if found.verdict is Verdict.NOT_KNOWN:
                self.probe()
            return found

        self._until("settling_is_over", ask, self.times.settling.total_seconds() + 60)
        return now()

    def memory(self, plugin_off: datetime) -> Proof:
        found = memory_is_clean(self.place, self.reports, plugin_off=plugin_off, times=self.times)
        self.say(f"memory_is_clean: {found.verdict} ({found.why})")
        return found

    def _until(self, name: str, ask: Callable[[], Proof], seconds: float) -> Proof:
        began = time.monotonic()
        before = ""
        while True:
            found = ask()
            if found.proved:
                self.say(f"{name}: proved after {time.monotonic() - began:.1f} s ({found.why})")
                return found
            if found.why != before:
                self.say(f"{name}: {found.verdict} ({found.why})")
                before = found.why
            if time.monotonic() - began > seconds:
                pytest.fail(f"{name} not proved in {seconds:.0f} s: {found}\n{self.story()}")
            time.sleep(LOOK_EVERY)

    def story(self) -> str:
        return "\n".join((*self.said, self.ground.story()))

    # Doing

    def path(self, to: str) -> None:
        """Sets the labels that call plugin and driver: plugin, dra, both or none."""
        self.say(f"path {to}")
        self.machine.fault("path", to=to)

    def restart_kubelet(self) -> None:
        self.say("the kubelet restarts")
        self.machine.fault("kubelet-restart")
        self._ready()

    @contextlib.contextmanager
    def kubelet_down(self) -> Iterator[None]:
        """What the block does, the kubelet finds when it starts again."""
        self.say("the kubelet is down")
        with broken(self.machine.ground, "kubelet-down", node=self.node):
            yield
        self._ready()

    def _ready(self) -> None:
        seen = lambda: condition(self.ground.node(self.node), "Ready") == "True"  # noqa: E731
        self.ground.wait("the node Ready", seen, seconds=60)

    def close(self, *, closed: bool = True) -> None:
        """Sets or takes the taint that keeps Pods off."""
        self.say("closed" if closed else "open")
        spec = self.ground.node(self.node)["spec"]
        taints = [one for one in spec.get("taints", ()) if one["key"] != TAINT]
        taints += [CLOSED] if closed else []
        self.ground.admin.merge(Ref("Node", self.node), {"spec": {"taints": taints}})

    def pod(self, name: str, *, ready: bool = True, **options: Any) -> Obj:
        """Makes a Pod for this node that asks for one device by its extended name, unless it is to
        ask otherwise; returns it when it is Ready."""
        if "claim" not in options:
            options = {"limits": ONE, **options}
        if "bound" not in options:
            options = {"node": self.node, **options}
        self.ground.make(a_pod(name, **options))
        if not ready:
            return {}
        found = self.ground.ready(name, seconds=40)
        self.say(f"Pod {name} is Ready")
        return found

    def delete(self, *names: str, gone: bool = True, **options: Any) -> None:
        for name in names:
            self.ground.delete("Pod", name, **options)
        for name in names if gone else ():
            self.ground.gone("Pod", name, seconds=40)

    def key(self, pod: str) -> tuple[str, str]:
        return (self.ground.namespace, pod)

    def devices(self, pod: str) -> list[str]:
        """Ids of the plugin's devices that a Pod's status names."""
        return [
            one["resourceID"]
            for status in self.ground.pod(pod)["status"]["containerStatuses"]
            for entry in status.get("allocatedResourcesStatus", ())
            if entry["name"] == RESOURCE
            for one in entry["resources"]
        ]

    def failed(self, pod: str) -> tuple[str, str]:
        """Reason and message of a Pod that the kubelet does not admit."""
        said = lambda: self.ground.pod(pod)["status"].get("reason")  # noqa: E731
        self.ground.wait(f"Pod {pod} refused", said, seconds=30)
        status = self.ground.pod(pod)["status"]
        self.say(f"Pod {pod} {status['phase']}: {status['reason']}: {status['message']}")
        return status["reason"], status["message"]

    def waits(self, pod: str, words: str) -> None:
        """Returns when the scheduler has said these words of a Pod."""

        def said() -> bool:
            conditions = self.ground.pod(pod).get("status", {}).get("conditions", ())
            return any(words in one.get("message", "") for one in conditions)

        self.ground.wait(f"the scheduler says {words}", said, seconds=30)

    def given(self, pod: str) -> list[Obj]:
        """What the claim holds that the scheduler made for a Pod's extended resources."""
        told = self.ground.pod(pod)["status"]["extendedResourceClaimStatus"]
        return self.ground.results(told["resourceClaimName"])

    def restarts(self, pod: str) -> int:
        [status] = self.ground.pod(pod)["status"]["containerStatuses"]
        return int(status["restartCount"])

    def runs(self, pod: str) -> bool:
        [status] = self.ground.pod(pod)["status"]["containerStatuses"]
        return "running" in status["state"]

    def trapped(self, pod: str) -> str:
        return kubelet_trap(read_pod(self.ground.pod(pod)))

    def kill_container(self, pod: str) -> None:
        """The container's process dies; the kubelet has to start it again."""
        self.say(f"the container of {pod} is killed")
        uid = self.ground.pod(pod)["metadata"]["uid"]
        if self.real is None:
            self.fleet.kubelets[self.node].pods.crash(uid)
            return
        killed = 0
        for process in self.real.processes():
            with contextlib.suppress(OSError):
                groups = Path(f"/proc/{process.pid}/cgroup").read_text()
                if f"pod{uid}" in groups and process.name() != "pause":
                    os.kill(process.pid, signal.SIGKILL)
                    killed += 1
        assert killed, "the container has a process"

    def restarted(self, pod: str, before: int) -> None:
        again = lambda: self.restarts(pod) > before and self.runs(pod)  # noqa: E731
        self.ground.wait(f"the container of {pod} started again", again, seconds=60)
        self.say(f"the container of {pod} runs again")

    def remove_socket(self) -> None:
        """The plugin's socket file vanishes; the kubelet, which has it open, does not notice."""
        if self.real is not None:
            folder = self.real.path("/var/lib/kubelet/device-plugins")
            (folder / f"{RESOURCE.replace('/', '_')}.sock").unlink()

    @contextlib.contextmanager
    def unhealthy(self) -> Iterator[None]:
        """The plugin says that all its devices are unwell."""
        self.say("the plugin's devices are unwell")
        self._tell(healthy=False)
        yield
        self._tell(healthy=True)

    def _tell(self, *, healthy: bool) -> None:
        names = ("gpu-0", "gpu-1")
        if self.real is not None:
            health = {} if healthy else {name: {"state": "Unhealthy"} for name in names}
            self.real.write_faults({"plugins": {RESOURCE: {"health": health}}})
            return
        for name in names:
            self.fleet.kubelets[self.node].devices.tell(RESOURCE, name, healthy=healthy)

    def probe(self) -> NodeReport:
        """Asks the node, which makes its kubelet forget; remembers the answer."""
        report = read_report(read_pod(ended_probe(self.ground, self.node, RESOURCE)))
        self.reports.append(report)
        self.say(
            f"the node says: plugin's devices {dict(report.devices)}, claims prepared"
            f" {dict(report.claims_in_use)}, kubelet since {report.kubelet_started:%H:%M:%S}"
        )
        return report
