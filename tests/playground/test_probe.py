"""The node probe: what it says of a simulated node, and of a real one."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from devices.cluster.gateway import Ref
from playground.fleet import probe
from playground.images import image_name
from playground.manifests import fill
from playground.realnodes.node import RealNode
from tests.playground.conftest import Ground, a_claim, a_pod
from tests.playground.realnode import RealGround

Obj = dict[str, Any]

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
GPU = "example.com/gpu"
STARTED = "2026-11-30T03:37:28.250000Z"
SEEN = {
    "devices": {GPU: ["gpu-1", "gpu-0"], "example.com/nic": ["port-0"]},
    "claimsInUse": {"nic.example.com": 1, "gpu.example.com": 2},
    "kubeletStarted": STARTED,
}
_number = itertools.count(1)


def a_probe(node: str = "n", resource: str = GPU, port: str = "10250") -> Obj:
    """The Pod as Berth fills it in."""
    values = {
        "name": f"probe-{next(_number)}",
        "node": node,
        "image": image_name("nodeprobe"),
        "resource": resource,
        "port": port,
    }
    pod = fill(yaml.safe_load((DEPLOY / "nodeprobe" / "pod.yaml").read_text()), values)
    return dict(pod)


@pytest.mark.parametrize(
    "resource, port, code, message",
    [
        pytest.param(
            GPU,
            "10250",
            0,
            {
                "devices": {GPU: ["gpu-0", "gpu-1"]},
                "claimsInUse": {"gpu.example.com": 2, "nic.example.com": 1},
                "kubeletStarted": STARTED,
            },
            id="the devices of the resource asked for, and every driver's claims",
        ),
        pytest.param(
            "example.com/fpga",
            "10250",
            0,
            {
                "devices": {"example.com/fpga": []},
                "claimsInUse": {"gpu.example.com": 2, "nic.example.com": 1},
                "kubeletStarted": STARTED,
            },
            id="none held is an empty list",
        ),
        pytest.param(
            "", "10250", 1, {"error": "BERTH_RESOURCE names no resource"}, id="asked for nothing"
        ),
        pytest.param(
            GPU, "x", 1, {"error": 'BERTH_KUBELET_PORT is no port: "x"'}, id="asked nowhere"
        ),
    ],
)
def test_a_probe_says(resource: str, port: str, code: int, message: Obj):
    [container] = a_probe(resource=resource, port=port)["spec"]["containers"]
    ended, said = probe.answer(container, lambda: SEEN)
    assert (ended, json.loads(said)) == (code, message)


def test_a_message_is_never_longer_than_the_kubelet_keeps():
    many = {**SEEN, "devices": {GPU: [f"GPU-{number:036d}" for number in range(1000)]}}
    [container] = a_probe()["spec"]["containers"]
    ended, said = probe.answer(container, lambda: many)
    told = json.loads(said)
    assert ended == 0
    assert len(said) <= probe.MOST_MESSAGE
    assert len(told["devices"][GPU]) + told["devicesOmitted"] == 1000


def test_only_berth_s_own_probe_is_one():
    assert probe.is_probe(a_probe())
    elsewhere = a_probe()
    elsewhere["metadata"]["namespace"] = "tenant"
    assert not probe.is_probe(elsewhere)
    assert not probe.is_probe({"metadata": {"namespace": probe.NAMESPACE}})


def install_probe(ground: Ground) -> None:
    for name in ("namespace", "nodeprobe"):
        for obj in yaml.safe_load_all((DEPLOY / "rbac" / f"{name}.yaml").read_text()):
            ground.admin.apply(obj, manager="test")


def look(ground: Ground, node: str, resource: str) -> Obj:
    """Lets a probe look at a node, removes it, and returns what it said."""
    status = ground.node(node)["status"]
    port = status["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    pod = a_probe(node, resource, str(port))
    ref = Ref("Pod", pod["metadata"]["name"], probe.NAMESPACE)
    ground.admin.create(pod)
    try:

        def ended() -> Obj | None:
            found = ground.admin.get(ref) or {}
            [state] = [one["state"] for one in found["status"].get("containerStatuses", ())] or [{}]
            return state.get("terminated")

        terminated = ground.wait(f"the probe on {node} ended", ended)
        phase = lambda: (ground.admin.get(ref) or {})["status"]["phase"]  # noqa: E731
        ground.wait("its phase", lambda: phase() == "Succeeded")
    finally:
        ground.admin.delete(ref, grace_seconds=0)
    assert terminated["exitCode"] == 0, terminated
    return dict(json.loads(terminated["message"]))


@pytest.fixture
def probing(ground: Ground) -> Iterator[Ground]:
    install_probe(ground)
    yield ground
    ground.empty()


def test_a_simulated_node_is_seen_from_inside(probing: Ground):
    ground = probing
    resource = "helios.example/gpu"
    before = look(ground, "dual-1", resource)
    assert (before["devices"], before["claimsInUse"]) == ({resource: []}, {})
    ground.make(a_pod("plugin", limits={resource: "1"}, node="dual-1"))
    ground.make(a_claim("c"), a_pod("claim", claim="c", node="gpu-1"))
    ground.ready("plugin")
    ground.ready("claim")
    assert look(ground, "dual-1", resource)["devices"] == {resource: ["dev-0"]}
    assert look(ground, "gpu-1", resource)["claimsInUse"] == {"gpu.helios.example": 1}


def test_a_real_node_is_seen_from_inside_alike(real_ground: RealGround, real_node: RealNode):
    ground, resource = real_ground, "helios.example/gpu"
    install_probe(ground)
    name = real_node.name
    ground.wait("the slice", lambda: ground.devices(name))
    before = look(ground, name, resource)
    assert (before["devices"], before["claimsInUse"]) == ({resource: []}, {})
    assert datetime.fromisoformat(before["kubeletStarted"])
    ground.make(a_claim("c", "l40s"), a_pod("claim", claim="c", node=name))
    ground.ready("claim")
    during = look(ground, name, resource)
    assert during == {**before, "claimsInUse": {"gpu.helios.example": 1}}
