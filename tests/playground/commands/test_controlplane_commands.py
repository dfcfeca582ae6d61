"""`python -m playground` as people type it: up stays up, down takes down, errors are sentences."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from playground.commands.table import TABLE
from playground.plane.components import COMPONENTS
from playground.plane.controlplane import ControlPlane
from tests.playground.planes import NEWEST, built

ROOT = Path(__file__).resolve().parents[3]


def playground(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "playground", *map(str, words)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "a plane"
    yield folder
    if folder.exists():
        ControlPlane.open(folder).wipe()


@pytest.mark.parametrize("name", sorted(TABLE))
def test_every_subcommand_explains_itself(name: str) -> None:
    said = playground(name, "--help")
    assert said.returncode == 0, said.stderr
    assert TABLE[name].help in said.stdout


@pytest.mark.parametrize("name", ["down", "status", "kubeconfig"])
def test_without_a_control_plane_it_says_so(name: str, tmp_path: Path) -> None:
    said = playground(name, "--folder", tmp_path / "none")
    assert (said.returncode, said.stdout) == (1, "")
    assert said.stderr == f"There is no control plane in {tmp_path / 'none'}.\n"


@pytest.mark.cluster
def test_up_stays_up_until_down(folder: Path, tmp_path: Path) -> None:
    built(NEWEST)
    up = playground("up", "--folder", folder, "--without", "kube-scheduler")
    assert up.returncode == 0, up.stderr
    assert f"Kubernetes {NEWEST} answers at https://127.0.0.1:" in up.stdout
    plane = ControlPlane.open(folder)
    assert set(plane.pids()) == set(COMPONENTS) - {"kube-scheduler"}

    status = playground("status", "--folder", folder)
    assert status.returncode == 0
    assert status.stdout.count("running") == 3

    words = ("kubeconfig", "--folder", folder, "--user", "ann", "--group", "a", "--group", "b")
    path = Path(playground(*words).stdout.strip())
    assert yaml.safe_load(path.read_text())["users"][0]["name"] == "ann"
    account = playground("kubeconfig", "--folder", folder, "--service-account", "default/default")
    assert "token" in yaml.safe_load(Path(account.stdout.strip()).read_text())["users"][0]["user"]

    good, wrong = tmp_path / "good.yaml", tmp_path / "wrong.yaml"
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass"}
    good.write_text(yaml.safe_dump({**head, "metadata": {"name": "a.example.com"}, "spec": {}}))
    wrong.write_text(yaml.safe_dump({**head, "metadata": {"name": "NOT A NAME"}, "spec": {}}))
    loaded = playground("load", "--folder", folder, good)
    assert (loaded.returncode, loaded.stdout) == (0, "1 objects are live, 0 refused.\n")
    refused = playground("load", "--folder", folder, wrong)
    assert refused.returncode == 1
    assert "refused: DeviceClass NOT A NAME: " in refused.stdout

    assert playground("down", "--folder", folder).returncode == 0
    assert plane.pids() == {}
    assert playground("status", "--folder", folder).returncode == 1
    again = playground("up", "--folder", folder)
    assert again.returncode == 0, again.stderr
    assert set(plane.pids()) == set(COMPONENTS) - {"kube-scheduler"}, "as it was"
    assert playground("down", "--wipe", "--folder", folder).returncode == 0
    assert not folder.exists()
