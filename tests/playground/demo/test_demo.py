"""The demo: what it refuses to start on, and a whole run from first page to the last process."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import psutil
import pytest

from devices.cluster import connect
from devices.cluster.gateway import ClusterError, Gateway
from playground.building.gobuild import Progress
from playground.demo import cluster
from playground.demo.demo import Demo
from playground.demo.folder import Prepared, only_one, reset
from playground.errors import PlaygroundError
from playground.running.ports import free_port
from playground.running.supervisor import records

ROOT = Path(__file__).resolve().parents[3]
# A start takes some ten seconds on two idle cores; here only one that hangs is noticed.
PATIENCE = 180.0


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "a demo"


def test_a_second_demo_hears_where_the_first_one_is(folder: Path) -> None:
    runs_already = pytest.raises(PlaygroundError, match="runs already, at http://localhost:8123")
    with only_one(folder, "http://localhost:8123"), runs_already:
        Demo(folder, free_port(), "demo").run()
    with only_one(folder, "http://localhost:8124"):
        pass  # the lock is free again


def test_a_taken_port_is_said_before_anything_starts(folder: Path) -> None:
    port = free_port()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with pytest.raises(PlaygroundError, match=f"Port {port} is taken.*PORT={port + 10}"):
            Demo(folder, port, "demo").run()
    assert records(folder) == []


def test_too_little_room_is_said_before_anything_starts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("playground.demo.demo.BYTES_NEEDED", 10**18)
    with pytest.raises(PlaygroundError, match="MB are free"):
        Demo(folder, free_port(), "demo").run()
    assert records(folder) == []


def test_reset_forgets_everything_and_may_be_repeated(folder: Path) -> None:
    (folder / "postgres" / "base").mkdir(parents=True)
    (folder / "secret-key").write_text("x")
    said: list[str] = []
    reset(folder, said.append)
    assert not folder.exists()
    reset(folder, said.append)
    assert said[1] == "There is no demo data to forget."


def test_reset_stops_the_demo_that_runs(folder: Path) -> None:
    source = (
        "import sys, time; from pathlib import Path; from playground.demo.folder import only_one\n"
        "with only_one(Path(sys.argv[1]), 'here'): print('up', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", source, str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT) as running:
        assert running.stdout is not None and running.stdout.readline() == b"up\n"
        reset(folder, lambda text: None)
        assert running.wait(5) == -signal.SIGTERM
    assert not folder.exists()


def test_what_is_prepared_is_remembered_for_this_address_only(folder: Path) -> None:
    Prepared(folder, "http://localhost:1").remember("avocet …")
    assert Prepared(folder, "http://localhost:1").people == "avocet …"
    assert Prepared(folder, "http://localhost:2").people == ""


def test_the_notice_tells_how_far_a_build_is(folder: Path) -> None:
    maker = cluster.Maker(folder)
    maker._progress(Progress("Building Kubernetes 1.37.2", 812, 1940))
    notice = json.loads(cluster.notice_path(folder).read_text())
    assert (notice["done"], notice["total"]) == (812, 1940)
    assert "812 of 1,940 packages" in notice["text"]
    assert "812 of 1,940" in cluster.read_report(folder).now


def test_an_earlier_runs_report_and_addresses_are_not_taken_for_this_ones(folder: Path) -> None:
    stale = cluster.kubeconfig_path(folder, "watch")
    stale.parent.mkdir(parents=True)
    stale.write_text("an old port")
    (folder / "cluster.json").write_text('{"ready": true}')
    cluster.forget_report(folder)
    assert not stale.exists()
    assert not cluster.read_report(folder).ready


# --- Whole runs -----------------------------------------------------------------------------------


class Running:
    """A demo as a person starts it, with what it prints."""

    def __init__(self, folder: Path, port: int):
        self.folder = folder
        self.port = port
        self.output = folder.with_suffix(".txt")
        command = [sys.executable, "-m", "playground", "demo", "--folder", str(folder)]
        self._out: IO[bytes] = self.output.open("wb")
        self.process = subprocess.Popen(
            [*command, "--port", str(port)],
            cwd=ROOT,
            env={k: v for k, v in os.environ.items() if k not in ("DATABASE_URL", "VALKEY_URL")},
            stdout=self._out,
            stderr=subprocess.STDOUT,
        )

    @property
    def text(self) -> str:
        return self.output.read_text()

    def until(self, true: Callable[[], object]) -> None:
        patience = time.monotonic() + PATIENCE
        while not true():
            assert self.process.poll() is None, self.text
            assert time.monotonic() < patience, self.text
            time.sleep(0.1)

    def until_all_up(self) -> None:
        self.until(lambda: "All up after" in self.text)

    def family(self) -> list[psutil.Process]:
        """Everything it started, however it was started."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def end(self, number: signal.Signals) -> float:
        began = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(30)
        self._out.close()
        return time.monotonic() - began


