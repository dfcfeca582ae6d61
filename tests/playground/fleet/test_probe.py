"""The node probe: what it says of a simulated node, and of a real one."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec
import pytest

from devices.cluster.gateway import Ref
from playground.fleet import probe
from playground.fleet.fleet import Fleet
from playground.plane.controlplane import ControlPlane
from playground.realnodes import described
from playground.realnodes.node import RealNode
from tests.playground.conftest import Ground, a_claim, a_pod
from tests.playground.probing import a_probe, install_probe, look, message_of
from tests.playground.realnode import REAL_FLEET, SETTINGS, RealGround, StartRealNode

Obj = dict[str, Any]

GPU = "example.com/gpu"
STARTED = "2026-11-30T03:37:28.250000Z"
SEEN = {
    "devices": {GPU: ["gpu-1", "gpu-0"], "example.com/nic": ["port-0"]},
    "claimsInUse": {"nic.example.com": 1, "gpu.example.com": 2},
    "kubeletStarted": STARTED,
}


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


@pytest.fixture(scope="module")
def twins(
    real_plane: ControlPlane, start_real_node: StartRealNode
) -> Iterator[tuple[RealNode, str]]:
    """A real node and a simulated one, each with driver and plugin: the real one, and the name of
    the other."""
    both = {"helios.example/driver": "true", "helios.example/plugin": "true"}
    groups = [
        msgspec.structs.replace(group, labels=both, node="probed-{number}")
        for group in REAL_FLEET.groups
    ]
    spec = msgspec.structs.replace(REAL_FLEET, groups=groups, time_scale=0.1)
    fleet = Fleet(spec, real_plane, objects=partial(described.objects, plane=real_plane))
    fleet.start()
    settings = replace(described.settings_of(REAL_FLEET, SETTINGS), labels=both)
    yield start_real_node("probed-real", settings=settings), "probed-1"
    fleet.stop()
    fleet.admin.delete(Ref("Node", "probed-1"))


RESOURCE = "helios.example/gpu"
# What is chance: when the kubelet started, and which of two devices it takes.
CHANCE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z|gpu-[01]")


def test_real_and_simulated_nodes_are_seen_alike_to_the_byte(
    real_ground: RealGround, twins: tuple[RealNode, str]
):
    ground, names = real_ground, (twins[0].name, twins[1])
    install_probe(ground)
    for name in names:
        ground.wait("the driver's slice", lambda name=name: ground.devices(name), seconds=40)
        offered = lambda name=name: (  # noqa: E731
            ground.node(name)["status"]["allocatable"].get(RESOURCE) == "2"
        )
        ground.wait("the plugin's devices", offered, seconds=40)

    def said(resource: str = RESOURCE, code: int = 0) -> list[str]:
        return [
            CHANCE.sub("CHANCE", message_of(ground, name, resource, code=code)) for name in names
        ]

    def both(words: str) -> list[str]:
        return [words, words]

    told = '{"devices":{"helios.example/gpu":[%s]},"claimsInUse":{%s},"kubeletStarted":"CHANCE"}'
    assert said() == both(told % ("", ""))
    for name in names:
        ground.make(
            a_claim(f"c-{name}", "l40s"), a_pod(f"claim-{name}", claim=f"c-{name}", node=name)
        )
    for name in names:
        ground.ready(f"claim-{name}")
    assert said() == both(told % ("", '"gpu.helios.example":1'))
    for name in names:
        ground.make(a_pod(f"plugin-{name}", limits={RESOURCE: "1"}, node=name))
    for name in names:
        ground.ready(f"plugin-{name}")
    assert said() == both(told % ('"CHANCE"', '"gpu.helios.example":1'))
    assert said("", code=1) == both('{"error":"BERTH_RESOURCE names no resource"}')
    ground.empty()
    assert said() == both(told % ("", ""))
