"""The Go driver publishes what the simulated one does, on the API server of either release."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devices.cluster.gateway import Ref
from playground.building.go_programs import build_program
from playground.fleet import slices
from playground.fleet.driver import Trouble, pool_counters, pool_devices
from playground.fleet.spec import load
from playground.realnodes import nodefiles
from tests.playground.conftest import Ground

pytestmark = pytest.mark.cluster

Obj = dict[str, Any]

NODE = "by-go"
SPEC = load("demo")


@pytest.fixture
def folder(ground: Ground) -> Iterator[Path]:
    """The kubelet's folder of a Node that has no kubelet; short, for sockets lie in it."""
    made = Path(tempfile.mkdtemp(prefix="go"))
    (made / "plugins_registry").mkdir()
    ground.admin.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}})
    # Since 1.37 the API server takes amounts of the node only where the Node says it knows them.
    declared = {"status": {"declaredFeatures": ["DRANodeAllocatableResources"]}}
    ground.admin.merge(Ref("Node", NODE), declared, subresource="status")
    yield made
    ground.admin.delete(Ref("Node", NODE))
    shutil.rmtree(made)


@pytest.mark.parametrize(
    "group, driver",
    [
        pytest.param("cpu", "cpu.numa.example", id="amounts of the node, and NUMA zones"),
        pytest.param("a100", "gpu.helios.example", id="partitions with shared counters"),
        pytest.param("h100", "nic.sable.example", id="virtual functions"),
    ],
)
def test_both_drivers_publish_the_same(group: str, driver: str, folder: Path, ground: Ground):
    release = ground.fleet.plane.release
    [described] = [one for one in SPEC.drivers if one.name == driver]
    [pool] = [one for one in described.pools if one.group == group]
    known = {"node": NODE, "node_index": 0, "seed": driver}
    devices = pool_devices(pool, Trouble(), release, **known)
    counters = pool_counters(pool, **known)
    wanted = slices.contents(devices, counters, per_slice=pool.devices_per_slice)

    [its_group] = [one for one in SPEC.groups if one.name == group]
    nodefiles.write(folder / nodefiles.DEVICES, nodefiles.devices_file(SPEC, its_group, NODE))
    process = subprocess.Popen(
        [
            build_program("simdriver", release),
            f"--driver={driver}",
            f"--node={NODE}",
            f"--devices={folder / nodefiles.DEVICES}",
            f"--faults={folder / nodefiles.FAULTS}",
            f"--kubelet-folder={folder}",
            f"--cdi-folder={folder / 'cdi'}",
            f"--kubeconfig={ground.fleet.plane.admin_kubeconfig}",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        all_there = lambda: len(ground.slices(NODE, driver)) == len(wanted)  # noqa: E731
        ground.wait("the slices", all_there)
        found = [
            one["spec"]
            for one in sorted(
                ground.slices(NODE, driver), key=lambda one: str(one["metadata"]["name"])
            )
        ]
    finally:
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=10)
        print(said)  # of use where the slices did not come
    for content, spec in zip(wanted, found, strict=True):
        assert slices.same(content, spec), (content, spec)
        assert spec["pool"]["name"] == NODE
    assert process.returncode == 0
    assert json.loads(said.splitlines()[-1])["msg"] == "the driver ends as it was told"
    assert not list(folder.rglob("*.sock"))
