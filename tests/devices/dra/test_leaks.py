"""Devices that are held and should not be, and how long that must last before it is believed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from devices.dra.leaks import leaks
from devices.dra.sightings import lasting, sightings
from devices.dra.snapshot import read
from tests.devices.dra.cases import by_number, snapshot


def found(number: str) -> list[tuple[str, str, str]]:
    """Code, claims and devices of each finding of a case."""
    return [
        (leak.code.name, " ".join(leak.claims), " ".join(device[2] for device in leak.devices))
        for leak in leaks(snapshot(by_number(number)))
    ]


@pytest.mark.parametrize(
    "number, expected",
    [
        pytest.param(
            "29",
            [
                ("LEAK_UNRESERVED", "team-a/c-idle", "gpu-1"),
                ("LEAK_RESERVED_BY_GONE_POD", "team-a/c-stale", "gpu-4"),
                ("LEAK_RESERVED_BY_GONE_POD", "team-a/c-wronguid", "gpu-5"),
                ("LEAK_FINALIZER", "team-a/c-zombie", "gpu-3"),
            ],
            id="29 every state of a claim; one without devices leaks none",
        ),
        pytest.param(
            "09",
            [("INFO_DEVICE_NOT_PUBLISHED", "team-net/pod1-nic-8dj8b", "eth2")],
            id="09 a driver that hides what is in use",
        ),
        pytest.param(
            "31",
            [
                ("LEAK_RESERVED_BY_GONE_POD", "team-a/lost-node", "gpu-0"),
                ("LEAK_ORPHANED", "team-a/lost-node", "gpu-0"),
                ("DRIVER_NOT_PUBLISHING", "team-a/stuck-window", "gpu-0"),
            ],
            id="31 a node that is gone, a driver that is away",
        ),
        pytest.param(
            "37",
            [
                ("LEAK_RESERVED_BY_GONE_POD", "team-b/g9", "gpu-0"),
                ("LEAK_DOUBLE_ALLOCATION", "team-a/g3 team-b/g9", "gpu-0"),
            ],
            id="37 given out twice",
        ),
        pytest.param(
            "42",
            [("LEAK_DEVICE_VANISHED", "team-a/train", "gpu-1")],
            id="42 a name that is no longer published",
        ),
        pytest.param(
            "33",
            [
                ("CLAIM_PRETENDS_EXTENDED", "team-z/fake-1", ""),
                ("CLAIM_PRETENDS_EXTENDED", "team-z/fake-2", ""),
            ],
            id="33 an annotation that nobody confirms",
        ),
        pytest.param("32", [], id="32 a claim that the scheduler made is no orphan"),
        pytest.param("22", [], id="22 administrative access holds nothing"),
        pytest.param("48", [], id="48 shares of one card are not given twice"),
        pytest.param("40", [], id="40 Pods that were not read are not called gone"),
    ],
)
def test_findings_of_a_case(number, expected) -> None:
    assert found(number) == expected


def test_a_pod_group_is_never_a_stale_consumer() -> None:
    [leak] = leaks(snapshot(by_number("45")))
    assert not any("ring" in proof for proof in leak.proof) and leak.devices == ()
    # Its 255 Pods are not in the file; the group that is left keeps the devices.


def test_a_finding_carries_its_proof_its_node_and_the_clusters_time() -> None:
    by_claim = {leak.claims[0]: leak for leak in leaks(snapshot(by_number("29")))}
    idle, zombie = by_claim["team-a/c-idle"], by_claim["team-a/c-zombie"]
    assert (idle.node, idle.since) == ("node-a2", datetime(2026, 5, 30, 10, tzinfo=UTC))
    assert zombie.since == datetime(2026, 5, 30, 11, tzinfo=UTC)
    assert zombie.proof == ("pods/vanished (a2000000-0000-4000-8000-0000000000f4): gone",)


def a_claim(name: str, **result: Any) -> dict[str, Any]:
    placed = {"request": "r", "driver": "d", "pool": "p", "device": "x", **result}
    return {
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "ns", "uid": name},
        "spec": {},
        "status": {
            "allocation": {"devices": {"results": [placed]}},
            "reservedFor": [{"resource": "pods", "name": "p", "uid": "u"}],
        },
    }


POOL = {
    "kind": "ResourceSlice",
    "metadata": {"name": "s"},
    "spec": {
        "driver": "d",
        "allNodes": True,
        "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
        "devices": [
            {"name": "x", "allowMultipleAllocations": True, "capacity": {"c": {"value": "10"}}}
        ],
    },
}


@pytest.mark.parametrize(
    "one, other, proof",
    [
        pytest.param(
            {"shareID": "a", "consumedCapacity": {"c": "4"}},
            {"shareID": "b", "consumedCapacity": {"c": "6"}},
            [],
            id="two shares that fit",
        ),
        pytest.param(
            {"shareID": "a", "consumedCapacity": {"c": "5"}},
            {"shareID": "b", "consumedCapacity": {"c": "6"}},
            ["c: 11 given out of 10"],
            id="more than there is",
        ),
        pytest.param(
            {"shareID": "a"}, {"shareID": "a"}, ["share a is in 2 claims"], id="one share"
        ),
        pytest.param(
            {"shareID": "a"}, {}, ["held by 2 claims that may not share it"], id="share and whole"
        ),
        pytest.param({"adminAccess": True}, {}, [], id="an administrator looks on"),
    ],
)
def test_a_device_is_given_twice(one, other, proof) -> None:
    cluster = read([POOL, a_claim("a", **one), a_claim("b", **other)])
    assert [line for leak in leaks(cluster) for line in leak.proof] == proof


def test_a_slice_that_is_still_missing_may_hold_the_device() -> None:
    half = {
        **POOL,
        "spec": {**POOL["spec"], "pool": {**POOL["spec"]["pool"], "resourceSliceCount": 2}},
    }
    assert leaks(read([half, a_claim("a", device="y")])) == ()
    assert [leak.code.name for leak in leaks(read([POOL, a_claim("a", device="y")]))] == [
        "LEAK_DEVICE_VANISHED"
    ]


def test_ended_pods_that_keep_their_reservation_are_found() -> None:
    pod = {
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "ns", "uid": "u"},
        "spec": {},
        "status": {"phase": "Succeeded"},
    }
    assert [leak.code.name for leak in leaks(read([POOL, a_claim("a"), pod]))] == [
        "LEAK_RESERVED_BY_ENDED_POD"
    ]


def test_a_claim_that_outlives_its_pod_is_found() -> None:
    claim = a_claim("a")
    claim["metadata"] |= {
        "annotations": {"resource.kubernetes.io/pod-claim-name": "g"},
        "ownerReferences": [{"kind": "Pod", "name": "p", "uid": "u", "controller": True}],
    }
    other = {"kind": "Pod", "metadata": {"name": "q", "namespace": "ns", "uid": "v"}, "spec": {}}
    assert [leak.code.name for leak in leaks(read([POOL, claim, other]))] == [
        "LEAK_RESERVED_BY_GONE_POD",
        "LEAK_GENERATED_CLAIM",
    ]


def test_a_finding_is_believed_once_it_has_lasted() -> None:
    start = datetime(2026, 6, 1, 9, tzinfo=UTC)
    findings = leaks(snapshot(by_number("29")))
    idle = next(leak for leak in findings if leak.code.name == "LEAK_UNRESERVED")
    seen = sightings({}, findings, start)
    assert lasting(findings, seen, start) == ()
    minute = start + timedelta(minutes=1)
    seen = sightings(seen, findings, minute)
    assert lasting(findings, seen, minute) == (idle,)  # a minute's patience; the others have five
    gone = sightings(seen, [leak for leak in findings if leak is not idle], minute)
    again = sightings(gone, findings, minute + timedelta(minutes=1))
    assert again[idle.key] == minute + timedelta(minutes=1)  # a break starts it anew
