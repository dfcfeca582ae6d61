"""A demo with a real node beside its simulated machines: there when it says so, gone with it."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from playground.plane.controlplane import ControlPlane
from playground.realnodes import nodes
from playground.running.ports import free_port
from tests.playground.realnode import real_nodes_built
from tests.playground.realnodes.test_realnode_removal import NOTHING, Left

pytestmark = [pytest.mark.cluster, pytest.mark.long]

ROOT = Path(__file__).resolve().parents[3]
STARTS_WITHIN = 240.0


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL], ids=["Ctrl-C", "kill -9"])
def test_a_demos_real_node_comes_and_goes_with_it(tmp_path: Path, number: signal.Signals) -> None:
    real_nodes_built()
    folder, said = tmp_path / "a demo", tmp_path / "said"
    command = [sys.executable, "-m", "playground", "demo", "--folder", str(folder)]
    command += ["--port", str(free_port()), "--real-nodes", "1"]
    with said.open("w") as out:
        demo = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out)
    try:
        until = time.monotonic() + STARTS_WITHIN
        while "real nodes " not in said.read_text():
            assert demo.poll() is None and time.monotonic() < until, said.read_text()
            time.sleep(0.2)
        [node] = nodes.known(ControlPlane.open(folder / "controlplane"))
        assert node.condition()["status"] == "True"
        left = Left(node)
        assert {"kubelet", "containerd"} <= {one.name() for one in left.processes}
        demo.send_signal(number)
        demo.wait(30)
        until = time.monotonic() + 30
        while left.count() | {"sockets": 0} != NOTHING and time.monotonic() < until:
            time.sleep(0.1)
        assert left.count() | {"sockets": 0} == NOTHING
    finally:
        demo.kill()
        demo.wait()
        reset = [sys.executable, "-m", "playground", "demo", "--folder", str(folder), "--reset"]
        subprocess.run(reset, cwd=ROOT, check=True, capture_output=True)
