"""What a cluster serves: from what was read and what was said, never from its version alone."""

from __future__ import annotations

import pytest

from devices.cluster.capabilities import FIELDS, GATES
from devices.dra.features import Reading, Said, Stage, by_gate, capabilities, weakest
from devices.dra.features_table import FEATURES, LOCKED, Component
from devices.dra.gates import ON_BY_DEFAULT

SHARES = "DRAConsumableCapacity"
RULES = "DRADeviceTaintRules"


def of(gate, readings, release="v1.37.2", sayings=None):
    return by_gate(capabilities(readings, release, sayings))[gate]


def on(stage="", state="on"):
    return Reading(state, "metric", stage)


FIELD = {"Device.allowMultipleAllocations": Reading("on", "openapi")}
KIND = {"DeviceTaintRule": Reading("on", "discovery", "stable", "v1")}


@pytest.mark.parametrize(
    ("readings", "release", "sayings", "stage", "assumed"),
    [
        pytest.param({SHARES: on("beta"), **FIELD}, "v1.37.2", None, Stage.BETA,
                     (Component.SCHEDULER, Component.KUBELET), id="on, others assumed"),
        pytest.param({SHARES: on("beta", "off"), **FIELD}, "v1.37.2", None, Stage.NOT_SERVED, (),
                     id="off in the API server"),
        pytest.param({SHARES: on(state="absent")}, "v1.34.2", None, Stage.NOT_SERVED, (),
                     id="older than the feature"),
        pytest.param({}, "v1.37.2", None, Stage.UNKNOWN,
                     (Component.SCHEDULER, Component.KUBELET), id="nothing was read"),
        pytest.param({SHARES: on("alpha"), **FIELD}, "v1.35.0", None, Stage.UNKNOWN,
                     (Component.SCHEDULER, Component.KUBELET),
                     id="off by default where nobody can look"),
        pytest.param({SHARES: on("beta"), **FIELD}, "v1.37.2",
                     {(Component.SCHEDULER, SHARES): Said(False)}, Stage.NOT_SERVED,
                     (Component.SCHEDULER,), id="said to be off in the scheduler"),
        pytest.param({SHARES: on("alpha"), **FIELD}, "v1.35.0",
                     {(Component.SCHEDULER, SHARES): Said(True),
                      (Component.KUBELET, SHARES): Said(True)}, Stage.ALPHA,
                     (Component.SCHEDULER, Component.KUBELET), id="said to be on"),
    ],
)  # fmt: skip
def test_a_feature(readings, release, sayings, stage, assumed):
    found = of(SHARES, readings, release, sayings)
    assert (found.stage, found.assumed) == (stage, assumed)
    assert found.evidence, "every verdict says what it rests on"


def test_a_kind_that_is_not_served_decides():
    read = {RULES: on(), "DeviceTaintRule": Reading("absent", "discovery")}
    assert of(RULES, read).stage is Stage.NOT_SERVED
    assert of(RULES, {RULES: on(), **KIND}).stage is Stage.STABLE


def test_a_gate_that_is_locked_is_assumed_of_nobody():
    found = of("DRAPrioritizedList", {"DRAPrioritizedList": on()}, "v1.37.2")
    assert (found.stage, found.assumed) == (Stage.STABLE, ())
    assert of("DRAPrioritizedList", {"DRAPrioritizedList": on()}, "v1.36.3").assumed


def test_the_weakest_counts():
    found = capabilities({SHARES: on("beta"), **FIELD, "DRAPrioritizedList": on()})
    assert weakest([]) is Stage.STABLE
    known = by_gate(found)
    assert weakest([known["DRAPrioritizedList"], known[SHARES]]) is Stage.BETA


def test_the_table_is_about_gates_that_are_read_and_known():
    gates = [gate for feature in FEATURES for gate in feature.gates]
    assert len(set(gates)) == len(gates)
    assert set(gates) == set(GATES), "each gate that is read is explained, and none besides"
    assert set(LOCKED) - {"DynamicResourceAllocation"} <= ON_BY_DEFAULT.keys()
    fields = {f"{schema}.{name}" for schema, name in FIELDS}
    assert {name for feature in FEATURES for name in feature.fields} <= fields
    assert len({feature.key for feature in FEATURES}) == len(FEATURES)
    assert all(feature.words and feature.means and feature.without for feature in FEATURES)
