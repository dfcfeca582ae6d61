"""The allocator's verdicts: every ORACLE line of the cases, and the searches that never end."""

from __future__ import annotations

import pytest

from devices.dra.allocate import Kind, Verdict, allocate, forecast
from devices.dra.claims import read_claim_spec
from devices.dra.gates import gates
from devices.dra.requests import Wish
from devices.dra.snapshot import Snapshot, read
from tests.devices.dra.cases import Oracle, by_number, oracles, snapshot

ORACLES = oracles()


def wish_of(seen: Snapshot, oracle: Oracle) -> Wish:
    found = seen.templates if oracle.kind == "template" else seen.claims
    [one] = [value for value in found.values() if value.meta.name == oracle.name]
    return Wish(f"{one.meta.namespace}/{one.meta.name}", one.spec)


def names(verdict: Verdict) -> str:
    return " ".join(given.device[2] for given in verdict.given)


def test_every_oracle_line_is_read():
    assert len(ORACLES) == 86


@pytest.mark.parametrize("oracle", ORACLES, ids=str)
def test_the_cases_come_out_as_upstream_answers(oracle):
    seen = snapshot(by_number(oracle.case[:2]))
    verdict = allocate(seen, seen.node(oracle.node), [wish_of(seen, oracle)])
    assert verdict.kind == oracle.verdict
    if verdict.kind is Kind.OK:
        assert names(verdict) == oracle.rest
    else:
        assert oracle.rest in verdict.text


@pytest.mark.parametrize("oracle", ORACLES, ids=str)
def test_a_forecast_for_all_nodes_says_the_same_of_each(oracle):
    """Nodes that are alike are computed once; each must still get its own devices and texts."""
    seen = snapshot(by_number(oracle.case[:2]))
    wishes = [wish_of(seen, oracle)]
    for node, verdict in forecast(seen, wishes):
        alone = allocate(seen, seen.node(node), wishes)
        assert (verdict.kind, verdict.given, verdict.text) == (alone.kind, alone.given, alone.text)


# Object sets built for one question


def a_cluster(
    *devices, driver="d.example.com", claims=(), nodes=("n1",), release="1.37", **settings
):
    """A node-local pool per node with these devices, one class for all of them, some claims."""
    driver = "d.example.com"
    objects = [
        {
            "kind": "DeviceClass",
            "metadata": {"name": "c"},
            "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{driver}"'}}]},
        }
    ]
    for node in nodes:
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": list(devices)}
        objects.append({"kind": "ResourceSlice", "metadata": {"name": f"s-{node}"}, "spec": spec})
    return read([*objects, *claims], gates=gates(release, settings))


def a_device(number, **fields):
    return {"name": f"d{number:02d}", **fields}


def a_wish(*requests, constraints=()):
    asked = [
        {"name": f"r{number}", "exactly": {"deviceClassName": "c", **request}}
        for number, request in enumerate(requests)
    ]
    spec = {"devices": {"requests": asked, "constraints": list(constraints)}}
    return Wish("t/x", read_claim_spec(spec, "spec", []))


def verdict_of(seen, *wishes):
    return allocate(seen, seen.node("n1"), wishes)


def test_one_more_than_there_is_is_no_at_once_and_upstreams_work_is_told():
    seen = a_cluster(*(a_device(n) for n in range(23)))
    verdict = verdict_of(seen, a_wish({"count": 24}))
    assert verdict.kind is Kind.NO
    assert 2**22 < verdict.work < 2**25


def test_what_upstream_cannot_try_in_ten_seconds_ends_in_its_time_out():
    seen = a_cluster(*(a_device(n) for n in range(30)))
    verdict = verdict_of(seen, a_wish({"count": 31}))
    assert (verdict.kind, verdict.code) == (Kind.FATAL, "SEARCH_TOO_LONG")
    assert "timed out" in verdict.text
    patient = a_cluster(*(a_device(n) for n in range(30)), DRASchedulerFilterTimeout=False)
    assert verdict_of(patient, a_wish({"count": 31})).kind is Kind.NO


