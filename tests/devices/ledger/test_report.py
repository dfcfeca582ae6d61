"""The promotion report: met, not met or unknown, and unknown is never met."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from fractions import Fraction

import pytest

from devices.dra.ledgerreport import (
    Feature,
    Met,
    Objectives,
    Record,
    Upgrade,
    coverage,
    feature_of,
    report,
    shapes_of,
)
from devices.dra.snapshot import Snapshot
from tests.devices.dra.cases import by_number, snapshot
from tests.devices.ledger.clusters import Cluster
from tests.factories import NOON

GOOD = Record(
    looks=90_000, first_look=NOON, equal_since=NOON, safe=1, nodes=1, refused=0, restarts=1,
    gate=True, release="v1.37.2",
)  # fmt: skip
LATER = NOON + timedelta(days=8)


def a_cluster() -> Snapshot:
    made = Cluster()
    node = made.node("n1", cpu="16")
    node["status"]["declaredFeatures"] = ["DRANodeAllocatableResources"]
    made.slices("n1", mapping="2")
    return made.read()


def stands(cluster: Snapshot, record: Record) -> dict[str, Met]:
    return {one.name: one.met for one in report(cluster, record, LATER)}


def test_what_nobody_recorded_stays_unknown_and_the_rest_is_met() -> None:
    found = stands(a_cluster(), GOOD)
    assert [name for name, met in found.items() if met is not Met.MET] == [
        "A rollback was drilled",
        "An upgrade lost nothing that is in use",
        "A downgrade lost nothing that is in use",
        "The objective for capacity holds",
        "The objective for pending Pods holds",
    ]


@pytest.mark.parametrize(
    "changes, name, met",
    [
        pytest.param({"gate": None}, "The API server has", Met.UNKNOWN, id="gate not read"),
        pytest.param({"gate": False}, "The API server has", Met.NOT_MET, id="gate off"),
        pytest.param({"equal_since": None}, "Log, objects", Met.NOT_MET, id="differs now"),
        pytest.param(
            {"equal_since": LATER - timedelta(days=6)}, "Log, objects", Met.NOT_MET, id="too short"
        ),
        pytest.param({"safe": 0}, "Every node's ledger", Met.NOT_MET, id="an unsafe node"),
        pytest.param({"nodes": 0, "safe": 0}, "Every node's ledger", Met.UNKNOWN, id="no node"),
        pytest.param({"refused": 2}, "No doubled key", Met.NOT_MET, id="refused lines"),
        pytest.param({"restarts": 0}, "A driver or node", Met.UNKNOWN, id="no restart seen"),
    ],
)
def test_each_criterion_stands_on_its_evidence(changes, name, met) -> None:
    found = stands(a_cluster(), replace(GOOD, **changes))
    assert [is_ for said, is_ in found.items() if said.startswith(name)] == [met]


UP = Upgrade("v1.36.3", "v1.37.2", NOON, True, before=4, after=4, told=4)
DOWN = replace(UP, frm="v1.37.2", to="v1.36.3")
FULL = ("n1", "cpu", Fraction(4, 5))


@pytest.mark.parametrize(
    "changes, name, met, says",
    [
        pytest.param({"rolled_back": NOON}, "A rollback", Met.MET, "resumed", id="rolled back"),
        pytest.param({"upgrades": (UP,)}, "An upgrade", Met.MET, "4 after", id="upgraded"),
        pytest.param({"upgrades": (UP,)}, "A downgrade", Met.UNKNOWN, "none", id="only up"),
        pytest.param(
            {"upgrades": (replace(DOWN, told=1),)}, "A downgrade", Met.NOT_MET, "3 of which",
            id="lost",
        ),
        pytest.param(
            {"upgrades": (replace(UP, before=0, after=0, told=0),)}, "An upgrade", Met.UNKNOWN,
            "no device was in use", id="nothing in use",
        ),
        pytest.param(
            {"upgrades": (replace(UP, settled=False),)}, "An upgrade", Met.UNKNOWN, "none",
            id="not settled",
        ),
        pytest.param(
            {"objectives": Objectives(80, 5), "fullest": FULL}, "The objective for capacity",
            Met.MET, "80.0 %", id="just full enough",
        ),
        pytest.param(
            {"objectives": Objectives(79, 5), "fullest": FULL}, "The objective for capacity",
            Met.NOT_MET, "cpu of n1", id="too full",
        ),
        pytest.param(
            {"objectives": Objectives(79, 5)}, "The objective for capacity", Met.UNKNOWN,
            "no node", id="nothing known",
        ),
        pytest.param(
            {"objectives": Objectives(80, 5), "waiting": (("ns/p", LATER),)},
            "The objective for pending", Met.MET, "1 Pod with devices waits", id="waits a moment",
        ),
        pytest.param(
            {"objectives": Objectives(80, 5), "waiting": (("ns/p", NOON),)},
            "The objective for pending", Met.NOT_MET, "the longest ns/p", id="waits for days",
        ),
    ],
)  # fmt: skip
def test_rollback_upgrades_and_objectives_stand_on_what_was_recorded(
    changes, name, met, says
) -> None:
    [one] = [
        one
        for one in report(a_cluster(), replace(GOOD, **changes), LATER)
        if one.name.startswith(name)
    ]
    assert (one.met, says in one.evidence) == (met, True), one


def test_a_node_has_the_feature_where_it_says_so_or_the_older_field_is_published() -> None:
    cluster = snapshot(by_number("12"))
    shapes = shapes_of(cluster)
    assert {feature_of(node, shapes) for node in cluster.nodes.values()} == {Feature.USED}
    [declared] = a_cluster().nodes.values()
    assert feature_of(declared, {}) is Feature.DECLARED
    assert feature_of(replace(declared, declared_features=frozenset()), {}) is Feature.ABSENT
    assert feature_of(replace(declared, declared_features=None), {}) is Feature.UNKNOWN


def test_a_driver_covers_where_it_says_what_its_devices_cost() -> None:
    made = Cluster()
    made.slices("n1", mapping="2")
    made.slices("n2")
    assert coverage(made.read()) == {"d.example.com": (1, 2)}
