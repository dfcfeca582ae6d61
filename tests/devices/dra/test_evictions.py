"""Which Pods device taints end, and when."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from devices.dra.evictions import evictions, rule_reach
from devices.dra.gates import gates
from devices.dra.snapshot import read
from tests.devices.dra.cases import by_number, snapshot


def test_a_claim_that_tolerates_for_a_while_ends_later() -> None:
    ended = {found.claim: (found.pods, found.at) for found in evictions(snapshot(by_number("24")))}
    assert ended == {
        "team-a/evict": (("team-a/evict-0",), datetime(2026, 6, 1, 10, 0, tzinfo=UTC)),
        "team-a/keep": (("team-a/keep-0",), datetime(2026, 6, 1, 10, 5, tzinfo=UTC)),
    }


def test_an_empty_selector_reaches_every_device_and_none_reaches_none() -> None:
    cluster = snapshot(by_number("25"))
    reach = {rule.name: rule_reach(cluster, rule) for rule in cluster.rules}
    assert (len(reach["drain-rack"].published), reach["drain-rack"].drivers) == (
        3,
        ("dra.net", "gaudi.intel.com"),
    )
    assert reach["drain-rack"].pods == ("team-a/a-0", "team-b/b-0")
    assert reach["drain-rack"].namespaces == ("team-a", "team-b")
    assert reach["gaudi-bad"].published == (("gaudi.intel.com", "node-x1", "0000-0f-00-0-0x1020"),)
    assert reach["gaudi-bad"].pods == ()
    assert reach["dormant"].published == ()
    assert {found.claim for found in evictions(cluster)} == {"team-a/a", "team-b/b"}


def a_claim(*tolerations: dict[str, Any]) -> dict[str, Any]:
    result = {"request": "r", "driver": "d", "pool": "p", "device": "x", "tolerations": tolerations}
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "namespace": "ns"},
        "spec": {},
        "status": {
            "allocation": {"devices": {"results": [{**result, "tolerations": list(tolerations)}]}}
        },
    }


RULE = {
    "kind": "DeviceTaintRule",
    "metadata": {"name": "r"},
    "spec": {
        "deviceSelector": {"driver": "d"},
        "taint": {"key": "k", "effect": "NoExecute", "timeAdded": "2026-06-01T10:00:00Z"},
    },
}


@pytest.mark.parametrize(
    "tolerations, minute",
    [
        pytest.param([], 0, id="none: at once"),
        pytest.param(
            [{"key": "k", "operator": "Exists", "effect": "NoExecute"}], None, id="for ever"
        ),
        pytest.param([{"key": "k", "operator": "Exists"}], 0, id="the effect has to be named"),
        pytest.param(
            [
                {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 120},
                {"key": "k", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60},
            ],
            1,
            id="the shortest counts",
        ),
        pytest.param(
            [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": -5}],
            0,
            id="less than nothing is nothing",
        ),
    ],
)
def test_tolerations_put_the_end_off(tolerations, minute) -> None:
    found = evictions(read([RULE, a_claim(*tolerations)]))
    times = [ended.at and ended.at.minute for ended in found]
    assert times == ([] if minute is None else [minute])


def test_a_device_that_is_not_published_any_more_is_still_reached_by_rules() -> None:
    assert len(evictions(read([RULE, a_claim()]))) == 1


def test_what_is_switched_off_ends_nothing() -> None:
    off = gates("1.37", {"DRADeviceTaints": False})
    assert evictions(read([RULE, a_claim()], gates=off)) == ()
    assert evictions(read([RULE, a_claim()], gates=gates("1.36"))) == ()


def test_nobody_knows_when_where_the_taint_has_no_time() -> None:
    spec = {**RULE["spec"], "taint": {"key": "k", "effect": "NoExecute"}}
    [found] = evictions(read([{**RULE, "spec": spec}, a_claim()]))
    assert found.at is None
