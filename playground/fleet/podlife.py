"""A Pod's life on its node: admitted, prepared, started, ended, and gone from the API."""

from __future__ import annotations

import contextlib
import logging
import random
import time
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from devices.cluster.gateway import Conflict, Missing, Ref
from playground.fleet import events, probe, runs
from playground.fleet.claims import PrepareFailed
from playground.fleet.clock import now
from playground.fleet.devicebook import NotAdmitted
from playground.fleet.node import ADDRESS
from playground.fleet.podstatus import DEADLINE, differs, status_of
from playground.fleet.runs import Container, Run, Stage

if TYPE_CHECKING:
    from playground.fleet.kubelet import Kubelet

log = logging.getLogger(__name__)

LOOK_AGAIN = 0.25  # a driver that hung may answer at any time
HELD_SECONDS = 3600.0  # waking is what ends it

Obj = dict[str, Any]


class Program(Protocol):
    """What a container of the fleet's own images does: a driver, a plugin, a controller."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


Launch = Callable[[Obj, "Kubelet"], Program | None]


class PodLife:
    """The Pods of one node. News comes by `see`; every Pod has a turn of its own."""

    def __init__(self, kubelet: Kubelet) -> None:
        self._kubelet = kubelet
        self._site = kubelet.site
        self._pods: dict[str, Obj] = {}
        self.runs: dict[str, Run] = {}
        self.programs: dict[str, Program] = {}
        self.launch: Launch = lambda pod, kubelet: None
        self._empty_since: datetime | None = None
        minor = int(kubelet.site.release.split(".")[1])
        self._tells_sandbox = minor >= 37

    def see(self, pod: Obj, *, gone: bool) -> None:
        """A Pod of this node as the API server has it now; `gone` when it has it no more."""
        uid = pod["metadata"]["uid"]
        if gone:
            self._pods.pop(uid, None)
            if uid in self.runs:
                self._site.turns.wake(("pod", uid))
            return
        known = self._pods.get(uid)
        if known is not None and runs.version(known) > runs.version(pod):
            return  # our own write was quicker than the watch
        self._pods[uid] = pod
        run = self.runs.get(uid)
        if run is not None:
            metadata = runs.metadata(pod)
            if run.seen_metadata not in (None, metadata):
                run.retry_at = 0.0  # an update of the Pod makes the kubelet look at once
            run.seen_metadata = metadata
        self._site.turns.add(("pod", uid), lambda: self._turn(uid))

    def wake(self) -> None:
        """Looks at every run, also of Pods that vanished while the kubelet was away."""
        for uid in list(self.runs):
            self._site.turns.wake(("pod", uid))

    def power_off(self) -> None:
        """The machine is gone, and nothing that ran on it is remembered."""
        for run in list(self.runs.values()):
            self._stop_program(run)
            self._site.turns.drop(("pod", run.uid))
        self.runs.clear()
        self._pods.clear()
        self._empty_since = now()

    def crash(self, uid: str, *, hold: bool = False) -> None:
        """The containers of a Pod die. `hold` keeps them from starting again until `let_go`."""
        run = self.runs[uid]
        run.held = hold
        self._stop_program(run)
        for name, container in run.containers.items():
            if container.running:
                run.containers[name] = container.end(now(), 137)
        if not hold:
            run.restart_at.update(dict.fromkeys(run.containers, 0.0))
        self._site.turns.wake(("pod", uid))

    def let_go(self, uid: str) -> None:
        """A Pod that was held after a crash may start again, at once."""
        run = self.runs[uid]
        run.held = False
        run.restart_at.update(dict.fromkeys(run.restart_at, 0.0))
        self._site.turns.wake(("pod", uid))

    # One turn

    def _turn(self, uid: str) -> float | None:
        if not self._kubelet.running:
            return None
        pod, run = self._pods.get(uid), self.runs.get(uid)
        if pod is None:
            return self._vanished(uid, run)
        if run is None:
            run = self._meet(pod)
        if pod["metadata"].get("deletionTimestamp"):
            return self._end(pod, run)
        match run.stage:
            case Stage.ADMITTED:
                return self._prepare(pod, run)
            case Stage.PREPARED:
                return self._start(pod, run)
            case Stage.STARTED:
                return self._watch_over(pod, run)
            case _:
                self._report(pod, run)
                return None

    def _meet(self, pod: Obj) -> Run:
        """A Pod that this kubelet has not met: it is new, or the fleet has just come back."""
        uid = pod["metadata"]["uid"]
        run = runs.resume(pod, now())
        if run is None:
            run = runs.begin(pod, now())
            if not pod["metadata"].get("deletionTimestamp"):
                self._admit(pod, run)
        elif run.stage is Stage.STARTED and self._lost(run):
            for name, container in run.containers.items():
                run.containers[name] = container.end(now(), 137)
            if pod["spec"].get("restartPolicy") != "Never":
                run.stage = Stage.ADMITTED
        elif run.stage is Stage.STARTED:
            self._kubelet.adopt(pod)
            self._launch(pod, run)
        run.seen_metadata = runs.metadata(pod)
        self.runs[uid] = run
        return run

    def _lost(self, run: Run) -> bool:
        """Whether the machine died since these containers ran, whatever the Pod's status says."""
        since = self._empty_since
        return since is not None and any(
            one.started and one.started < since for one in run.containers.values()
        )

    def _admit(self, pod: Obj, run: Run) -> None:
        stored = self._site.sight.get("Node", self._kubelet.name) or {}
        allocatable = stored.get("status", {}).get("allocatable", {})
        try:
            self._kubelet.devices.allocate(pod, allocatable)
        except NotAdmitted as no:
            run.stage, run.reason = Stage.REJECTED, no.reason
            run.message = f"Pod was rejected: {no.message}"
            self._kubelet.recorder.say(pod, "Warning", no.reason, no.message)

    def _prepare(self, pod: Obj, run: Run) -> float | None:
        self._report(pod, run)
        clock = time.monotonic()
        if run.retry_at > clock:
            return run.retry_at - clock
        try:
            wait = self._kubelet.claims.prepare(pod, self._kubelet.gateway)
        except PrepareFailed as error:
            message = f"Failed to prepare dynamic resources: {error}"
            run.failure = message
            self._kubelet.recorder.say(pod, "Warning", events.FAILED_PREPARE, message)
            # Not the sync loop's back-off: SyncPod returns no error, so it is the next re-sync.
            wait = self._site.pace.resync * random.uniform(1.0, 1.5)
            run.retry_at = clock + wait
            return wait
        if wait:
            return wait
        run.stage, run.failure = Stage.PREPARED, ""
        takes = runs.seconds(pod, runs.START_AFTER, self._site.spec.start_seconds)
        run.start_at = clock + takes
        return takes

    def _start(self, pod: Obj, run: Run) -> float | None:
        clock = time.monotonic()
        if run.start_at > clock:
            return run.start_at - clock
        if wait := self._trapped(pod, run, run.containers):
            self._report(pod, run)
            run.start_at = clock + wait
            return wait
        for name in run.containers:
            self._start_container(pod, run, name)
        run.stage = Stage.STARTED
        self._launch(pod, run)
        return self._watch_over(pod, run)

    def _trapped(self, pod: Obj, run: Run, names: Iterable[str]) -> float:
        """When to try again to make containers that the kubelet cannot make; 0 where it can."""
        trapped = self._kubelet.devices.trap(pod)
        if not trapped:
            return 0.0
        self._kubelet.recorder.say(pod, "Warning", "Failed", f"Error: {trapped}")
        runs.caught(run, names, trapped)
        return self._site.pace.of(random.uniform(11.0, 13.0))

    def _start_container(self, pod: Obj, run: Run, name: str) -> None:
        container = run.containers[name] = run.containers[name].start(now())
        reason, text = events.PULLED
        self._say(pod, reason, text.format(image=container.image))
        for reason, text in (events.CREATED, events.STARTED):
            self._say(pod, reason, text)
        if probe.is_probe(pod):
            body = next(one for one in pod["spec"]["containers"] if one["name"] == name)
            run.containers[name] = container.end(now(), *probe.answer(body, self._kubelet.report))

    def _watch_over(self, pod: Obj, run: Run) -> float | None:
        """Ends containers whose time is over, starts again those that may, tells how it stands."""
        moment, clock = now(), time.monotonic()
        policy = pod["spec"].get("restartPolicy", "Always")
        waits: list[float] = []
        if (deadline := runs.deadline(pod, run)) is not None:
            if deadline <= moment:
                run.reason, run.message = DEADLINE
                self._kubelet.recorder.say(pod, "Normal", *DEADLINE)
                return self._finish(pod, run)
            waits.append((deadline - moment).total_seconds())
        for name, container in list(run.containers.items()):
            if container.running and (ends := runs.ends_at(pod, container)):
                at, code = ends
                if at > moment:
                    waits.append((at - moment).total_seconds())
                    continue
                container = run.containers[name] = container.end(moment, code)
            if container.finished and runs.restarts(policy, container):
                waits.append(self._restart(pod, run, container, clock))
        if all(one.finished and name not in run.restart_at for name, one in run.containers.items()):
            return self._finish(pod, run)
        self._report(pod, run)
        return min(waits, default=None)

    def _restart(self, pod: Obj, run: Run, container: Container, clock: float) -> float:
        due = run.restart_at.get(container.name)
        if due is None:
            pause = self._site.pace.crash_back_off * min(2**container.restarts, 30)
            due = run.restart_at[container.name] = clock + pause
            reason, text = events.BACK_OFF
            words = text.format(name=container.name, pod=run.name)
            self._kubelet.recorder.say(pod, "Warning", reason, words)
            run.containers[container.name] = runs.waiting(
                container,
                "CrashLoopBackOff",
                f"back-off {pause:.0f}s restarting failed container={container.name}"
                f" pod={run.name}_{run.namespace}({run.uid})",
            )
        if run.held:
            return HELD_SECONDS
        if due > clock:
            return due - clock
        if wait := self._trapped(pod, run, [container.name]):
            run.restart_at[container.name] = clock + wait
            return wait
        del run.restart_at[container.name]
        self._start_container(pod, run, container.name)
        self._launch(pod, run)
        return 0.0

    # The end

    def _finish(self, pod: Obj, run: Run) -> float | None:
        """The Pod is over by itself: its devices go back first, then its phase is told."""
        for name, container in run.containers.items():
            if container.running:
                run.containers[name] = container.end(now(), 137 if run.reason else 0)
        run.restart_at.clear()
        self._stop_program(run)
        if wait := self._give_back(run):
            return wait
        run.stage = Stage.ENDED
        self._report(pod, run)
        self._kubelet.devices.release(run.uid)
        return None

    def _end(self, pod: Obj, run: Run) -> float | None:
        """Somebody deleted the Pod: stop, give back, and only then let the object go."""
        clock = time.monotonic()
        if run.stage is Stage.ADMITTED and self._kubelet.claims.under_way(run.uid):
            # SyncPod hands on a context without its cancellation: it waits for the driver, and
            # goes on to start what it then ends.
            with contextlib.suppress(PrepareFailed):
                if wait := self._kubelet.claims.prepare(pod, self._kubelet.gateway):
                    return min(wait, LOOK_AGAIN)
                run.stage, run.start_at = Stage.PREPARED, 0.0
                self._start(pod, run)
                pod = self._pods.get(run.uid, pod)
        if run.alive:
            if run.stop_at is None:
                grace = float(pod["metadata"].get("deletionGracePeriodSeconds") or 0)
                takes = runs.seconds(pod, runs.STOP_AFTER, self._site.pace.of(0.5))
                run.stop_at = clock + min(grace, takes)
                for name, container in run.containers.items():
                    if container.running:
                        reason, text = events.KILLING
                        self._say(pod, reason, text.format(name=name))
                self._stop_program(run)
            if run.stop_at > clock:
                return run.stop_at - clock
            for name, container in run.containers.items():
                if container.running:
                    run.containers[name] = container.end(now(), 0)
        run.restart_at.clear()
        if wait := self._give_back(run):
            self._report(pod, run)
            return wait
        if run.stage is Stage.STARTED:
            run.stage = Stage.ENDED
            self._report(pod, run)
        self._kubelet.devices.release(run.uid)
        ref = Ref("Pod", run.name, run.namespace)
        with contextlib.suppress(Conflict):  # another Pod has the name by now; ours is gone
            self._kubelet.gateway.delete(ref, uid=run.uid, grace_seconds=0)
        return 5.0  # finalizers may hold the object; its end is news

    def _vanished(self, uid: str, run: Run | None) -> float | None:
        """The object is gone: usually because we were done; else by force, and we clean up late."""
        if run is not None:
            self._stop_program(run)
            for name, container in run.containers.items():
                if container.running:
                    run.containers[name] = container.end(now(), 137)
            if wait := self._give_back(run):
                return wait
            self._kubelet.devices.release(uid)
            del self.runs[uid]
        self._kubelet.recorder.forget(uid)
        self._site.turns.drop(("pod", uid))
        return None

    def _give_back(self, run: Run) -> float:
        """Unprepares; returns 0 when done, else when to try again. There is no event for it."""
        try:
            self._kubelet.claims.unprepare(run.uid)
        except PrepareFailed as error:
            if run.failure != str(error):
                log.warning("%s: %s/%s: %s", self._kubelet.name, run.namespace, run.name, error)
                run.failure = str(error)
            return max(0.5, self._site.pace.of(4.0))
        return 0.0

    # Programs and words

    def _launch(self, pod: Obj, run: Run) -> None:
        program = self.launch(pod, self._kubelet)
        if program is not None and run.uid not in self.programs:
            self.programs[run.uid] = program
            program.start()

    def _stop_program(self, run: Run) -> None:
        program = self.programs.pop(run.uid, None)
        if program is not None:
            program.stop()

    def _say(self, pod: Obj, reason: str, message: str) -> None:
        self._kubelet.recorder.say(pod, "Normal", reason, message)

    def _report(self, pod: Obj, run: Run) -> None:
        """Writes the Pod's status where it differs; Conflict where somebody was quicker."""
        wanted = status_of(
            pod,
            run,
            address=ADDRESS,
            moment=now(),
            health=lambda body: self._kubelet.device_health(pod, body),
            tells_sandbox=self._tells_sandbox,
        )
        if not differs(wanted, pod.get("status", {})):
            return
        version = pod["metadata"]["resourceVersion"]
        change = {"metadata": {"uid": run.uid, "resourceVersion": version}, "status": wanted}
        ref = Ref("Pod", run.name, run.namespace)
        try:
            written = self._kubelet.gateway.merge(ref, change, subresource="status")
        except Missing:
            return
        except Conflict:
            fresh = self._kubelet.gateway.get(ref)
            if fresh is not None and fresh["metadata"]["uid"] == run.uid:
                self.see({"kind": "Pod", **fresh}, gone=False)
            raise
        self.see(written, gone=False)
