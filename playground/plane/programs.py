"""The processes of one control plane: taken over or replaced at a start, ended in order."""

from __future__ import annotations

import signal
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from playground.errors import PlaygroundError
from playground.plane.components import ALL, API_SERVER, CONTROLLER_MANAGER, ETCD, PROXY, SCHEDULER
from playground.running.processes import Program

# Seconds between TERM and KILL. The first three are ended together: 7.5 s in the worst case.
PATIENCE = {PROXY: 1.5, SCHEDULER: 1.5, CONTROLLER_MANAGER: 1.5, API_SERVER: 4.0, ETCD: 2.0}


class Programs:
    """One program for each of `components`, and notes about others that an earlier run had."""

    def __init__(self, folder: Path, components: Collection[str]):
        self._wanted = tuple(name for name in ALL if name in components)
        self._all = {
            name: Program(folder / "run" / f"{name}.json", folder / "logs" / f"{name}.log")
            for name in ALL
        }

    def __getitem__(self, name: str) -> Program:
        """Raises `PlaygroundError` for a component that this control plane does not have."""
        if name not in self._wanted:
            raise PlaygroundError(f"This control plane has no {name}.")
        return self._all[name]

    def start(
        self, name: str, command: Sequence[str], environment: Mapping[str, str], *, tied: bool
    ) -> None:
        """Leaves it alone where it runs with this very command, and is tied as it should be."""
        program = self[name]
        tied_as_wanted = program.tied_here or not (tied or program.tied)
        if program.running() and program.command() == list(command) and tied_as_wanted:
            program.signal(signal.SIGCONT)
        else:
            program.stop(PATIENCE[name])
            program.start(command, environment, tied=tied)

    def stop(self, name: str, *, kill: bool = False) -> None:
        """TERM, later KILL; with `kill` at once. Stopping a stopped one is fine."""
        if kill:
            self[name].kill()
        else:
            self[name].stop(PATIENCE[name])

    def stop_all(self) -> None:
        """Those that only talk to the API server first and together, etcd last."""
        clients = (PROXY, SCHEDULER, CONTROLLER_MANAGER)
        for name in clients:
            self._all[name].signal(signal.SIGTERM)
            self._all[name].signal(signal.SIGCONT)
        for name in (*clients, API_SERVER, ETCD):
            self._all[name].stop(PATIENCE[name])

    def end_leftovers(self, *, tied: bool) -> None:
        """Ends what is not wanted any more, and with `tied` all that is not tied to us."""
        for name in reversed(ALL):
            if name not in self._wanted or (tied and not self._all[name].tied_here):
                self._all[name].stop(PATIENCE[name])

    def running(self) -> set[str]:
        return {name for name in self._wanted if self._all[name].running()}

    def any_tied_here(self) -> bool:
        """Whether something of it ends with this process."""
        return any(program.tied_here for program in self._all.values())

    def states(self) -> dict[str, str]:
        """`running`, `paused` or `stopped` for each component."""
        words = {}
        for name in self._wanted:
            found = self._all[name].running()
            words[name] = "stopped" if found is None else "paused" if found.paused else "running"
        return words

    def pids(self) -> dict[str, int]:
        found = {name: self._all[name].running() for name in self._wanted}
        return {name: process.pid for name, process in found.items() if process}
