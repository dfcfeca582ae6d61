"""One demo, from its first program to the end of its last.

Starts everything in order and says so in one line a step; the portal answers before the cluster
does. Then it stands guard: what dies is started again, Ctrl-C stops all of it in order.
"""

from __future__ import annotations

import contextlib
import http.client
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

from playground.building.releases import binary_path
from playground.demo import cluster, programs
from playground.demo.folder import Prepared, only_one, secret_key
from playground.demo.terminal import Terminal
from playground.errors import PlaygroundError
from playground.realnodes import guard, parts
from playground.running.ports import is_free
from playground.running.services import Services
from playground.running.supervisor import Program, Supervisor, clear_leftovers, last_lines, log_path

ROOT = Path(__file__).resolve().parents[2]
# First files of the servers, etcd, the logs of a day; the build asks for its own room.
BYTES_NEEDED = 700_000_000
ANSWER_SECONDS = 60.0
LOOK_EVERY = 0.25


class Stopped(BaseException):
    """Somebody asked the demo to end. Not an Exception: nothing on the way may swallow it."""


class Demo:
    """One demo in one folder, on one port."""

    def __init__(
        self, folder: Path, port: int, fleet: str, *, proxy: bool = False, real_nodes: int = 0
    ):
        self.folder = folder
        self.port = port
        self.fleet = fleet
        self.proxy = proxy
        self.real_nodes = real_nodes
        self.address = f"http://localhost:{port}"
        self.terminal = Terminal()
        self.services = Services(folder)
        self.supervisor = Supervisor(folder, self.terminal.say)
        self.began = time.monotonic()
        self._stopping = False

    def run(self) -> None:
        """Returns when somebody stopped it and nothing of it runs any more."""
        with only_one(self.folder, self.address), self._signals():
            try:
                self.check()
                self.start_portal()
                self.start_cluster()
                self.start_real_nodes()
                self.guard()
            except Stopped:
                pass
            finally:
                self.stop()

    def check(self) -> None:
        """What would stop it anyway, said before anything is started."""
        if left := clear_leftovers(self.folder):
            self.terminal.say(f"  ended what a killed demo had left: {', '.join(left)}")
        if not is_free(self.port):
            raise PlaygroundError(self._port_taken())
        free = shutil.disk_usage(self.folder).free
        if free < BYTES_NEEDED:
            raise PlaygroundError(
                f"Only {free // 10**6} MB are free under {self.folder}, and the demo needs"
                f" {BYTES_NEEDED // 10**6}: make room and start again."
            )
        cluster.forget_report(self.folder)

    def start_portal(self) -> None:
        """Servers, tables, people, then the four processes of Berth; returns when pages answer."""
        with self.terminal.step("PostgreSQL and Valkey"):
            self.supervisor.start(*self.services.prepare())
            self.services.wait(alive=self.supervisor.look)
        cluster.announce(self.folder, "The playground's cluster is not there yet.")
        if binary_path().exists():  # seconds of work; the build, though, waits for the pages
            self.supervisor.start(programs.cluster(self.folder, proxy=self.proxy))
        env = programs.environment(
            self.folder, self.address, self.services.env, secret_key(self.folder)
        )
        prepared = Prepared(self.folder, self.address)
        if not prepared.people:
            with self.terminal.step("tables"):
                self._manage("migrate", "--no-input", "--verbosity=0", env=env)
            with self.terminal.step("example tenants and people"):
                prepared.remember(self._manage("seeddemo", env=env))
        with self.terminal.step("web, watch, worker, beat"):
            self.supervisor.start(*programs.portal(self.folder, self.port, env))
            self._wait_for_pages()
        people = prepared.people.strip()
        self.terminal.say(f"\nBerth is at {self.address}\n\n{people}\n\nCtrl-C stops it.\n")

    def start_cluster(self) -> None:
        """Build (the first time), control plane, rights, fleet; pages fill meanwhile."""
        if "cluster" not in self.supervisor.children:
            self.supervisor.start(programs.cluster(self.folder, proxy=self.proxy))
        shown = 0
        trouble = ""
        while True:
            self.supervisor.look()
            report = cluster.read_report(self.folder)
            for name, seconds in report.steps[shown:]:
                self.terminal.say_step(name, seconds)
            shown = len(report.steps)
            if report.trouble and report.trouble != trouble:
                self.terminal.say(
                    f"{report.trouble}\nThe portal stays up; this is tried each minute."
                )
            trouble = report.trouble or trouble
            if report.ready:
                break
            self.terminal.say_for_now(report.now)
            time.sleep(LOOK_EVERY)
        with self.terminal.step("fleet"):
            self._start_fleet()
        seconds = time.monotonic() - self.began
        self.terminal.say(f"\nAll up after {seconds:.1f} s. Logs: {self.folder / 'logs'}")

    def _start_fleet(self) -> None:
        """Returns when its machines are up, which it says in its log."""
        program = programs.fleet(self.folder, self.fleet, real_nodes=bool(self.real_nodes))
        self._start_and_hear(program, "are up")

    def start_real_nodes(self) -> None:
        """Where this machine can have none, one sentence says so and the demo goes on."""
        if not self.real_nodes:
            return
        if reason := parts.why_not():
            self.terminal.say(reason)
            return
        if not parts.is_built():
            self.terminal.say("Kubelet and containerd are built now, once for this machine.")
        program = programs.real_nodes(self.folder, self.real_nodes, self.fleet)
        with self.terminal.step("real nodes"):
            self._start_and_hear(program, guard.READY)

    def _start_and_hear(self, program: Program, words: str) -> None:
        """Starts a program; returns when it has said `words` in its log."""
        log = log_path(self.folder, program.name)
        before = log.stat().st_size if log.exists() else 0
        self.supervisor.start(program)
        with log.open("rb") as said:
            said.seek(before)
            heard = b""
            while words.encode() not in heard:
                self.supervisor.look()
                time.sleep(LOOK_EVERY)
                heard += said.read()

    def _port_taken(self) -> str:
        return (
            f"Port {self.port} is taken by another program:"
            f" end it, or choose another port: make demo PORT={self.port + 10}"
        )

    def guard(self) -> None:
        """Until a signal comes."""
        while True:
            self.supervisor.look()
            time.sleep(LOOK_EVERY)

    def stop(self) -> None:
        """In order: what serves people, the fleet, the cluster, then the servers with the data."""
        self._stopping = True
        if not self.supervisor.children:
            return
        self.terminal.say("\nStopping …")
        began = time.monotonic()
        killed = self.supervisor.stop()
        cluster.notice_path(self.folder).unlink(missing_ok=True)
        self.services.stop()
        hard = f" (by force: {', '.join(killed)})" if killed else ""
        seconds = time.monotonic() - began
        self.terminal.say(f"Stopped in {seconds:.1f} s{hard}. The data stays in {self.folder}.")

    def _manage(self, *arguments: str, env: dict[str, str]) -> str:
        """Runs one management command to its end; returns what it printed.

        Without Django's checks of the code, which are `make check`'s and take seconds.
        """
        command = [sys.executable, str(ROOT / "manage.py"), *arguments, "--skip-checks"]
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
        """Returns when our own web process answers; one that ends now would always end."""
        web = self.supervisor.children["web"]
        patience = time.monotonic() + ANSWER_SECONDS
        while web.exit_code is None and time.monotonic() < patience:
            if answers(self.port):
                return
            self.supervisor.look()
            time.sleep(0.1)
        log = log_path(self.folder, "web")
        said = last_lines(log)
        if web.exit_code is not None and "ddress already in use" in said:
            raise PlaygroundError(self._port_taken())
        raise PlaygroundError(f"The portal does not answer. The end of {log}:\n{said}")

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


def answers(port: int) -> bool:
    """Whether the portal gives any answer at all that is not a failure of its own."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/livez")
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
