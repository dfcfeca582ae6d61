"""What nodes publish against what they should have."""

from __future__ import annotations

import pytest

from devices.dra.drift import Inventory, drift, inventory, labelled, plugin_drift
from devices.dra.snapshot import read
from tests.devices.dra.cases import by_number, objects, snapshot


def found(number: str, expected=None) -> list[tuple[str, str, int | None, int | None]]:
    """Code, node, expected and published number of each finding of a case."""
    cluster = snapshot(by_number(number))
    findings = drift(cluster, labelled(cluster) if expected is None else expected)
    return [(f.code.name, f.node, f.expected, f.published) for f in findings]


@pytest.mark.parametrize(
    "number, expected",
    [
        pytest.param(
            "43",
            [
                ("DRIFT_EMPTY_POOL", "node-l4", 8, 0),
                ("DRIFT_DEVICES_MISSING", "node-l5", 8, 7),
                ("DRIFT_DRIVER_NOT_RUNNING", "node-l6", 8, None),
                ("DRIFT_NOT_KNOWN", "node-l7", None, 2),
            ],
            id="43 empty, fewer, none, and nobody knows",
        ),
        pytest.param(
            "04",
            [
                ("DRIFT_NOT_KNOWN", "node-c2", None, 1),
                ("DRIFT_POOL_INCOMPLETE", "node-c1", None, None),
            ],
            id="04 still being published: not counted yet",
        ),
        pytest.param(
            "05",
            [("DRIFT_NOT_KNOWN", "node-d1", None, 2), ("DRIFT_OLD_SLICES", "node-d1", None, None)],
            id="05 old slices are information",
        ),
        pytest.param(
            "20",
            [
                ("DRIFT_NOT_KNOWN", "node-s1", None, 1),
                ("DRIFT_NOT_KNOWN", "node-s2", None, 1),
                ("DRIFT_CONFIGURATION", "node-s1", None, None),
                ("DRIFT_CONFIGURATION", "node-s2", None, None),
            ],
            id="20 one driver, two configurations",
        ),
    ],
)
def test_findings_of_a_case(number, expected) -> None:
    assert found(number) == expected


def test_an_invalid_pool_says_why() -> None:
    cluster = snapshot(by_number("06"))
    [finding] = [f for f in drift(cluster, {}) if f.code.name == "DRIFT_POOL_INVALID"]
    assert finding.why.endswith("duplicate device name gpu-0") and finding.node == "node-e1"


def test_only_information_and_the_unknown_let_a_wave_go_on() -> None:
    gates = {f.code.name: f.gates for n in ("05", "43") for f in _all(n)}
    assert gates == {
        "DRIFT_NOT_KNOWN": False,
        "DRIFT_OLD_SLICES": False,
        "DRIFT_EMPTY_POOL": True,
        "DRIFT_DEVICES_MISSING": True,
        "DRIFT_DRIVER_NOT_RUNNING": True,
    }


def _all(number: str):
    cluster = snapshot(by_number(number))
    return drift(cluster, labelled(cluster))


def test_a_name_that_means_another_card_is_found_with_the_claims_it_touches() -> None:
    everything = objects(by_number("42"))
    yesterday = inventory(
        read([o for o in everything if not o["metadata"]["name"].endswith("new")])
    )
    findings = {
        f.code.name: ([d[2] for d in f.devices], f.claims)
        for f in drift(snapshot(by_number("42")), yesterday)
    }
    assert findings == {
        "DRIFT_DEVICES_MISSING": ([], ()),
        "DRIFT_OLD_SLICES": ([], ()),
        "DRIFT_IDENTITY_CHANGED": (["gpu-0"], ("team-b/infer",)),
        "DRIFT_RENAMED": (["gpu-1"], ("team-a/train",)),
    }


def test_a_record_agrees_with_itself() -> None:
    for number in ("01", "05", "35", "43"):
        cluster = snapshot(by_number(number))
        codes = {f.code.name for f in drift(cluster, inventory(cluster))}
        assert codes <= {"DRIFT_OLD_SLICES"}


def test_devices_that_hide_while_in_use_are_not_missing() -> None:
    place = ("node-h1", "dra.net")
    assert found("09", {place: Inventory(3)}) == []
    assert found("09", {place: Inventory(4)}) == [("DRIFT_DEVICES_MISSING", "node-h1", 4, 3)]
    cluster = snapshot(by_number("09"))
    [strict] = drift(cluster, {place: Inventory(3)}, hides=frozenset())
    assert strict.published == 2


def test_too_many_devices_are_drift_too() -> None:
    assert found("43", {("node-l7", "gpu.nvidia.com"): Inventory(1)})[-1:] == [
        ("DRIFT_DEVICES_TOO_MANY", "node-l7", 1, 2)
    ]


def test_a_node_that_is_gone_misses_no_driver() -> None:
    cluster = snapshot(by_number("31"))
    assert drift(cluster, {("node-c3", "gpu.nvidia.com"): Inventory(1)}) == ()
    [finding] = drift(cluster, {("node-c4", "gpu.nvidia.com"): Inventory(1)})
    assert finding.code.name == "DRIFT_DRIVER_NOT_RUNNING"


def test_a_plugin_that_offers_another_number_is_drift() -> None:
    cluster = snapshot(by_number("34"))
    wanted = {(node, "nvidia.com/gpu"): 8 for node in ("n1", "n2", "n3", "n5")}
    [finding] = plugin_drift(cluster, wanted)  # n2 has 8, n3 is DRA's, n1 is a conflict
    assert (finding.node, finding.expected, finding.published) == ("n5", 8, 4)
