"""What closes a frozen place: which taints and rules, and what stays as it was."""

from __future__ import annotations

from typing import Any

import pytest

from devices.dra.closures import (
    RULE,
    TAINT,
    Closure,
    locks,
    node_taints,
    rule_object,
    stands,
    wanted_of_driver,
    wanted_of_pool,
)
from devices.dra.snapshot import Snapshot, read_kinds

GPU = "gpu.example.com"
MOVING = {"key": "berth.dev/quiescing", "value": "k3x9p2mw", "effect": "NoSchedule"}
OURS = {"key": "berth.dev/quiescing", "value": "freeze-f1", "effect": "NoSchedule"}
OTHER = {"key": "example.com/own", "value": "x", "effect": "NoSchedule"}


def a_node(name: str, *taints: dict[str, str]) -> tuple[str, dict[str, Any]]:
    metadata = {"name": name, "uid": f"uid-{name}"}
    return "Node", {"metadata": metadata, "spec": {"taints": list(taints)}, "status": {}}


def a_slice(node: str, driver: str = GPU) -> tuple[str, dict[str, Any]]:
    spec = {
        "driver": driver,
        "nodeName": node,
        "pool": {"name": f"pool-{node}", "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": "gpu-0"}],
    }
    return "ResourceSlice", {"metadata": {"name": f"{node}-{driver}", "uid": node}, "spec": spec}


def a_cluster(*more: tuple[str, dict[str, Any]]) -> Snapshot:
    nodes = [a_node("d1"), a_node("d2"), a_node("p1"), a_node("x1")]
    named = {obj["metadata"]["name"] for kind, obj in more if kind == "Node"}
    kept = [one for one in nodes if one[1]["metadata"]["name"] not in named]
    return read_kinds([*kept, a_slice("d1"), a_slice("d2"), *more])


OWNERS = {"d1": "dra", "d2": "dra", "p1": "plugin", "x1": "none"}
RULES = (Closure(RULE, driver=GPU, pool="pool-d1"), Closure(RULE, driver=GPU, pool="pool-d2"))
P1 = Closure(TAINT, node="p1", uid="uid-p1")


@pytest.mark.parametrize(
    ("path", "rules", "more", "wanted"),
    [
        pytest.param("", True, (), (*RULES, P1), id="rules where DRA, a taint where the plugin"),
        pytest.param("dra", True, (), RULES, id="nodes of DRA alone"),
        pytest.param("plugin", True, (), (P1,), id="nodes of the plugin alone"),
        pytest.param(
            "dra",
            False,
            (),
            (Closure(TAINT, "d1", "uid-d1"), Closure(TAINT, "d2", "uid-d2")),
            id="taints where the cluster serves no rules",
        ),
        pytest.param(
            "dra", True, (a_node("d1", MOVING),), RULES[1:], id="a node on its way is left alone"
        ),
        pytest.param(
            "dra", True, (a_node("d1", OURS),), RULES, id="its own taint is nobody else's"
        ),
    ],
)
def test_a_node_pool_is_closed_by(
    path: str, rules: bool, more: tuple[Any, ...], wanted: tuple[Closure, ...]
) -> None:
    found = wanted_of_pool(OWNERS, GPU, a_cluster(*more), path=path, rules=rules, freeze="f1")
    assert found == tuple(sorted(wanted))


def test_a_driver_is_closed_by_one_rule_or_where_none_is_served_by_its_nodes() -> None:
    seen = a_cluster(a_slice("p1", "nic.example.com"))
    assert wanted_of_driver(GPU, seen, rules=True) == (Closure(RULE, driver=GPU),)
    nodes = [one.node for one in wanted_of_driver(GPU, seen, rules=False)]
    assert nodes == ["d1", "d2"]


def test_a_rule_stands_when_the_cluster_shows_it_as_it_was_written() -> None:
    rule = rule_object(RULES[0], "f1")
    assert rule["spec"] == {
        "deviceSelector": {"driver": GPU, "pool": "pool-d1"},
        "taint": {"key": "berth.dev/frozen", "value": "f1", "effect": "NoSchedule"},
    }
    assert not stands(RULES[0], "f1", a_cluster())
    assert stands(RULES[0], "f1", a_cluster(("DeviceTaintRule", rule)))
    assert not stands(RULES[1], "f1", a_cluster(("DeviceTaintRule", rule)))
    opened = {**rule, "spec": {**rule["spec"], "deviceSelector": {"driver": "another.example"}}}
    assert not stands(RULES[0], "f1", a_cluster(("DeviceTaintRule", opened)))


def test_a_nodes_other_taints_stay_and_no_move_loses_its_own() -> None:
    assert node_taints([OTHER], "f1", closed=True) == [OTHER, OURS]
    assert node_taints([MOVING], "f1", closed=True) == [MOVING], "it is closed already"
    assert node_taints([OTHER, OURS], "f1", closed=False) == [OTHER]
    assert node_taints([MOVING, OTHER], "f1", closed=False) == [MOVING, OTHER]
    assert stands(P1, "f1", a_cluster(a_node("p1", MOVING)))


def test_locks_are_lines_that_a_policy_reads() -> None:
    assert locks(
        selector={"zone": "a", "pool": "h100"},
        sets=["gpu/plugin", "gpu/driver", "gpu/driver"],
        device_class="h100",
        switches=["vendor.example/plugin=on", "vendor.example/driver=on"],
    ) == (
        "daemonset gpu/driver",
        "daemonset gpu/plugin",
        "class h100",
        "switch pool=h100,zone=a vendor.example/driver vendor.example/plugin",
    )
