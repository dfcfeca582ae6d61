"""Keeps a set of programs running, and stops them in order so that no process stays behind.

Every program leads a session of its own (the terminal's Ctrl-C reaches only the supervisor), writes
to its own log, and leaves a record in `<folder>/run/` by which a later run finds what a killed one
left. `processes.py` is about one program under one note; this module adds order, restarts, another
user, and the workers that a program started itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

import psutil

from playground.errors import PlaygroundError
from playground.running.processes import look_up

# Every child carries its folder in this variable; it tells orphans of ours from other people's.
MARK = "BERTH_PLAYGROUND_FOLDER"
# A log that has grown beyond this is set aside (one generation) when its program starts again.
LOG_LIMIT_BYTES = 10_000_000
# A program that ran so long before it died starts again at once.
HEALTHY_AFTER = 20.0
LONGEST_PAUSE = 30.0
# Even SIGKILL waits for a disk that does not answer; we do not wait with it. The record stays.
GIVE_UP_AFTER = 5.0
_TICK = 0.05


@dataclass(frozen=True, slots=True)
class Program:
    """What to run. Programs of a higher `stage` need those of a lower one and are stopped first.

    `patience` is how many seconds it may take to stop before it is killed. `user` is the account
    it runs as when we are root (PostgreSQL refuses to be root); it keeps the right to pass through
    our private folders, so no permission of a folder has to be widened for it.
    """

    name: str
    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    stage: int = 0
    stop_signal: signal.Signals = signal.SIGTERM
    patience: float = 5.0
    user: str = ""

    def command(self, *, tied: bool) -> list[str]:
        """The argument list; `tied` to us means that it gets its stop signal when we die."""
        return [*_leash(self.user, self.stop_signal if tied else None), *self.argv]


def _leash(user: str, death_signal: signal.Signals | None) -> list[str]:
    """A `setpriv` prefix (util-linux): another user where we are root, a signal at our death.

    The kernel drops a parent-death signal when the user changes, so one tool sets both, in this
    order. Where it does not exist (macOS, BusyBox) the next start cleans up what we leave.
    """
    if sys.platform != "linux":
        return []
    options: list[str] = []
    if user and os.geteuid() == 0:
        group = pwd.getpwnam(user).pw_gid
        options += [f"--reuid={user}", f"--regid={group}", "--clear-groups"]
        options += ["--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
    tool = shutil.which("setpriv")
    if tool is None or os.path.realpath(tool).endswith("busybox"):  # that one knows too little
        if options:
            raise PlaygroundError(
                "PostgreSQL does not run as root, and setpriv (package util-linux) is missing:"
                " install it, or start Berth as an ordinary user."
            )
        return []
    if death_signal is not None:
        options += ["--pdeathsig", death_signal.name.removeprefix("SIG")]
    return [tool, *options, "--"] if options else []


@dataclass(frozen=True, slots=True)
class Record:
    """A started program as a later run can find it; `started` is what `look_up` told of it."""

    name: str
    pid: int
    started: str
    stage: int
    stop_signal: str
    patience: float
    folder: str

    @property
    def alive(self) -> bool:
        """Whether the program itself still runs; its number may be somebody else's by now."""
        found = look_up(self.pid)
        return found is not None and found.started == self.started

    def members(self) -> list[psutil.Process]:
        """The program and what it started; workers whose leader was killed are found as well."""
        alive = self.alive
        if not alive and look_up(self.pid) is not None:
            return []  # the number belongs to a stranger, and so does its session
        found: list[psutil.Process] = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error, ProcessLookupError, PermissionError):
                if os.getsid(process.pid) != self.pid:
                    continue
                if process.status() == psutil.STATUS_ZOMBIE:
                    continue
                if alive or self._started(process):
                    found.append(process)
        return found

    def _started(self, process: psutil.Process) -> bool:
        """Whether a process of this session is of ours, when the program itself has gone.

        One that is just ending has lost its variables, but not yet its files and ports.
        """
        if process.uids().real != os.getuid():
            return False
        try:
            return (process.environ() or {MARK: self.folder}).get(MARK) == self.folder
        except psutil.Error:
            return look_up(process.pid) is not None

    def ask_to_stop(self) -> None:
        """Its stop signal to the program, or to what is left of its session when it is gone."""
        for process in self.members():
            if process.pid == self.pid or not self.alive:
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.send_signal(signal.Signals[self.stop_signal])

    def kill(self) -> None:
        """SIGKILL to the program and everything it started."""
        for process in self.members():
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()

    @property
    def path(self) -> Path:
        return Path(self.folder) / "run" / f"{self.name}.json"

    def save(self) -> None:
        write_whole(self.path, json.dumps(asdict(self)))

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)


def records(folder: Path) -> list[Record]:
    """What was started in this folder and not yet seen to end, by this run or an earlier one."""
    found: list[Record] = []
    for path in sorted((folder.resolve() / "run").glob("*.json")):
        try:
            found.append(Record(**json.loads(path.read_text())))
        except (ValueError, TypeError):  # written by another version, or by a hand
            path.unlink(missing_ok=True)
    return found


