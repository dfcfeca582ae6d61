"""What is broken during chaos, one thing at a time, and mended again; seeded."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from threading import Event, Thread

import psutil

from playground.commands.fleet import mailbox
from playground.errors import PlaygroundError
from playground.faults.table import TABLE
from playground.running.supervisor import records
from tests.journeys.conftest import Demo

#: Processes of Berth and its servers: killed, or stopped for a while as by a slow machine.
PROCESSES = ("web", "watch", "worker", "beat", "valkey", "postgres", "fleet")
COMPONENTS = ("kube-apiserver", "kube-scheduler", "kube-controller-manager", "etcd")
#: A node, a driver on it, the ways to the API server: begun, and ended after a while.
FAULTS: tuple[tuple[str, dict[str, object]], ...] = (
    ("driver-down", {"node": "a100-c01", "driver": "gpu.helios.example"}),
    ("driver-restart", {"node": "a100-c02", "driver": "gpu.helios.example"}),
    ("kubelet-down", {"node": "a100-c01"}),
    ("kubelet-restart", {"node": "a100-c02"}),
    ("scheduler-down", {}),
    ("controller-manager-down", {}),
    ("apiserver-frozen", {}),
)
#: Only where the demo leads Berth through the proxy.
WAYS: tuple[tuple[str, dict[str, object]], ...] = (
    ("api-cut", {}),
    ("api-slow", {"delay": 0.5}),
    ("api-refused", {}),
    ("api-answers", {"answer": "429"}),
)


@dataclass
class Breaker:
    """Breaks something every `pause` seconds or so until it is told to stop; then all is mended.

    `log` says what was done, in order, for whoever reads a failure.
    """

    demo: Demo
    random: Random
    pause: float
    proxied: bool = False
    log: list[str] = field(default_factory=list)
    _over: Event = field(default_factory=Event)
    _thread: Thread | None = None
    _began: float = field(default_factory=time.monotonic)

    def start(self) -> None:
        self._thread = Thread(target=self._run, name="chaos")
        self._thread.start()

    def stop(self) -> None:
        """Returns when nothing is broken any more."""
        self._over.set()
        if self._thread is not None:
            self._thread.join(60)
            assert not self._thread.is_alive(), self.log[-5:]
        for name, arguments in (*FAULTS, *(WAYS if self.proxied else ())):
            if TABLE[name].end is not None:
                self._fault(name, arguments, mend=True)

    def _run(self) -> None:
        acts: list[Callable[[], None]] = [self._kill, self._kill, self._freeze, self._break]
        while not self._over.wait(self.random.uniform(0.3, 1.7) * self.pause):
            self.random.choice(acts)()

    def _kill(self) -> None:
        victim = self.random.choice((*PROCESSES, *COMPONENTS[:3]))
        if (pid := self._pid(victim)) is not None:
            self._say(f"kill -9 {victim}")
            self._signal(pid, signal.SIGKILL)

    def _freeze(self) -> None:
        victim = self.random.choice((*PROCESSES[:6], *COMPONENTS))
        length = self.random.uniform(0.5, 4.0)
        if (pid := self._pid(victim)) is not None:
            self._say(f"stop {victim} for {length:.1f} s")
            self._signal(pid, signal.SIGSTOP)
            self._over.wait(length)
            self._signal(pid, signal.SIGCONT)

    def _break(self) -> None:
        name, arguments = self.random.choice((*FAULTS, *(WAYS if self.proxied else ())))
        self._say(f"{name} {arguments}")
        if self._fault(name, arguments, mend=False) and TABLE[name].end is not None:
            self._over.wait(self.random.uniform(1.0, 5.0))
            self._fault(name, arguments, mend=True)

    def _fault(self, name: str, arguments: dict[str, object], *, mend: bool) -> bool:
        """False where it could not be done now, because something else is down."""
        try:
            if TABLE[name].of_fleet:
                letters = mailbox(self.demo.plane.folder)
                letters.ask("fault", fault=name, mend=mend, arguments=arguments)
            else:
                TABLE[name].do(self.demo.plane, mend=mend, arguments=arguments)
        except (PlaygroundError, OSError, KeyError) as error:
            self._say(f"  {'mending' if mend else 'beginning'} {name} failed: {error}")
            return False
        return True

    def _pid(self, victim: str) -> int | None:
        pids = self.demo.plane.pids()
        if victim in pids:
            return pids[victim]
        return next((one.pid for one in records(self.demo.folder) if one.name == victim), None)

    def _signal(self, pid: int, number: signal.Signals) -> None:
        """To the process and all below it; whoever is gone already is gone."""
        try:
            process = psutil.Process(pid)
            below = process.children(recursive=True) if number != signal.SIGKILL else []
        except psutil.NoSuchProcess:
            return
        for one in (process, *below):
            try:
                os.kill(one.pid, number)
            except ProcessLookupError:
                continue

    def _say(self, text: str) -> None:
        self.log.append(f"{time.monotonic() - self._began:6.1f} s  {text}")
