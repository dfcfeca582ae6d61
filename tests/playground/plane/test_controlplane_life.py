"""A control plane stops, survives, moves and cleans up: each test breaks one."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from playground.errors import PlaygroundError
from playground.plane.components import API_SERVER, COMPONENTS, ETCD, SCHEDULER
from playground.plane.controlplane import ControlPlane
from playground.plane.https import ask
from playground.running.processes import look_up
from tests.playground.plane.test_controlplane import make
from tests.playground.planes import NEWEST, StartPlane, built

pytestmark = pytest.mark.cluster

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def own_plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane that the test may break, off; its folder's name holds a space."""
    plane = ControlPlane(tmp_path / "a plane", built(NEWEST))
    yield plane
    plane.stop()


@pytest.fixture(scope="module")
def fragile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One that these tests may stop, break and move, in turn; see `whole`."""
    plane = ControlPlane(tmp_path_factory.mktemp("fragile") / "a plane", built(NEWEST))
    yield plane
    plane.stop()


@pytest.fixture
def whole(fragile: ControlPlane) -> ControlPlane:
    """The same, every part of it running, whatever the test before has left."""
    return fragile.start(tied=True)


def alive(pids: dict[str, int]) -> list[str]:
    return [name for name, pid in pids.items() if look_up(pid)]


def gone_within(pids: dict[str, int], seconds: float) -> bool:
    until = time.monotonic() + seconds
    while alive(pids) and time.monotonic() < until:
        time.sleep(0.05)
    return not alive(pids)


def test_two_stand_side_by_side(start_plane: StartPlane, whole: ControlPlane) -> None:
    first, second = start_plane(NEWEST), whole
    assert first.url != second.url
    make(second, "/api/v1/namespaces", "Namespace", "only-in-the-second")
    assert second.ask("/api/v1/namespaces/only-in-the-second").status == 200
    assert first.ask("/api/v1/namespaces/only-in-the-second").status == 404
    assert first.ask("/version").status == 200
    answer = ask(second.url + "/version", ca_file=first.ca_file)
    assert answer.status == 0, "each has an authority of its own"


def test_data_and_addresses_are_kept_over_a_restart(whole: ControlPlane) -> None:
    url, admin = whole.url, whole.admin_kubeconfig.read_bytes()
    make(whole, "/api/v1/namespaces", "Namespace", "kept")
    pids = whole.pids()
    whole.start(tied=True)
    assert whole.pids() == pids, "starting a running one changes nothing"
    begun = time.monotonic()
    whole.stop()
    assert time.monotonic() - begun < 10
    assert alive(pids) == []
    again = ControlPlane.open(whole.folder).start(tied=True)
    assert (again.url, again.admin_kubeconfig.read_bytes()) == (url, admin)
    assert again.ask("/api/v1/namespaces/kept").status == 200


def test_another_release_on_the_same_data_is_refused(whole: ControlPlane) -> None:
    with pytest.raises(PlaygroundError, match=f"holds data of release {NEWEST}"):
        ControlPlane(whole.folder, "1.36")


def test_kubeconfigs_move_when_somebody_took_the_port(whole: ControlPlane) -> None:
    before, person = whole.url, whole.kubeconfig("ann")
    whole.stop()
    with socket.create_server(("127.0.0.1", int(before.rpartition(":")[2]))):
        whole.start(tied=True)
        assert whole.url != before
        assert whole.url in person.read_text()
        assert whole.ask("/version").status == 200


def test_a_killed_parent_leaves_nothing_behind(tmp_path: Path) -> None:
    """Tied is by a pipe, not by the thread that started them; so the thread here has ended."""
    folder = tmp_path / "plane"
    script = (
        "import sys, threading, time; from pathlib import Path\n"
        "from playground.plane.controlplane import ControlPlane\n"
        "plane = ControlPlane(Path(sys.argv[1]), sys.argv[2])\n"
        "thread = threading.Thread(target=plane.start, kwargs={'tied': True})\n"
        "thread.start(); thread.join(); time.sleep(0.5)\n"
        "print('up', flush=True); time.sleep(600)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(folder), built(NEWEST)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
    )
    with parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"up\n"
        pids = ControlPlane.open(folder).pids()
        assert set(pids) == set(COMPONENTS)
        assert sorted(alive(pids)) == sorted(COMPONENTS)
        parent.kill()
    assert gone_within(pids, 5), alive(pids)


def test_what_a_killed_run_left_is_taken_over_or_cleaned_up(own_plane: ControlPlane) -> None:
    script = (
        "import os, sys; from pathlib import Path\n"
        "from playground.plane.controlplane import ControlPlane\n"
        "ControlPlane(Path(sys.argv[1]), sys.argv[2]).start()\n"
        "os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(own_plane.folder), NEWEST], cwd=ROOT)
    left = own_plane.pids()
    assert sorted(alive(left)) == sorted(COMPONENTS)
    os.kill(left[SCHEDULER], signal.SIGKILL)
    own_plane.start()
    now = own_plane.pids()
    assert {n for n in COMPONENTS if now[n] == left[n]} == set(COMPONENTS) - {SCHEDULER}
    os.kill(left[API_SERVER], signal.SIGSTOP)
    own_plane.start(tied=True)
    assert gone_within(left, 5), "a tied run takes nothing over"
    assert own_plane.states() == dict.fromkeys(COMPONENTS, "running")


def test_a_process_that_got_our_pid_is_not_touched(own_plane: ControlPlane) -> None:
    """After a restart of the machine the notes name pids that belong to others."""
    with subprocess.Popen(["sleep", "600"]) as stranger:
        note = own_plane.folder / "run" / f"{SCHEDULER}.json"
        note.parent.mkdir(parents=True)
        note.write_text(
            json.dumps({"pid": stranger.pid, "started": "another time", "command": ["x"]})
        )
        own_plane.start(tied=True)
        own_plane.stop()
        assert stranger.poll() is None
        stranger.kill()


def test_a_part_can_be_stopped_crashed_paused_and_brought_back(whole: ControlPlane) -> None:
    make(whole, "/api/v1/namespaces", "Namespace", "before")
    whole.pause(API_SERVER)
    assert whole.states()[API_SERVER] == "paused"
    assert whole.ask("/version", timeout=1).status == 0
    whole.resume(API_SERVER)
    assert whole.ask("/version").status == 200
    for kill in (False, True):
        whole.stop_component(ETCD, kill=kill)
        assert whole.states()[ETCD] == "stopped"
        whole.start_component(ETCD)
        whole.stop_component(API_SERVER, kill=kill)
        assert whole.ask("/version").status == 0
        whole.start_component(API_SERVER)
        assert whole.ask("/api/v1/namespaces/before").status == 200
    whole.pause(SCHEDULER)
    begun = time.monotonic()
    whole.stop()
    assert time.monotonic() - begun < 10
    assert whole.states() == dict.fromkeys(COMPONENTS, "stopped")


def test_forgotten_history_is_410_for_watch_and_list(whole: ControlPlane) -> None:
    for number in range(3):
        make(whole, "/api/v1/namespaces", "Namespace", f"n{number}")
    page = whole.ask("/api/v1/namespaces?limit=1").json()["metadata"]
    old, token = page["resourceVersion"], page["continue"]
    watch = "/api/v1/namespaces?watch=true&timeoutSeconds=1&resourceVersion="
    assert b'"code":410' not in whole.ask(watch + old).body
    oldest = whole.compact()
    assert oldest > int(old)
    answer = whole.ask(watch + old)
    said = answer.json() if answer.status == 410 else json.loads(answer.body.splitlines()[0])
    said = said.get("object", said)
    assert (said["code"], said["reason"]) in ((410, "Expired"), (410, "Gone"))
    assert whole.ask(f"/api/v1/namespaces?limit=1&continue={token}").status == 410
    fresh = whole.ask("/api/v1/namespaces").json()["metadata"]["resourceVersion"]
    assert whole.ask(watch + fresh).status == 200


def test_a_wiped_folder_may_hold_another_release(whole: ControlPlane) -> None:
    """The last of those who share it."""
    whole.wipe()
    assert not whole.folder.exists()
    ControlPlane(whole.folder, "1.36")


def test_an_older_minor_is_served_by_emulation(tmp_path: Path) -> None:
    with ControlPlane(tmp_path, built(NEWEST), emulated_version="1.35") as plane:
        assert plane.ask("/version").json()["emulationMinor"] == "35"
        groups = {
            version: plane.ask(f"/apis/resource.k8s.io/{version}")
            for version in ("v1", "v1beta2", "v1alpha3")
        }
        serving = {
            version
            for version, answer in groups.items()
            if answer.status == 200
            and any(r["name"] == "devicetaintrules" for r in answer.json()["resources"])
        }
        assert serving == {"v1alpha3"}


def test_single_gates_and_parts_can_be_chosen(tmp_path: Path) -> None:
    parts = (ETCD, API_SERVER)
    gates = {"DRADeviceTaintRules": False}
    with ControlPlane(tmp_path, built(NEWEST), gates=gates, components=parts) as plane:
        assert tuple(plane.states()) == parts
        metrics = plane.ask("/metrics").body.decode()
        wanted = {"DRADeviceTaintRules": "0", "DRANodeAllocatableResources": "1"}
        for gate, value in wanted.items():
            line = next(
                line
                for line in metrics.splitlines()
                if line.startswith("kubernetes_feature_enabled{") and f'name="{gate}"' in line
            )
            assert line.endswith(f" {value}"), line


def test_a_wrong_gate_is_told_and_leaves_nothing_running(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path, built(NEWEST), gates={"NoSuchGate": True})
    with pytest.raises(PlaygroundError, match="unrecognized feature gate: NoSuchGate"):
        plane.start(tied=True)
    assert plane.pids() == {}