def write_whole(path: Path, text: str, *, mode: int = 0o600) -> None:
    """Writes a file so that a reader sees the old text or the new one, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text)
    draft.chmod(mode)
    draft.replace(path)


def log_path(folder: Path, name: str) -> Path:
    return folder / "logs" / f"{name}.log"


def last_lines(path: Path, count: int = 5) -> str:
    """The end of a log, for a message about a program that would not run."""
    if not path.exists():
        return ""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - 16_384))
        return "\n".join(file.read().decode(errors="replace").splitlines()[-count:])


class Child:
    """A program started by this process."""

    def __init__(self, program: Program, process: subprocess.Popen[bytes], record: Record):
        self.program = program
        self.process = process
        self.record = record
        self.since = time.monotonic()

    @property
    def exit_code(self) -> int | None:
        """None while it runs. Asking also reaps it, so that no zombie stays."""
        return self.process.poll()


def start(program: Program, folder: Path, *, tied: bool = True) -> Child:
    """Starts a program in a session of its own, its output appended to `logs/<name>.log`.

    Call it from a thread that lives as long as the program should: Linux takes the end of the
    *thread* that started a child for the death of its parent.
    """
    folder = folder.resolve()
    log = log_path(folder, program.name)
    log.parent.mkdir(parents=True, exist_ok=True)
    if log.exists() and log.stat().st_size > LOG_LIMIT_BYTES:
        log.replace(log.with_suffix(".log.1"))
    with log.open("ab") as out:
        try:
            process = subprocess.Popen(
                program.command(tied=tied),
                env={**os.environ, **program.env, MARK: str(folder)},
                cwd=program.cwd,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except FileNotFoundError as error:
            raise PlaygroundError(
                f"{program.name} cannot be started, because {error.filename} is missing:"
                " run `make clean`, then the same command again."
            ) from error
    found = look_up(process.pid)
    record = Record(
        name=program.name,
        pid=process.pid,
        started=found.started if found else "",  # gone already; its exit code tells
        stage=program.stage,
        stop_signal=program.stop_signal.name,
        patience=program.patience,
        folder=str(folder),
    )
    record.save()
    return Child(program, process, record)


def stop_all(found: Iterable[Record], *, reap: Callable[[], object] = lambda: None) -> list[str]:
    """Stops programs stage by stage, the highest first; returns the names of those it killed.

    Within a stage all are asked at once; whoever outlives its patience is killed with everything
    it started. `reap` is called while waiting, for parents that have children to collect.
    """
    killed: list[str] = []
    by_stage: dict[int, list[Record]] = {}
    for record in found:
        by_stage.setdefault(record.stage, []).append(record)
    for stage in sorted(by_stage, reverse=True):
        waiting = by_stage[stage]
        for record in waiting:
            record.ask_to_stop()
        began = time.monotonic()
        while waiting:
            reap()
            waiting = [r for r in waiting if not _ended(r, time.monotonic() - began, killed)]
            if waiting:
                time.sleep(_TICK)
        reap()  # who ended since the last look
    return killed


def _ended(record: Record, waited: float, killed: list[str]) -> bool:
    """True when nothing is left of it, or nothing more can be done; kills when patience is over."""
    if not record.members():
        record.forget()
        return True
    if waited > record.patience:
        record.kill()
        if record.name not in killed:
            killed.append(record.name)
    return waited > record.patience + GIVE_UP_AFTER


def clear_leftovers(folder: Path) -> list[str]:
    """Ends what a killed run left in this folder; returns the names of what was still running."""
    left = records(folder)
    running = [record.name for record in left if record.members()]
    stop_all(left)
    return running


class Supervisor:
    """Starts a program again when it dies, after a growing pause if it dies young.

    `say` gets one sentence for each death. Call `look` a few times a second from the thread that
    called `start`.
    """

    def __init__(self, folder: Path, say: Callable[[str], None]):
        self.folder = folder.resolve()
        self.say = say
        self.children: dict[str, Child] = {}
        self._young_deaths: dict[str, int] = {}
        self._again_at: dict[str, float] = {}

    def start(self, *programs: Program) -> None:
        for program in programs:
            self.children[program.name] = start(program, self.folder)

    def look(self) -> None:
        """Notices deaths, and starts again whatever is due."""
        now = time.monotonic()
        for name, child in list(self.children.items()):
            if child.exit_code is None:
                continue
            if name not in self._again_at:
                self._again_at[name] = now + self._pause(child, now)
            elif now >= self._again_at[name]:
                del self._again_at[name]
                self.children[name] = start(child.program, self.folder)

    def _pause(self, child: Child, now: float) -> float:
        """Seconds to wait; what the dead program had started (and its ports) is ended first."""
        child.record.kill()
        name = child.program.name
        young = now - child.since < HEALTHY_AFTER
        deaths = self._young_deaths[name] = self._young_deaths.get(name, 0) + 1 if young else 1
        pause = 0.0 if deaths == 1 else min(LONGEST_PAUSE, 2.0 ** (deaths - 2))
        when = f"in {pause:.0f} s" if pause else "now"
        log = log_path(self.folder, name)
        self.say(f"{name} ended ({_how(child.exit_code)}); starting it again {when}. Log: {log}")
        return pause

    def stop(self) -> list[str]:
        """Stops all programs in order; returns the names of those it had to kill."""
        chosen = list(self.children.values())
        killed = stop_all(
            [child.record for child in chosen],
            reap=lambda: [child.exit_code for child in chosen],
        )
        self.children.clear()
        self._again_at.clear()
        return killed


def _how(code: int | None) -> str:
    """An exit code in words: -9 is "killed by SIGKILL", 3 is "exit code 3"."""
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"
