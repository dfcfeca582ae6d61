"""The machine that a real node is: its namespaces, its cgroup, and the programs that run in them.

`boot` makes them, with `init.py` as their first process; `halt` pulls the plug. It knows nothing of
Kubernetes. Process ids are those that this machine gives.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import psutil

from playground.errors import PlaygroundError
from playground.plane.components import REPOSITORY
from playground.realnodes import init, parts
from playground.realnodes.cgroups import NodeCgroup
from playground.running.processes import Program, look_up

INIT = "init"
FIRST = "first.json"  # in the folder: pid and start of the last boot's first process
HALTS_WITHIN = 15.0  # seconds; 0.1 on an idle machine
ENDS_WITHIN = 10.0
READY_WITHIN = 60.0
LOOK_EVERY = 0.05
NS_GET_PARENT = 0xB702  # linux/nsfs.h: a handle of the namespace above
# Where a node would hide its own folder from itself.
HIDDEN = (init.VOLATILE, *init.VIEW.values())


class Machine:
    """One in one folder. Whoever has the same folder means the same machine."""

    def __init__(self, folder: Path, name: str):
        self.folder = folder
        self.name = name
        self.cgroup = NodeCgroup(cgroup_name(folder))

    # Life

    @property
    def first_pid(self) -> int:
        """Its first process; 0 where it is off."""
        return self.pid(INIT)

    def is_on(self, *, tied: bool) -> bool:
        """Whether it is on, and with `tied` would end with this very process."""
        return bool(self.first_pid) and (self.program(INIT).tied_here or not tied)

    @property
    def keeper(self) -> int:
        """The process with which it would end; 0 where it stands by itself."""
        program = self.program(INIT)
        found = program.running()
        return psutil.Process(found.pid).ppid() if found and program.tied else 0

    def boot(self, *, tied: bool) -> None:
        """Returns when its view of things is made. With `tied` it ends when this process ends."""
        if hidden := next((place for place in HIDDEN if self.folder.is_relative_to(place)), ""):
            raise PlaygroundError(f"A real node cannot live in {hidden}: choose another folder.")
        (self.folder / init.READY).unlink(missing_ok=True)
        unshare = [parts.find_tool("unshare"), "--mount", "--pid", "--fork", "--mount-proc"]
        command = [*unshare, "--propagation=private", "--kill-child=SIGKILL", sys.executable]
        command += ["-m", "playground.realnodes.init", str(self.folder), self.cgroup.name]
        self.program(INIT).start(command, {"PYTHONPATH": str(REPOSITORY)}, tied=tied)
        self.wait(f"{self.name} on", lambda: (self.folder / init.READY).exists(), INIT)
        if found := look_up(self.first_pid):
            (self.folder / FIRST).write_text(json.dumps([found.pid, found.started]))

    def halt(self) -> None:
        """No process, mount, cgroup or socket stays, whatever was killed before."""
        outer = [self.program(note.stem) for note in (self.folder / "run").glob("*.json")]
        for program in outer:
            program.signal(signal.SIGCONT)  # `nsenter` freezes with what it started
        if pid := self.first_pid:
            for number in (signal.SIGTERM, signal.SIGCONT):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            self.program(INIT).wait(HALTS_WITHIN)
        for program in outer:
            program.kill()  # with `unshare` its child dies, and with that one the whole namespace
        gone = self._first_ends() and self.cgroup.remove()
        if not gone:
            left = ", ".join(map(str, sorted(self.cgroup.processes()))) or "its first one"
            raise PlaygroundError(f"Processes of {self.name} do not end: {left}")
        _remove_sockets(self.folder)

    def _first_ends(self) -> bool:
        """Waits for the first process of the last boot: it is gone only after all others.

        It dies with those who started it, but not at once.
        """
        try:
            pid, started = json.loads((self.folder / FIRST).read_text())
        except (FileNotFoundError, ValueError):
            return True
        until = time.monotonic() + HALTS_WITHIN
        while (found := look_up(pid)) and found.started == started:
            if time.monotonic() > until:
                return False
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            time.sleep(LOOK_EVERY)
        (self.folder / FIRST).unlink(missing_ok=True)
        return True

    # Programs in it

    def program(self, name: str) -> Program:
        """What was started here; behind it is the process in the node, see `pid`."""
        return Program(self.folder / "run" / f"{name}.json", self.folder / "logs" / f"{name}.log")

    def pid(self, name: str) -> int:
        """The process behind the one that was started here; 0 where none runs."""
        outer = self.program(name).running()
        if outer is None:
            return 0
        with contextlib.suppress(psutil.Error):
            found = psutil.Process(outer.pid)
            for _ in range(1 if name == INIT else 2):
                alive = [one for one in found.children() if one.status() != psutil.STATUS_ZOMBIE]
                if not alive:
                    return 0
                found = alive[0]
            return int(found.pid)
        return 0

    def start(
        self, name: str, command: list[str], environment: Mapping[str, str] | None = None
    ) -> None:
        """Starts a program in the node, after ending the one of that name where it runs."""
        if not self.first_pid:
            raise PlaygroundError(f"The real node {self.name} is off: start it first.")
        self.end(name, signal.SIGTERM)
        # `nsenter` waits for `setsid`, which waits for the program. Without the latter the former
        # would freeze with a frozen program, and never bury it.
        between = [parts.find_tool("setsid"), "--fork", "--wait"]
        self.program(name).start([*self._door(), *between, *command], environment)

    def end(self, name: str, number: signal.Signals) -> None:
        """Sends the signal and returns when the program has ended; later kills it."""
        program = self.program(name)
        if pid := self.pid(name):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
            if not program.wait(ENDS_WITHIN):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        program.stop(ENDS_WITHIN)

    def enter(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a command in the node to its end; returns what it said."""
        return subprocess.run([*self._door(), *command], capture_output=True, text=True)

    def wait(self, what: str, seen: Callable[[], bool], name: str) -> None:
        """Returns when it is seen; raises `PlaygroundError` when the program `name` ends before,
        or time is up, with the last words of its log."""
        until = time.monotonic() + READY_WITHIN
        program = self.program(name)
        while not seen():
            words = f"\n{program.last_words()}"
            if program.running() is None:
                raise PlaygroundError(f"{name} of {self.name} ended while it started:{words}")
            if time.monotonic() > until:
                raise PlaygroundError(f"Not seen in {READY_WITHIN:.0f} s: {what}.{words}")
            time.sleep(LOOK_EVERY)

    def processes(self) -> list[psutil.Process]:
        """Every process in its pid namespace or, as containers', in one below; the first, too."""
        if not (first := self.first_pid):
            return []
        wanted = os.stat(f"/proc/{first}/ns/pid").st_ino
        return [one for one in psutil.process_iter() if wanted in _pid_namespaces(one.pid)]

    def _door(self) -> list[str]:
        nsenter = parts.find_tool("nsenter")
        return [nsenter, f"--target={self.first_pid}", "--mount", "--pid", "--"]


def cgroup_name(folder: Path) -> str:
    """One for each folder, so that nodes of one name in several playgrounds are not mixed up."""
    digest = hashlib.sha256(str(folder).encode()).hexdigest()[:10]
    return f"berth-node-{digest}"


def _pid_namespaces(pid: int) -> set[int]:
    """Inode numbers of a process's pid namespace and of those above it, as far as we may see."""
    found: set[int] = set()
    with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
        handle = os.open(f"/proc/{pid}/ns/pid", os.O_RDONLY)
        while True:
            stack.callback(os.close, handle)
            found.add(os.fstat(handle).st_ino)
            handle = fcntl.ioctl(handle, NS_GET_PARENT)  # above our own: not permitted
    return found


def _remove_sockets(folder: Path) -> None:
    for place, _, names in os.walk(folder):
        for name in names:
            path = Path(place, name)
            if stat.S_ISSOCK(path.lstat().st_mode):
                path.unlink(missing_ok=True)
