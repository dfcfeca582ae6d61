"""The fleet as a process of its own: up, asked, broken, stopped; and a cluster of any size."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from playground.commands.table import main
from playground.fleet import scale
from playground.fleet.site import gateway
from playground.plane.components import API_SERVER, ETCD, Tuning
from playground.plane.controlplane import ControlPlane
from tests.playground.planes import NEWEST, built

pytestmark = pytest.mark.cluster
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def plane(tmp_path: Path) -> Iterator[ControlPlane]:
    """A control plane of the test's own; its folder's name holds a space."""
    with ControlPlane(tmp_path / "a plane", built(NEWEST), tuning=Tuning(audit=False)) as plane:
        yield plane


def say(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What a command prints; the test fails where it fails."""
    code = main(words)
    said = capsys.readouterr()
    assert code == 0, said.err
    return said.out


def test_a_fleet_is_a_process_that_answers_and_ends_in_time(
    plane: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ("--folder", str(plane.folder))
    log = (plane.folder / "fleet.log").open("w")
    words = [sys.executable, "-m", "playground", "fleet", "up", "empty", *folder]
    with log, subprocess.Popen(words, cwd=ROOT, stdout=log, stderr=log) as process:
        until = time.monotonic() + 30
        while "are up" not in (plane.folder / "fleet.log").read_text():
            assert time.monotonic() < until and process.poll() is None
            time.sleep(0.1)
        assert say(capsys, "fleet", "status", *folder).startswith("empty: 2 of 2 kubelets run")
        say(capsys, "fault", "kubelet-down", "--node", "plain-01", *folder)
        assert say(capsys, "fleet", "status", *folder).startswith("empty: 1 of 2 kubelets run")
        say(capsys, "fault", "kubelet-down", "--mend", "--node", "plain-01", *folder)
        assert main(["fleet", "up", "empty", *folder]) == 1
        assert "A fleet runs in" in capsys.readouterr().err
        began = time.monotonic()
        say(capsys, "fleet", "down", *folder)
        assert process.wait(5) == 0
        assert time.monotonic() - began < 5
    assert main(["fleet", "status", *folder]) == 1
    assert "No fleet runs in" in capsys.readouterr().err


def test_a_fleet_that_was_killed_is_no_obstacle(
    plane: ControlPlane, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = ("--folder", str(plane.folder))
    words = [sys.executable, "-m", "playground", "fleet", "up", "empty", *folder]
    for _ in range(2):
        with subprocess.Popen(
            words, cwd=ROOT, stdout=subprocess.PIPE, text=True, env={**os.environ}
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "2 machines of empty are up\n"
            process.kill()


def test_a_cluster_of_any_size_is_written_as_it_would_have_become(tmp_path: Path) -> None:
    size = scale.Size(nodes=5, devices_per_node=4, claims=30, pods=26, namespaces=3, used=0.5)
    with ControlPlane(
        tmp_path / "plane", built(NEWEST), components=(ETCD, API_SERVER), tuning=Tuning(audit=False)
    ) as plane:
        admin = gateway(plane.admin_kubeconfig)
        told: list[str] = []
        scale.load(
            admin, size, release=plane.release, tell=lambda what, count, _: told.append(what)
        )
        assert told == ["namespaces", "nodes", "slices", "Pods and claims"]
        counts = {
            kind: len(admin.list(kind).items)
            for kind in ("Node", "ResourceSlice", "ResourceClaim", "Pod")
        }
        assert counts == {"Node": 5, "ResourceSlice": 5, "ResourceClaim": 30, "Pod": 26}
        held = [
            (result["pool"], result["device"])
            for claim in admin.list("ResourceClaim").items
            for result in claim["status"]
            .get("allocation", {})
            .get("devices", {})
            .get("results", ())
        ]
        assert len(held) == len(set(held)) == 10
        running = [pod for pod in admin.list("Pod").items if pod["status"]["phase"] == "Running"]
        assert len(running) == 10
        assert all(pod["spec"]["nodeName"] for pod in running)
