"""What is charged to nodes: the cases of both shapes, and sums that no order of objects changes."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.dra.charges import Rule, charges, device_lines, idle_charges, numa_node
from devices.dra.claims import Result
from devices.dra.gates import gates
from devices.dra.ledger import Account, accounts
from devices.dra.quantity import ZERO, parse
from devices.dra.slices import Attribute, Device, NodeShare
from devices.dra.snapshot import Snapshot, read
from tests.devices.dra.cases import by_number, objects, snapshot

ON = gates("1.37", {"DRANodeAllocatableResources": True})


def account(cluster: Snapshot, node: str, resource: str) -> Account:
    return accounts(cluster)[node][resource]


@pytest.mark.parametrize(
    "number, node, resource, charged, by_devices, numa",
    [
        pytest.param("10", "node-i1", "cpu", "21", "18", {0: "13", 1: "5"}, id="10 shares of CPUs"),
        pytest.param("11", "node-j1", "cpu", "3", "3", {0: "2", 1: "1"}, id="11 half cores"),
        pytest.param("12", "node-k1", "cpu", "4500m", "4", {0: "2", 1: "2"}, id="12 shape of 1.36"),
        pytest.param("12", "node-k1", "memory", "8Gi", "8Gi", {0: "4Gi", 1: "4Gi"}, id="12 memory"),
        pytest.param(
            "12",
            "node-k1",
            "hugepages-2Mi",
            "512Mi",
            "512Mi",
            {0: "256Mi", 1: "256Mi"},
            id="12 huge pages",
        ),
        pytest.param(
            "13",
            "node-l1",
            "memory",
            "7680Mi",
            "5632Mi",
            {0: "5632Mi"},
            id="13 overhead counts for each Pod of a shared claim",
        ),
        pytest.param("14", "node-m1", "cpu", "6", "4", {0: "4"}, id="14 a budget holds the rest"),
        pytest.param("14", "node-m1", "memory", "3Gi", "2Gi", {0: "2Gi"}, id="14 no budget"),
        pytest.param("15", "node-n1", "memory", "0", "0", {}, id="15 the other driver's device"),
        pytest.param("16", "node-o1", "cpu", "2", "2", {None: "2"}, id="16 once, for the first"),
        pytest.param(
            "17",
            "node-p1",
            "hugepages-2Mi",
            "4Mi",
            "4Mi",
            {0: "4Mi"},
            id="17 what was consumed, not what was asked",
        ),
        pytest.param("17", "node-p1", "memory", "0", "0", {}, id="17 huge pages are not memory"),
        pytest.param("50", "node-r5", "cpu", "6", "6", {None: "6"}, id="50 who counts"),
        pytest.param("32", "node-d3", "cpu", "4", "0", {}, id="32 cpu of an ordinary Pod"),
    ],
)
def test_a_node_is_charged(number, node, resource, charged, by_devices, numa) -> None:
    found = account(snapshot(by_number(number)), node, resource)
    assert (found.charged, found.by_devices) == (parse(charged), parse(by_devices))
    assert found.by_numa == {zone: parse(amount) for zone, amount in numa.items()}
    parts = [amount for amount in found.by_numa.values() if amount is not None]
    assert sum(parts, ZERO) == found.by_devices


def test_ordinary_pods_and_devices_are_two_streams() -> None:
    found = account(snapshot(by_number("10")), "node-i1", "cpu")
    assert found.charged - found.by_devices == parse("3") and found.free == parse("41")
    wide = [line for line in found.lines if line.claim == "team-a/wide"]
    assert [str(line.amount) for line in wide] == ["3", "5"]  # once, though two containers use it


def test_each_line_says_who_pays_and_by_which_rule() -> None:
    lines = charges(snapshot(by_number("13")))["node-l1"]
    assert [(line.payer, line.rule, str(line.amount)) for line in lines] == [
        ("pod/team-a/pod-x", Rule.OVERHEAD, "3Gi"),
        ("pod/team-a/pod-y", Rule.OVERHEAD, "2560Mi"),
        ("pod/team-a/pod-x", Rule.REQUEST, "2Gi"),
    ]


def test_lines_inside_a_budget_are_shown_and_not_added() -> None:
    found = account(snapshot(by_number("14")), "node-m1", "cpu")
    assert [(line.rule, str(line.amount), line.contained) for line in found.lines] == [
        (Rule.MAPPING, "4", True),
        (Rule.BUDGET, "6", False),
        (Rule.REQUEST, "1", True),
    ]


def test_a_pod_whose_claim_is_gone_stays_charged_and_is_flagged() -> None:
    found = account(snapshot(by_number("50")), "node-r5", "cpu")
    assert {line.claim: line.code for line in found.lines} == {
        "team-a/run": "",
        "team-a/term": "",
        "team-a/vanished": "LEDGER_CLAIM_GONE",
    }
    assert found.odd[0].payer == "claim/team-a/vanished"


def test_an_idle_claim_is_charged_to_nobody_and_shown_apart() -> None:
    cluster = snapshot(by_number("50"))
    [line] = idle_charges(cluster)
    assert (line.node, line.payer, str(line.amount)) == ("node-r5", "claim/team-a/idle", "2")


def test_a_device_by_dra_is_not_charged_to_the_nodes_extended_resource() -> None:
    assert "nvidia.com/gpu" not in accounts(snapshot(by_number("32")))["node-d3"]


def test_what_is_gone_owes_nothing() -> None:
    assert "node-c3" not in accounts(snapshot(by_number("31")))


# --- both shapes, exactly ---


@pytest.mark.parametrize(
    "share, consumed, references, lines",
    [
        pytest.param(
            NodeShare("cpu", "1.36"), None, 1, [("mapping", "0")], id="1.36 without either: zero"
        ),
        pytest.param(
            NodeShare("cpu", "1.36", multiplier=parse("2")), None, 1, [("mapping", "2")], id="1.36"
        ),
        pytest.param(
            NodeShare("cpu", "1.36", "d/c"), {"d/c": "3"}, 1, [("mapping", "3")], id="1.36 by key"
        ),
        pytest.param(
            NodeShare("cpu", "1.37", "d/c", parse("500m")),
            {"d/c": "3"},
            1,
            [("mapping", "1500m")],
            id="1.37 by key",
        ),
        pytest.param(
            NodeShare("cpu", "1.37", "d/c", parse("1")),
            {"d/x": "3"},
            1,
            [],
            id="a capacity that was not consumed maps nothing",
        ),
        pytest.param(
            NodeShare("cpu", "1.37", "d/c", parse("1")),
            None,
            1,
            [("mapping", None)],
            id="a key without consumed capacity is unknown, never zero",
        ),
        pytest.param(
            NodeShare("cpu", "unknown"), None, 1, [("mapping", None)], id="a shape nobody knows"
        ),
        pytest.param(
            NodeShare("memory", "1.37", per_pod=parse("1Gi"), per_container=parse("1Mi")),
            None,
            3,
            [("overhead", "1027Mi")],
            id="overhead for three references",
        ),
        pytest.param(
            NodeShare("memory", "1.37", multiplier=parse("1Gi"), per_container=parse("1Mi")),
            None,
            0,
            [("mapping", "1Gi"), ("overhead", "0")],
            id="both, and no container refers to it",
        ),
    ],
)
def test_a_device_costs_its_node(share, consumed, references, lines) -> None:
    amounts = consumed and {name: parse(amount) for name, amount in consumed.items()}
    device = Device("x", node_shares=(share,))
    found = device_lines(Result("r", "d", "p", "x", consumed=amounts), device, references)
    assert [(line.rule, line.amount and str(line.amount)) for line in found] == [
        (rule, amount) if amount != "0" else (rule, ZERO) for rule, amount in lines
    ]


@pytest.mark.parametrize(
    "attributes, zone",
    [
        ({}, None),
        ({"resource.kubernetes.io/numaNode": Attribute("int", 1)}, 1),
        ({"dra.net/numaNode": Attribute("int", 0)}, 0),
        ({"dra.net/numaNode": Attribute("int", -1)}, None),
        ({"resource.kubernetes.io/numaNode": Attribute("ints", (1,))}, 1),
        ({"resource.kubernetes.io/numaNode": Attribute("ints", (0, 1))}, None),
        ({"numa": Attribute("string", "0")}, None),
    ],
    ids=str,
)
def test_a_device_is_on_a_numa_node_only_where_it_says_so(attributes, zone) -> None:
    assert numa_node(Device("x", attributes)) == zone


def changed(number: str, kind: str, name: str, change: Any) -> Snapshot:
    """A case with one object changed."""
    found = copy.deepcopy(objects(by_number(number)))
    [obj] = [o for o in found if o["kind"] == kind and o["metadata"]["name"] == name]
    change(obj)
    return read(found, gates=ON)


def test_an_unknown_shape_makes_the_balance_unknown() -> None:
    def change(obj: Any) -> None:
        del obj["status"]["nodeAllocatableResourceClaimStatuses"][0]["resources"]
        obj["status"]["nodeAllocatableResourceClaimStatuses"][0]["novel"] = {}

    found = account(changed("12", "Pod", "infer-0", change), "node-k1", "memory")
    assert (found.charged, found.free) == (None, None)
    assert {line.code for line in found.odd} == {"LEDGER_UNKNOWN_SHAPE"}


def test_the_pods_status_counts_where_slices_have_changed_since() -> None:
    def change(obj: Any) -> None:
        obj["spec"]["devices"][0]["nodeAllocatableResources"]["memory"]["overhead"] = {
            "perPod": "1Gi"
        }

    found = account(changed("13", "ResourceSlice", "node-l1-gpu", change), "node-l1", "memory")
    assert found.by_devices == parse("5632Mi")
    assert [line.code for line in found.odd] == ["LEDGER_POD_STATUS_DIFFERS"] * 2


def test_devices_that_the_scheduler_never_charged_are_counted_and_flagged() -> None:
    def change(obj: Any) -> None:
        del obj["status"]["nodeAllocatableResourceClaimStatuses"]

    cluster = changed("11", "Pod", "rt-0", change)
    found = account(cluster, "node-j1", "cpu")
    assert found.charged == parse("3")
    assert {line.code for line in found.lines} == {"LEDGER_POD_STATUS_DIFFERS"}
    off = read([p.raw for p in cluster.pods.values()] + list(objects(by_number("11"))[:3]))
    assert account(off, "node-j1", "cpu").charged == ZERO  # the cluster does not do it at all


def test_a_claim_that_two_pods_are_charged_for_counts_once() -> None:
    found = list(copy.deepcopy(objects(by_number("16"))))
    [first] = [o for o in found if o["metadata"]["name"] == "first"]
    twin = copy.deepcopy(first)
    twin["metadata"] |= {"name": "twin", "uid": "other"}
    cluster = read([*found, twin], gates=ON)
    account_of = account(cluster, "node-o1", "cpu")
    assert account_of.charged == account_of.by_devices == parse("2")
    assert [line.code for line in account_of.lines] == ["", "LEDGER_COUNTED_TWICE"]


def test_an_overcommitted_node_shows_a_negative_balance() -> None:
    def change(obj: Any) -> None:
        obj["status"]["allocatable"]["cpu"] = "20"

    assert str(account(changed("10", "Node", "node-i1", change), "node-i1", "cpu").free) == "-1"


# --- sums ---

AMOUNTS = st.sampled_from(["0", "1", "500m", "3", "250m", "1Gi", "100Mi", "1e3"])


@st.composite
def clusters(draw: st.DrawFn, *, sharing: bool = True) -> list[dict[str, Any]]:
    """Nodes with devices that cost something, claims on them, and Pods that use the claims."""
    made: list[dict[str, Any]] = []
    for node in ("n1", "n2")[: draw(st.integers(1, 2))]:
        devices = []
        for index in range(draw(st.integers(0, 3))):
            cost: dict[str, Any] = {}
            if draw(st.booleans()):
                cost["mapping"] = {"deviceMultiplier": draw(AMOUNTS)}
            if not cost or draw(st.booleans()):
                cost["overhead"] = {"perPod": draw(AMOUNTS), "perContainer": draw(AMOUNTS)}
            numa = {"resource.kubernetes.io/numaNode": {"int": draw(st.integers(-1, 1))}}
            devices.append(
                {"name": f"d{index}", "attributes": numa, "nodeAllocatableResources": {"cpu": cost}}
            )
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "d", "nodeName": node, "pool": pool, "devices": devices}
        made.append({"kind": "ResourceSlice", "metadata": {"name": node}, "spec": spec})
        made.append(
            {"kind": "Node", "metadata": {"name": node}, "status": {"allocatable": {"cpu": "64"}}}
        )
        for index in range(len(devices)):
            name = f"{node}-c{index}"
            result = {"request": "r", "driver": "d", "pool": node, "device": f"d{index}"}
            made.append(
                {
                    "kind": "ResourceClaim",
                    "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"},
                    "spec": {},
                    "status": {"allocation": {"devices": {"results": [result]}}},
                }
            )
        for index in range(draw(st.integers(0, 3))):
            used = draw(st.integers(0, index)) if sharing else index
            claims = [{"name": "c", "resourceClaimName": f"{node}-c{used}"}]
            uses = [{"name": "c"}] if draw(st.booleans()) else []
            containers = [
                {"name": "m", "resources": {"requests": {"cpu": draw(AMOUNTS)}, "claims": uses}}
            ]
            budget = {"requests": {"cpu": draw(AMOUNTS)}} if draw(st.booleans()) else None
            spec = {"nodeName": node, "containers": containers, "resourceClaims": claims}
            if budget:
                spec["resources"] = budget
            name = f"{node}-p{index}"
            phase = draw(st.sampled_from(["Running", "Pending", "Succeeded"]))
            made.append(
                {
                    "kind": "Pod",
                    "metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"},
                    "spec": spec,
                    "status": {"phase": phase},
                }
            )
    return made


@settings(max_examples=30, deadline=None)
@given(clusters(), st.randoms(use_true_random=False))
def test_sums_hold_and_no_order_of_objects_changes_them(made, random) -> None:
    cluster = read(made, gates=ON)
    found = accounts(cluster)
    shuffled = list(made)
    random.shuffle(shuffled)
    assert accounts(read(shuffled, gates=ON)) == found
    for by_resource in found.values():
        for each in by_resource.values():
            numa = [amount for amount in each.by_numa.values() if amount is not None]
            assert sum(numa, ZERO) == each.by_devices
            assert each.charged == sum(
                (line.amount for line in each.lines if line.amount and not line.contained),
                ZERO,
            )
            assert each.allocatable is not None and each.charged is not None
            assert each.free == each.allocatable - each.charged
            pods = [line.pod for line in each.lines if line.rule is Rule.BUDGET]
            outside = [line for line in each.lines if line.pod in pods and not line.contained]
            assert all(line.rule is Rule.BUDGET for line in outside)
            counted = [line for line in each.lines if line.code != "LEDGER_COUNTED_TWICE"]
            keys = [line.key for line in counted if line.claim]
            assert len(keys) == len(set(keys))


@settings(max_examples=15, deadline=None)
@given(clusters(sharing=False))
def test_a_pod_that_ends_gives_back_exactly_its_own_lines(made) -> None:
    pods = [obj for obj in made if obj["kind"] == "Pod" and obj["status"]["phase"] != "Succeeded"]
    if not pods:
        return
    before = accounts(read(made, gates=ON))
    gone = pods[0]["metadata"]["name"]
    after = accounts(
        read([{**o, "status": {"phase": "Failed"}} if o is pods[0] else o for o in made], gates=ON)
    )
    for node, by_resource in before.items():
        for resource, each in by_resource.items():
            left = tuple(line for line in each.lines if line.pod != f"ns/{gone}")
            assert after[node].get(resource, Account(node, resource, None)).lines == left