@pytest.fixture
def demo(folder: Path) -> Iterator[Callable[[], Running]]:
    """Starts the demo; the same folder and port each time."""
    port = free_port()
    started: list[Running] = []

    def start() -> Running:
        started.append(Running(folder, port))
        return started[-1]

    yield start
    for running in started:
        if running.process.poll() is None:
            running.end(signal.SIGTERM)
    reset(folder, lambda text: None)


def page(port: int, path: str = "/livez") -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


def gone(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that still run, though they had three seconds to go."""
    patience = time.monotonic() + 3
    left = processes
    while left and time.monotonic() < patience:
        left = [p for p in left if p.is_running() and p.status() != psutil.STATUS_ZOMBIE]
        time.sleep(0.05)
    return left


@pytest.mark.cluster
def test_from_first_page_to_the_last_process(demo: Callable[[], Running], folder: Path) -> None:
    first = demo()
    first.until(lambda: "Berth is at" in first.text)
    assert page(first.port) == 200
    first.until_all_up()
    assert "avocet" in first.text, "it says who there is"
    assert not cluster.notice_path(folder).exists(), "the banner goes when the cluster is there"
    gateway = connect(cluster.kubeconfig_path(folder, "watch"))
    first.until(lambda: gateway.list("ResourceSlice").items)

    family = first.family()
    names = {process.name() for process in family}
    assert {"postgres", "valkey-server", "berth-kube"} <= names
    assert first.end(signal.SIGINT) < 10
    assert first.process.returncode == 0, first.text
    assert gone(family) == []
    assert not re.search(r"by force.*(postgres|valkey|cluster)", first.text), first.text

    second = demo()
    second.until_all_up()
    assert "tables" not in second.text, "what is prepared is not prepared again"
    family = second.family()
    second.end(signal.SIGKILL)

    third = demo()
    third.until_all_up()
    assert gone(family) == [], "the next demo ends what a killed one left"
    third.end(signal.SIGTERM)


@pytest.mark.cluster
def test_what_is_killed_comes_back(demo: Callable[[], Running], folder: Path) -> None:
    running = demo()
    running.until_all_up()
    gateway = connect(cluster.kubeconfig_path(folder, "watch"))

    def components() -> dict[str, int]:
        found = {}
        for process in running.family():
            with contextlib.suppress(psutil.Error):  # it may end while we look
                line = process.cmdline()
                if process.name() == "berth-kube" and len(line) > 1:
                    found[line[1]] = process.pid
        return found

    before = {record.name: record.pid for record in records(folder)}
    assert set(before) == {
        *("postgres", "valkey", "web", "watch", "worker", "beat", "cluster", "fleet")
    }
    old = components()["kube-apiserver"]
    for name in ("web", "worker", "valkey", "postgres"):
        os.kill(before[name], signal.SIGKILL)
    os.kill(old, signal.SIGKILL)

    def back() -> bool:
        now = {record.name: record.pid for record in records(folder) if record.alive}
        changed = [n for n in ("web", "worker", "valkey", "postgres") if now.get(n) != before[n]]
        return len(changed) == 4 and set(now) == set(before)

    running.until(back)
    running.until(lambda: components().get("kube-apiserver", old) != old)
    running.until(lambda: _served(running.port))
    running.until(lambda: _asked(gateway))
    assert "web ended (killed by SIGKILL); starting it again now" in running.text


def _served(port: int) -> bool:
    try:
        return page(port, "/account/login/") == 200
    except OSError:
        return False


def _asked(gateway: Gateway) -> bool:
    try:
        return bool(gateway.list("DeviceClass").items)
    except ClusterError:
        return False