def test_two_requests_that_share_too_few_devices_are_seen_together():
    seen = a_cluster(*(a_device(n) for n in range(9)))
    assert verdict_of(seen, a_wish({"count": 5}, {"count": 5})).kind is Kind.NO
    assert verdict_of(seen, a_wish({"count": 5}, {"count": 4})).kind is Kind.OK
    assert verdict_of(seen, a_wish({"count": 5}), a_wish({"count": 5})).kind is Kind.NO


def test_groups_that_are_all_too_small_for_a_constraint_are_counted_not_tried():
    devices = [a_device(n, attributes={"d.example.com/root": {"int": n % 4}}) for n in range(32)]
    seen = a_cluster(*devices)
    same = [{"matchAttribute": "d.example.com/root"}]
    assert verdict_of(seen, a_wish({"count": 8}, constraints=same)).kind is Kind.OK
    verdict = verdict_of(seen, a_wish({"count": 9}, constraints=same))
    assert verdict.kind is Kind.NO


def test_partitions_that_their_counters_exclude_are_counted_not_tried():
    use = {"counterSet": "set", "counters": {"slots": {"value": "2"}}}
    parts = [a_device(n, consumesCounters=[use]) for n in range(24)]
    seen = a_cluster(*parts)
    counters = {
        "kind": "ResourceSlice",
        "metadata": {"name": "s-counters"},
        "spec": {
            "driver": "d.example.com",
            "nodeName": "n1",
            "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 2},
            "sharedCounters": [{"name": "set", "counters": {"slots": {"value": "15"}}}],
        },
    }
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 2}
    spec = {"driver": "d.example.com", "nodeName": "n1", "pool": pool, "devices": parts}
    devices = {"kind": "ResourceSlice", "metadata": {"name": "s-devices"}, "spec": spec}
    by_name = {"kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {}}
    seen = read([by_name, counters, devices])
    assert names(verdict_of(seen, a_wish({"count": 7}))) == " ".join(f"d{n:02d}" for n in range(7))
    assert verdict_of(seen, a_wish({"count": 8})).kind is Kind.NO


def test_a_selector_that_fails_is_met_where_upstream_meets_it():
    """The search stops at the first solution, so what stands behind it is never asked."""
    good = [a_device(n, attributes={"m": {"int": 1}}) for n in range(2)]
    bad = a_device(9)
    ask = {"selectors": [{"cel": {"expression": 'device.attributes["d.example.com"].m == 1'}}]}
    seen = a_cluster(*good, bad)
    assert verdict_of(seen, a_wish({**ask, "count": 2})).kind is Kind.OK
    assert verdict_of(seen, a_wish({**ask, "count": 3})).kind is Kind.FATAL
    assert verdict_of(seen, a_wish({**ask, "allocationMode": "All"})).kind is Kind.FATAL


def an_allocated(name, *devices, **result):
    results = [
        {"request": "r", "driver": "d.example.com", "pool": "n1", "device": device, **result}
        for device in devices
    ]
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "t", "uid": name},
        "spec": {"devices": {"requests": []}},
        "status": {"allocation": {"devices": {"results": results}}},
    }


def test_administrative_access_takes_nothing_and_blocks_the_pod_itself():
    seen = a_cluster(a_device(0), claims=[an_allocated("a", "d00", adminAccess=True)])
    assert verdict_of(seen, a_wish({})).kind is Kind.OK
    assert verdict_of(seen, a_wish({"adminAccess": True}, {})).kind is Kind.NO


def test_a_gate_that_is_off_is_named():
    off = a_cluster(a_device(0), DRAPrioritizedList=False, DRAConsumableCapacity=False)
    either = {"devices": {"requests": [{"name": "r", "firstAvailable": [
        {"name": "a", "deviceClassName": "c"}]}]}}  # fmt: skip
    verdict = verdict_of(off, Wish("t/x", read_claim_spec(either, "spec", [])))
    assert (verdict.kind, verdict.code) == (Kind.FATAL, "FEATURE_OFF")
    assert "DRAPrioritizedList feature is disabled" in verdict.text
    capacity = verdict_of(off, a_wish({"capacity": {"requests": {"memory": "1"}}}))
    assert "DRAConsumableCapacity feature is disabled" in capacity.text


