"""One long-running program of the playground: started, found again, paused, ended, never confused.

A note on disk says which process it was. A process counts as ours only while its pid *and* its
start time are those of the note, so a pid that the system has given to somebody else since is
left alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PROC = Path("/proc")
LIFELINE = "BERTH_LIFELINE"
# Children of this process by pid. Here, too, stay our ends of the pipes of tied ones until we die.
_children: dict[int, subprocess.Popen[bytes]] = {}


@dataclass(frozen=True, slots=True)
class Running:
    """A process as the system knows it. `started` is opaque: equal means the same process."""

    pid: int
    started: str
    state: str

    @property
    def paused(self) -> bool:
        return self.state == "T"


def look_up(pid: int) -> Running | None:
    """The process with that pid, or None where there is none or only its unburied remains."""
    if PROC.joinpath("self/stat").exists():
        try:
            text = PROC.joinpath(str(pid), "stat").read_text()
            boot = PROC.joinpath("sys/kernel/random/boot_id").read_text().strip()
        except (FileNotFoundError, ProcessLookupError):
            return None
        fields = text.rpartition(")")[2].split()  # the name in brackets may hold anything
        state, started = fields[0], f"{boot}/{fields[19]}"
    else:  # macOS
        said = subprocess.run(
            ["ps", "-o", "state=,lstart=", "-p", str(pid)], capture_output=True, text=True
        ).stdout.split(maxsplit=1)
        if len(said) != 2:
            return None
        state, started = said[0][0], said[1].strip()
    return None if state in "ZX" else Running(pid, started, state)


class Program:
    """One program under one note; whoever holds the same note path means the same process."""

    def __init__(self, note: Path, log: Path):
        self.note = note
        self.log = log

    def running(self) -> Running | None:
        """The live process of this note, also one that another Python process started."""
        written = self._read_note()
        pid = int(written.get("pid", 0))
        child = _children.get(pid)
        if child is not None and child.poll() is not None:
            if child.stdin is not None:
                child.stdin.close()
            del _children[pid]
        found = look_up(pid) if pid else None
        return found if found and found.started == written.get("started") else None

    def command(self) -> list[str]:
        """The command line it was last started with; empty where it never was."""
        return list(self._read_note().get("command", []))

    @property
    def tied(self) -> bool:
        """True where it was started to end with the process that started it."""
        return bool(self._read_note().get("tied"))

    @property
    def tied_here(self) -> bool:
        """True where it runs and ends with this very process."""
        return self.tied and self._read_note().get("pid") in _children

    def start(
        self,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        *,
        tied: bool = False,
    ) -> None:
        """Starts `command` in a session of its own, its output going to the log.

        `tied` gives it a pipe as standard input that closes when this process ends, however it
        ends; the program must heed `BERTH_LIFELINE=stdin`. (Not prctl's death signal: that one
        comes when the starting *thread* ends.)
        """
        for folder in (self.note.parent, self.log.parent):
            folder.mkdir(parents=True, exist_ok=True)
        if self.log.exists():
            self.log.replace(self.log.with_name(self.log.name + ".before"))
        extra = dict(environment or {}) | ({LIFELINE: "stdin"} if tied else {})
        with self.log.open("wb") as log:
            child = subprocess.Popen(
                list(command),
                env=os.environ | extra,
                stdin=subprocess.PIPE if tied else subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C in our terminal is for us alone
            )
        _children[child.pid] = child
        found = look_up(child.pid)
        content = {
            "pid": child.pid,
            "started": found.started if found else "",
            "command": list(command),
            "tied": tied,
        }
        new = self.note.with_name(f".{self.note.name}.{os.getpid()}")
        new.write_text(json.dumps(content))
        new.replace(self.note)

    def signal(self, number: signal.Signals) -> bool:
        """Sends a signal; False where nothing of ours is running."""
        found = self.running()
        if found is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.kill(found.pid, number)
        return True

    def pause(self) -> bool:
        """Freezes it (SIGSTOP) and returns when it is frozen; False where it does not run."""
        self.signal(signal.SIGSTOP)
        for _ in range(100):
            found = self.running()
            if found is None or found.paused:
                return found is not None
            time.sleep(0.01)
        return False

    def wait(self, seconds: float) -> bool:
        """True once it has ended, False when `seconds` have passed first."""
        until = time.monotonic() + seconds
        while self.running() is not None:
            if time.monotonic() > until:
                return False
            time.sleep(0.02)
        return True

    def stop(self, patience: float) -> None:
        """TERM, and KILL where it is not gone after `patience` seconds; a paused one is woken."""
        if self.signal(signal.SIGTERM):
            self.signal(signal.SIGCONT)
            if not self.wait(patience):
                self.kill()
        self.note.unlink(missing_ok=True)

    def kill(self) -> None:
        """KILL at once, as a crash."""
        if self.signal(signal.SIGKILL):
            self.wait(5)
        self.note.unlink(missing_ok=True)

    def last_words(self, lines: int = 5) -> str:
        """The end of its log, for a message about a start that failed."""
        try:
            text = self.log.read_bytes()[-4000:].decode(errors="replace")
        except FileNotFoundError:
            return ""
        return "\n".join(text.strip().splitlines()[-lines:])

    def _read_note(self) -> dict[str, Any]:
        try:
            read = json.loads(self.note.read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return read if isinstance(read, dict) else {}
