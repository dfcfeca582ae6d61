"""`make demo`: the whole portal on one machine, over a real control plane with simulated hardware.

Starts everything in order and says so in one line a step; the portal answers before the cluster
does. Then it stands guard: what dies is started again, Ctrl-C stops all of it in order.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import fcntl
import http.client
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import IO

from playground import demo_cluster, demo_programs
from playground.build import PlaygroundError
from playground.controlplane import ControlPlane
from playground.ports import is_free
from playground.services import Services
from playground.supervisor import (
    Supervisor,
    clear_leftovers,
    last_lines,
    log_path,
    write_whole,
)

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_FOLDER = ROOT / ".demo"
DEFAULT_PORT = 8000
# First files of the servers, etcd, the logs of a day; the build asks for its own room.
BYTES_NEEDED = 700_000_000
ANSWER_SECONDS = 60.0
LOOK_EVERY = 0.25
LAST_LOOK = 10.0  # a stopping demo may take no longer


class Stopped(BaseException):
    """Somebody asked the demo to end. Not an Exception: nothing on the way may swallow it."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="of the pages")
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="where the data lies")
    parser.add_argument("--reset", action="store_true", help="stop it and forget its data")
    parser.add_argument("--fleet", default="demo", help="scenario of the simulated machines")


def run(options: argparse.Namespace) -> int:
    """Runs until it is stopped; returns the exit code. Raises PlaygroundError with a sentence."""
    folder = options.folder.resolve()
    try:
        if options.reset:
            return reset(folder)
        return Demo(folder, options.port, options.fleet).run()
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise PlaygroundError(
                f"The disk under {folder} is full: make room and start again."
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise PlaygroundError(
                f"{error.filename or folder} may not be changed by you: start the demo as the"
                " user who made it, or remove that folder."
            ) from error
        raise


class Demo:
    """One demo in one folder, on one port."""

    def __init__(self, folder: Path, port: int, fleet: str):
        self.folder = folder
        self.port = port
        self.fleet = fleet
        self.address = f"http://localhost:{port}"
        self.services = Services(folder)
        self.supervisor = Supervisor(folder, self.say)
        self.began = time.monotonic()
        self._line = ""
        self._stopping = False

    def run(self) -> int:
        with _only_one(self.folder, self.address), self._signals():
            try:
                self.check()
                self.start_portal()
                self.start_cluster()
                self.guard()
            except Stopped:
                pass
            finally:
                self.stop()
        return 0

    # --- Steps ------------------------------------------------------------------------------------

    def check(self) -> None:
        """What would stop it anyway, said before anything is started."""
        left = clear_leftovers(self.folder)
        if left:
            self.say(f"A demo that was killed had left {', '.join(left)}; ended.")
        if not is_free(self.port):
            raise PlaygroundError(
                f"Port {self.port} is taken by another program:"
                f" end it, or choose another port: make demo PORT={self.port + 10}"
            )
        free = shutil.disk_usage(self.folder).free
        if free < BYTES_NEEDED:
            raise PlaygroundError(
                f"Only {free // 10**6} MB are free under {self.folder}, and the demo needs"
                f" {BYTES_NEEDED // 10**6}: make room and start again."
            )
        demo_cluster.forget_report(self.folder)

    def start_portal(self) -> None:
        """Servers, tables, people, then the four processes of Berth; returns when pages answer."""
        with self.step("PostgreSQL and Valkey"):
            self.supervisor.start(*self.services.prepare())
            self.services.wait(alive=self.supervisor.look)
        env = demo_programs.environment(
            self.folder, self.address, self.services.env, _secret_key(self.folder)
        )
        with self.step("tables"):
            self._manage("migrate", "--no-input", "--verbosity=0", env=env)
        with self.step("example tenants and people"):
            people = self._manage("seeddemo", env=env)
        demo_cluster.announce(self.folder, "The playground's cluster is not there yet.")
        with self.step("web, watch, worker, beat"):
            self.supervisor.start(*demo_programs.portal(self.folder, self.port, env))
            self._wait_for_pages()
        self.say(f"\nBerth answers at {self.address}\n\n{people.strip()}\n\nCtrl-C stops it.\n")

    def start_cluster(self) -> None:
        """Build (the first time), control plane, rights, fleet; pages fill meanwhile."""
        self.supervisor.start(demo_programs.cluster(self.folder))
        shown = 0
        trouble = ""
        while True:
            self.supervisor.look()
            report = demo_cluster.read_report(self.folder)
            for name, seconds in report.steps[shown:]:
                self.say_step(name, seconds)
            shown = len(report.steps)
            if report.trouble and report.trouble != trouble:
                self.say(f"{report.trouble} The portal stays up; trying again every minute.")
            trouble = report.trouble
            if report.ready:
                break
            self.say_for_now(report.now)
            time.sleep(LOOK_EVERY)
        self.supervisor.start(demo_programs.fleet(self.folder, self.fleet))
        self.say(f"\nAll up after {time.monotonic() - self.began:.0f} s. Logs: {self.folder}/logs")

    def guard(self) -> None:
        while True:
            self.supervisor.look()
            time.sleep(LOOK_EVERY)

    def stop(self) -> None:
        """In order: what serves people, the fleet, the cluster, then the servers with the data."""
        self._stopping = True
        if not self.supervisor.children:
            return
        self.say("\nStopping …")
        began = time.monotonic()
        killed = self.supervisor.stop()
        demo_cluster.notice_path(self.folder).unlink(missing_ok=True)
        self.services.stop()
        hard = f" (by force: {', '.join(killed)})" if killed else ""
        self.say(f"Stopped in {time.monotonic() - began:.1f} s{hard}. The data stays.")

    # --- Details ----------------------------------------------------------------------------------

    def _manage(self, *arguments: str, env: dict[str, str]) -> str:
        """Runs one management command to its end; returns what it printed."""
        command = [sys.executable, str(ROOT / "manage.py"), *arguments]
        log = log_path(self.folder, arguments[0])
        with log.open("wb") as errors:
            done = subprocess.run(
                command,
                env={**os.environ, **env},
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        if done.returncode != 0:
            raise PlaygroundError(
                f"`manage.py {arguments[0]}` failed. The end of {log}:\n{last_lines(log)}"
            )
        return done.stdout.decode()

    def _wait_for_pages(self) -> None:
        patience = time.monotonic() + ANSWER_SECONDS
        while not _answers(self.port):
            self.supervisor.look()
            if time.monotonic() > patience:
                log = log_path(self.folder, "web")
                raise PlaygroundError(
                    f"The portal does not answer. The end of {log}:\n{last_lines(log)}"
                )
            time.sleep(0.1)

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """The first signal ends the demo in order, a second one at once."""

        def ended(number: int, frame: FrameType | None) -> None:
            if not self._stopping:
                self._stopping = True
                raise Stopped
            for child in self.supervisor.children.values():
                child.record.kill()

        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, ended) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    # --- The terminal -----------------------------------------------------------------------------

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        self.say_for_now(name)
        began = time.monotonic()
        yield
        self.say_step(name, time.monotonic() - began)

    def say_step(self, name: str, seconds: float) -> None:
        self.say(f"  {name:<28}{seconds:6.1f} s")

    def say(self, text: str) -> None:
        """A line that stays."""
        self._erase()
        with contextlib.suppress(
            OSError
        ):  # the terminal may be gone; the demo still stops in order
            print(text, flush=True)

    def say_for_now(self, text: str) -> None:
        """A line that the next one replaces; only a terminal shows it."""
        if text == self._line or not sys.stdout.isatty():
            return
        self._erase()
        width = shutil.get_terminal_size().columns - 4
        print(f"  {text[:width]}", end="", flush=True)
        self._line = text

    def _erase(self) -> None:
        if self._line:
            print("\r\033[K", end="")
            self._line = ""


@contextlib.contextmanager
def _only_one(folder: Path, address: str) -> Iterator[None]:
    """One demo per folder at a time; the second one hears where the first is."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PlaygroundError(
                f"The demo of this folder runs already, at {_holder(lock).get('address')}:"
                " stop that one first with Ctrl-C, or `make demo-reset`."
            ) from None
        lock.truncate(0)
        lock.write(json.dumps({"pid": os.getpid(), "address": address}))
        lock.flush()
        yield


def _holder(lock: IO[str]) -> dict[str, object]:
    lock.seek(0)
    try:
        read = json.loads(lock.read())
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def reset(folder: Path, say: Callable[[str], None] = print) -> int:
    """Stops the demo of this folder where it runs, and removes everything it kept."""
    if not folder.exists():
        say("There is no demo data to forget.")
        return 0
    with (folder / "lock").open("a+") as lock:
        _take_over(lock)
        clear_leftovers(folder)
        ControlPlane(demo_cluster.plane_folder(folder)).stop()
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name != "lock":
                path.unlink()
    (folder / "lock").unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()
    say("The demo's data is gone; the next `make demo` starts afresh.")
    return 0


def _take_over(lock: IO[str]) -> None:
    """Gets the lock; a demo that holds it is asked to stop first."""
    patience = time.monotonic() + 2 * LAST_LOOK
    asked = False
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            pid = _holder(lock).get("pid")
            if not asked and isinstance(pid, int):
                os.kill(pid, signal.SIGTERM)
                asked = True
            if time.monotonic() > patience:
                raise PlaygroundError(
                    f"The running demo (process {pid}) does not stop: end it by Ctrl-C first."
                ) from None
            time.sleep(0.1)


def _secret_key(folder: Path) -> str:
    """Made up once, so that nobody is signed out by a restart."""
    path = folder / "secret-key"
    if not path.exists():
        write_whole(path, secrets.token_urlsafe(50))
    return path.read_text()


def _answers(port: int) -> bool:
    """Whether the portal gives any answer at all that is not a failure of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/livez")
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m playground demo", description=__doc__)
    add_arguments(parser)
    try:
        return run(parser.parse_args())
    except PlaygroundError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