def test_a_share_id_means_a_whole_device_where_shares_are_unknown():
    held = an_allocated("a", "d00", shareID="s1", consumedCapacity={"slots": "1"})
    card = a_device(
        0, allowMultipleAllocations=True, capacity={"slots": {"value": "4", "requestPolicy": {
            "default": "1", "validValues": ["1", "2"]}}},
    )  # fmt: skip
    assert verdict_of(a_cluster(card, claims=[held]), a_wish({})).kind is Kind.OK
    off = a_cluster(card, claims=[held], DRAConsumableCapacity=False)
    assert verdict_of(off, a_wish({})).kind is Kind.NO


def test_devices_that_bind_come_last_and_need_both_gates():
    waits = a_device(0, bindingConditions=["attached"])
    seen = a_cluster(waits, a_device(1))
    assert names(verdict_of(seen, a_wish({}))) == "d00"
    off = a_cluster(waits, a_device(1), DRAResourceClaimDeviceStatus=False)
    assert names(verdict_of(off, a_wish({}))) == "d01"


@pytest.mark.parametrize("release, answer", [("1.36", Kind.NO), ("1.37", Kind.OK)])
def test_a_taint_rule_without_selector_taints_everything_through_1_36(release, answer):
    rule = {
        "kind": "DeviceTaintRule",
        "metadata": {"name": "r"},
        "spec": {"taint": {"key": "k", "effect": "NoSchedule"}},
    }
    seen = a_cluster(a_device(0), claims=[rule], release=release, DRADeviceTaintRules=True)
    assert verdict_of(seen, a_wish({})).kind is answer


@pytest.mark.parametrize("release, answer", [("1.36", Kind.OK), ("1.37", Kind.NO)])
def test_distinct_within_one_request_is_checked_from_1_37_on(release, answer):
    """1.36 remembers one device per request, so a, b, a passes where the two a's are apart."""
    devices = [a_device(n, attributes={"d.example.com/z": {"int": n % 2}}) for n in range(3)]
    seen = a_cluster(*devices, release=release)
    apart = [{"distinctAttribute": "d.example.com/z"}]
    assert verdict_of(seen, a_wish({"count": 3}, constraints=apart)).kind is answer


def test_a_derived_attribute_aligns_what_drivers_spell_differently():
    devices = [
        a_device(0, attributes={"numa": {"int": 0}}),
        a_device(1, attributes={"node": {"string": "0"}}),
        a_device(2, attributes={"node": {"string": "1"}}),
    ]
    text = (
        'device.attributes["d.example.com"].?numa.optMap(n, string(n)).orValue('
        'device.attributes["d.example.com"].?node.orValue(""))'
    )
    ask = {"count": 2, "derivedAttributes": [{"name": "x.example.com/zone", "expression": text}]}
    wish = a_wish(ask, constraints=[{"matchAttribute": "x.example.com/zone"}])
    on = a_cluster(*devices, DRADerivedAttributes=True)
    assert names(verdict_of(on, wish)) == "d00 d01"
    assert verdict_of(a_cluster(*devices), wish).code == "FEATURE_OFF"


def test_nodes_that_are_alike_are_computed_once_and_named_each():
    seen = a_cluster(a_device(0), a_device(1), nodes=tuple(f"n{n}" for n in range(50)))
    found = forecast(seen, [a_wish({"count": 2})])
    assert len(found.groups) == 1
    assert len(found.fitting) == 50
    assert [given.device for given in found.on("n7").given] == [
        ("d.example.com", "n7", "d00"),
        ("d.example.com", "n7", "d01"),
    ]
