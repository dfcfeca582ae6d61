"""The situations: each a short script that a real node and a simulated one go through alike."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from devices.cluster.gateway import Ref
from tests.playground.conftest import a_claim, a_pod, condition
from tests.playground.realnode import RealGround
from tests.playground.situations.machines import Machine
from tests.playground.situations.record import pod_status

RESOURCE = "helios.example/gpu"
FAILED = "FailedPrepareDynamicResources"
QUIET = 1.2  # seconds without news: all is said
RESTS_WITHIN = 15.0


@dataclass(slots=True)
class Stage:
    """One node and one namespace for one situation.

    `times`: seconds by name; `most`: those that are chance below so many seconds.
    `quiet_since` tells when the last news of the namespace came (monotonic).
    """

    machine: Machine
    ground: RealGround
    quiet_since: Callable[[], float]
    times: dict[str, float] = field(default_factory=dict)
    most: dict[str, float] = field(default_factory=dict)
    looks: dict[str, Any] = field(default_factory=dict)

    @property
    def node(self) -> str:
        return self.machine.name

    def pod(self, name: str = "a", **options: Any) -> None:
        self.ground.make(a_pod(name, node=self.node, **options))

    def claim(self, *, template: bool = False) -> None:
        self.ground.make(a_claim("c", "l40s", template=template))

    def claims(self) -> str:
        return f"{self.ground.namespace}/*"

    def ready(self, name: str = "a") -> None:
        self.ground.ready(name, seconds=40)

    def said(self, reason: str, name: str = "a", *, seconds: float = 60) -> None:
        self.ground.wait(reason, lambda: self.ground.said(name, reason), seconds=seconds)

    def delete(self, name: str = "a", **options: Any) -> None:
        self.ground.delete("Pod", name, **options)

    def gone(self, name: str = "a", *, seconds: float = 40) -> None:
        self.ground.gone("Pod", name, seconds=seconds)

    def claim_free(self) -> None:
        self.ground.wait("the claim free", lambda: not self.ground.results("c"))

    def slices(self, count: int, *, seconds: float = 20) -> None:
        seen = lambda: len(self.ground.devices(self.node)) == count  # noqa: E731
        self.ground.wait(f"{count} devices published", seen, seconds=seconds)

    def node_ready(self, status: str, *, seconds: float = 60) -> None:
        seen = lambda: condition(self.ground.node(self.node), "Ready") == status  # noqa: E731
        self.ground.wait(f"Node Ready={status}", seen, seconds=seconds)

    def lasting(self, name: str, wait: Callable[[], None], *, most: float = 0.0) -> None:
        """Waits, and remembers how long that was.

        With `most` it is chance how long it takes, up to that.
        """
        if most:
            self.most[name] = most
        began = time.monotonic()
        wait()
        self.times[name] = time.monotonic() - began

    def health(self, state: str) -> None:
        def told() -> bool:
            return f"'{state}'" in str(self.ground.pod("a")["status"]["containerStatuses"])

        self.ground.wait(f"the device {state}", told, seconds=40)

    def look(self, name: str) -> None:
        """Remembers how Pod a stands now, when whatever led there is over.

        A kubelet writes a Pod's status beside its other work: the first may come after an event.
        """
        self.begun()
        self.rest()
        self.looks[f"Pod a while {name}"] = [pod_status(self.ground.pod("a"))]

    def begun(self) -> None:
        """Waits until its kubelet has written of Pod a, which it does before it asks drivers."""
        told = lambda: self.ground.pod("a")["status"].get("containerStatuses")  # noqa: E731
        self.ground.wait("the kubelet's own words about Pod a", told)

    def container_ended(self) -> None:
        def ended() -> bool:
            statuses = self.ground.pod("a")["status"]["containerStatuses"]
            return all("terminated" in one["state"] for one in statuses)

        self.ground.wait("the container ended", ended)

    def rest(self) -> None:
        """Lets what is not awaited come: returns when there was no news for a while."""
        until = time.monotonic() + RESTS_WITHIN
        began = time.monotonic()
        while time.monotonic() < until:
            quiet = time.monotonic() - max(began, self.quiet_since())
            if quiet >= QUIET:
                return
            time.sleep(QUIET - quiet)


def normal_life(at: Stage) -> None:
    at.claim(template=True)
    at.pod(template="c")
    at.ready()
    at.rest()
    at.delete()
    at.gone()


def shared_claim(at: Stage) -> None:
    at.claim()
    at.pod("a", claim="c")
    at.pod("b", claim="c")
    at.ready("a")
    at.ready("b")
    at.delete("a")
    at.gone("a")
    at.rest()
    at.delete("b")
    at.gone("b")
    at.claim_free()


def prepare_fails(at: Stage) -> None:
    at.machine.fault("prepare-fails", claims=at.claims())
    at.claim()
    at.pod(claim="c")
    at.said(FAILED)
    at.look("preparing has failed")
    at.machine.mend()
    at.ready()


def call_fails(at: Stage) -> None:
    at.machine.fault("prepare-fails", claims=at.claims(), message="simulated: rpc broken", rpc=True)
    at.claim()
    at.pod(claim="c")
    at.said(FAILED)
    at.look("preparing has failed")
    at.machine.mend()
    at.ready()


def prepare_hangs(at: Stage) -> None:
    at.machine.fault("prepare-fails", claims=at.claims(), message="", hang=True)
    at.claim()
    at.pod(claim="c")
    at.lasting("the kubelet gives up", lambda: at.said(FAILED))
    at.machine.mend()
    at.ready()


def deleted_while_hanging(at: Stage) -> None:
    at.machine.fault("prepare-fails", claims=at.claims(), message="", hang=True)
    at.claim()
    at.pod(claim="c")
    at.begun()  # a Pod that its kubelet has not begun is gone as soon as it is deleted
    at.rest()
    at.delete()
    time.sleep(1)
    at.look("preparing hangs")
    assert at.ground.get("Pod", "a"), "it stays until the driver answers"
    at.machine.mend()
    at.gone()
    at.claim_free()


def unprepare_fails(at: Stage) -> None:
    at.claim()
    at.pod(claim="c")
    at.ready()
    at.machine.fault("unprepare-fails")
    at.delete()
    at.container_ended()
    at.look("its claim is not given back")
    assert at.ground.results("c"), "the claim stays allocated as long as the Pod is there"
    at.machine.mend()
    at.gone()
    at.claim_free()


def forced_deletion(at: Stage) -> None:
    at.claim()
    at.pod(claim="c")
    at.ready()
    at.delete(grace_seconds=0)
    at.gone()
    at.claim_free()


def device_unhealthy(at: Stage) -> None:
    at.claim()
    at.pod(claim="c")
    at.ready()
    at.rest()
    [held] = [one["device"] for one in at.ground.results("c")]
    at.machine.fault("device-unhealthy", device=held)
    at.health("Unhealthy")
    at.machine.mend()
    at.health("Healthy")


def extended_by_driver(at: Stage) -> None:
    at.pod(limits={RESOURCE: "1"})
    at.ready()
    at.rest()
    at.delete()
    at.gone()


def driver_killed(at: Stage) -> None:
    """Also: its slices are wiped 30 s later, and back when it is."""
    at.claim()
    at.pod(claim="c")
    at.ready()
    at.machine.fault("driver-down")
    at.lasting("the slices wiped", lambda: at.slices(0, seconds=60))
    at.look("its driver is down")
    at.machine.mend()
    at.slices(2)
    at.health("Healthy")
    at.delete()
    at.gone()
    at.claim_free()


def deleted_without_driver(at: Stage) -> None:
    """A Pod whose driver is away cannot go; it goes when the driver is back, whose slices stay."""
    at.claim()
    at.pod(claim="c")
    at.ready()
    at.machine.fault("driver-down")
    at.health("Unknown")
    at.delete()
    at.container_ended()
    at.machine.mend()
    at.gone(seconds=60)
    at.claim_free()


def node_silent(at: Stage) -> None:
    at.pod()
    at.ready()
    at.machine.fault("kubelet-down")
    at.node_ready("Unknown")
    unready = lambda: condition(at.ground.pod("a"), "Ready") == "False"  # noqa: E731
    at.ground.wait("the Pod not Ready", unready, seconds=60)
    at.look("its node is lost")
    taints = lambda: str(at.ground.node(at.node)["spec"].get("taints"))  # noqa: E731
    at.ground.wait("Pods are evicted", lambda: "NoExecute" in taints(), seconds=60)
    at.machine.mend()
    at.slices(0)
    at.node_ready("True")
    at.ready()
    at.ground.wait("no taints", lambda: taints() == "None")
    at.slices(2, seconds=90)


def kubelet_restarts(at: Stage) -> None:
    at.claim()
    at.pod(claim="c")
    at.ready()
    at.machine.fault("kubelet-down")
    time.sleep(0.5)
    at.machine.mend()
    at.slices(0)
    # The helper of real drivers compares 30 s after the first change that it has not looked at,
    # so at once where one is due; and not in the first minute, in which it believes its own writes.
    at.lasting("the slices restored", lambda: at.slices(2, seconds=90), most=60)
    at.ready()
    at.delete()
    at.gone()
    at.claim_free()


def node_deleted(at: Stage) -> None:
    at.claim()
    at.pod(claim="c")
    at.ready()
    at.machine.fault("node-deleted")
    at.slices(0)
    at.rest()
    at.delete(grace_seconds=0)
    at.gone()
    at.claim_free()


def extended_by_plugin(at: Stage) -> None:
    at.ground.admin.merge(
        Ref("Node", at.node),
        {"metadata": {"labels": {"helios.example/driver": None, "helios.example/plugin": "true"}}},
    )
    offered = lambda: (  # noqa: E731
        at.ground.node(at.node)["status"]["allocatable"].get(RESOURCE) == "2"
    )
    at.ground.wait("the plugin's devices", offered, seconds=40)
    at.pod(limits={RESOURCE: "1"})
    at.ready()
    at.rest()
    at.delete()
    at.gone()
    at.slices(0, seconds=60)  # the driver's


@dataclass(frozen=True, slots=True)
class Situation:
    """`lane`: situations of one lane come one after the other on one node.

    The slices of a kubelet that starts anew come back the sooner the older their driver is, so
    those situations come late in their lanes. `by_chance`: how events begin that a node tells of
    or not, as it happens.
    """

    name: str
    lane: str
    script: Callable[[Stage], None]
    by_chance: tuple[str, ...] = ()


TABLE = (
    Situation("a Pod with a claim lives and is deleted", "quick", normal_life),
    Situation("two Pods share a claim", "kubelet", shared_claim),
    Situation("preparing a claim fails", "deleted", prepare_fails),
    Situation("the whole call to prepare fails", "plugin", call_fails),
    Situation("a Pod is deleted while preparing hangs", "quick", deleted_while_hanging),
    Situation("giving back fails", "quick", unprepare_fails),
    # Whether the kubelet sees the deletion before the Pod is gone is chance.
    Situation("a Pod is deleted by force", "kubelet", forced_deletion, ("Normal Killing",)),
    Situation("a device is unhealthy", "quick", device_unhealthy),
    Situation("an extended resource comes from the driver", "quick", extended_by_driver),
    Situation("a Pod is deleted while its driver is down", "driver", deleted_without_driver),
    Situation("the driver is killed, and its slices wiped", "driver", driver_killed),
    Situation("a node is silent", "deleted", node_silent),
    Situation("a kubelet is killed and restarted", "kubelet", kubelet_restarts),
    Situation("an extended resource comes from the plugin", "plugin", extended_by_plugin),
    Situation("a Node is deleted", "deleted", node_deleted),
    Situation("preparing hangs", "hang", prepare_hangs),
)
