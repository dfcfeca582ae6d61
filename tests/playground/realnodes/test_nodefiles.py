"""One fleet file, one state of trouble: what real nodes are told of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from playground import manifests
from playground.fleet import install, slices
from playground.fleet.driver import Trouble, pool_devices
from playground.fleet.spec import FleetSpec, NodeGroup, load
from playground.realnodes import nodefiles

SPEC = load(Path(__file__).parents[1] / "fleet.yaml")
ACCESS = manifests.Access("127.0.0.1", "6443")


def group_named(name: str, spec: FleetSpec = SPEC) -> NodeGroup:
    return next(group for group in spec.groups if group.name == name)


@pytest.mark.parametrize("release", ["1.36.3", "1.37.2"])
@pytest.mark.parametrize("group", ["gpu", "dual", "cpu"])
def test_a_real_node_publishes_the_devices_of_a_simulated_one(group: str, release: str):
    told = nodefiles.devices_file(SPEC, group_named(group), f"{group}-1")
    for driver in SPEC.drivers:
        [described] = [one for one in told["drivers"] if one["name"] == driver.name]
        known = {"node": f"{group}-1", "node_index": 0, "seed": driver.name}
        pools = [pool for pool in driver.pools if pool.group == group]
        simulated = [pool_devices(pool, Trouble(), release, **known) for pool in pools]
        real = [
            [slices.for_release(device, release) for device in pool["devices"]]
            for pool in described["pools"]
        ]
        assert real == simulated
        assert [pool["name"] for pool in described["pools"]] == [f"{group}-1"] * len(pools)


def test_driver_and_plugin_of_one_machine_name_the_same_devices():
    spec = load("demo")
    told = nodefiles.devices_file(spec, group_named("l40s", spec), "l40s-1")
    [plugin] = told["plugins"]
    [pool] = [pool for driver in told["drivers"] for pool in driver["pools"]]
    assert plugin["devices"] == [device["name"] for device in pool["devices"]]


def test_a_driver_that_has_nothing_on_a_node_is_described_all_the_same():
    told = nodefiles.devices_file(SPEC, group_named("base"), "base")
    assert {one["name"] for one in told["drivers"]} == {one.name for one in SPEC.drivers}
    assert not any(one["pools"] for one in told["drivers"])


@pytest.mark.parametrize(
    "trouble, told",
    [
        pytest.param(Trouble(), {}, id="nothing is wrong"),
        pytest.param(
            Trouble(refuse="device is on fire", left=None),
            {
                "prepare": [
                    a_rule := {
                        "claims": "*",
                        "fail": "device is on fire",
                        "wholeCall": False,
                        "hang": False,
                        "slowMilliseconds": 0,
                        "times": 0,
                    }
                ]
            },
            id="every claim is refused",
        ),
        pytest.param(
            Trouble(broken="rpc broken", claims="ns/*", left=2),
            {
                "prepare": [
                    {
                        **a_rule,
                        "claims": "ns/*",
                        "fail": "rpc broken",
                        "wholeCall": True,
                        "times": 2,
                    }
                ]
            },
            id="two calls about one namespace break",
        ),
        pytest.param(
            Trouble(refuse="spent", left=0), {}, id="what has failed often enough fails no more"
        ),
        pytest.param(
            Trouble(hang=True, left=None),
            {"prepare": [{**a_rule, "fail": "", "hang": True}]},
            id="no answer",
        ),
        pytest.param(
            Trouble(slow=2.5, left=None),
            {"prepare": [{**a_rule, "fail": "", "slowMilliseconds": 2500}]},
            id="preparing is slow",
        ),
        pytest.param(
            Trouble(unprepare="device is busy"),
            {"unprepare": [{"fail": "device is busy"}]},
            id="giving back fails",
        ),
        pytest.param(
            Trouble(
                gone={"gpu-1", "gpu-0"},
                health={"gpu-2": ("Unhealthy", "ECC error")},
                taints={"gpu-3": [{"key": "a/b", "effect": "NoSchedule"}]},
                silent=True,
            ),
            {
                "gone": ["gpu-0", "gpu-1"],
                "health": {"gpu-2": {"state": "Unhealthy", "message": "ECC error"}},
                "taints": {"gpu-3": [{"key": "a/b", "effect": "NoSchedule"}]},
                "silent": True,
            },
            id="devices gone, unwell and tainted, and a driver that publishes none of it",
        ),
    ],
)
def test_a_real_driver_has_the_trouble_of_a_simulated_one(trouble, told):
    assert nodefiles.faults_of(trouble) == told
    again = nodefiles.trouble_of(told)
    assert nodefiles.faults_of(again) == told, "another process reads what this one wrote"


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path):
    path = tmp_path / "berth" / nodefiles.FAULTS
    nodefiles.write(path, {"drivers": {}})
    nodefiles.write(path, {"plugins": {}})
    assert json.loads(path.read_text()) == {"plugins": {}}
    assert [one.name for one in path.parent.iterdir()] == [nodefiles.FAULTS]


def test_daemon_sets_run_on_both_kinds_of_nodes():
    before = list(install.objects(SPEC))
    after = list(manifests.for_real_nodes(before, SPEC, ACCESS))
    assert before == list(install.objects(SPEC)), "the fleet's own objects were changed"
    sets = [(one, other) for one, other in zip(before, after, strict=True) if one != other]
    assert {one["kind"] for one, _ in sets} == {"DaemonSet"}
    assert len(sets) == len(SPEC.drivers) + len(SPEC.plugins)
    for one, other in sets:
        old, new = (obj["spec"]["template"] for obj in (one, other))
        assert old["metadata"] == new["metadata"], "a simulated kubelet knows it by this"
        for key in ("nodeSelector", "tolerations", "serviceAccountName", "priorityClassName"):
            assert old["spec"][key] == new["spec"][key]


def test_paths_are_the_same_inside_and_outside():
    for obj in manifests.for_real_nodes(install.objects(SPEC), SPEC, ACCESS):
        if obj["kind"] == "DaemonSet":
            pod = obj["spec"]["template"]["spec"]
            outside = {one["name"]: one["hostPath"]["path"] for one in pod["volumes"]}
            [container] = pod["containers"]
            assert outside == {one["name"]: one["mountPath"] for one in container["volumeMounts"]}


def test_a_plugin_is_told_its_resource_and_a_driver_its_name():
    arguments = {
        obj["metadata"]["name"]: obj["spec"]["template"]["spec"]["containers"][0]["args"][0]
        for obj in manifests.for_real_nodes(install.objects(SPEC), SPEC, ACCESS)
        if obj["kind"] == "DaemonSet"
    }
    assert arguments == {
        **{f"{install.slug(one.name)}-node": f"--driver={one.name}" for one in SPEC.drivers},
        **{
            f"{install.slug(one.name)}-plugin": f"--resource={one.resource}" for one in SPEC.plugins
        },
    }
