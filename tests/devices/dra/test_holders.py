"""Who holds a claim: found by uid, never by name."""

from __future__ import annotations

import pytest

from devices.dra.holders import Hold, Origin, Presence, claims_of, full, hold, holders, origin
from tests.devices.dra.cases import by_number, snapshot


@pytest.mark.parametrize(
    "name, state, presences",
    [
        pytest.param("c-pending", Hold.PENDING, [], id="nothing given yet"),
        pytest.param("c-idle", Hold.ALLOCATED, [], id="given, and used by nobody"),
        pytest.param("c-used", Hold.IN_USE, [Presence.PRESENT], id="used by a Pod that is there"),
        pytest.param("c-zombie", Hold.DELETING, [Presence.GONE], id="deleting comes first"),
        pytest.param("c-stale", Hold.STALE, [Presence.GONE], id="its Pod is gone"),
        pytest.param("c-wronguid", Hold.STALE, [Presence.REPLACED], id="a namesake is no consumer"),
        pytest.param("c-empty", Hold.IN_USE, [Presence.PRESENT], id="given no device, and used"),
    ],
)
def test_a_claim_is_held(name, state, presences) -> None:
    cluster = snapshot(by_number("29"))
    claim = cluster.claims["team-a", name]
    found = holders(claim, cluster)
    assert (hold(claim, found), [h.presence for h in found]) == (state, presences)


def test_a_pod_group_is_not_a_missing_pod() -> None:
    cluster = snapshot(by_number("45"))
    claim = cluster.claims["team-hpc", "fabric"]
    found = holders(claim, cluster)
    assert full(claim) and len(found) == 256
    assert [h.consumer.name for h in found if h.presence is Presence.NOT_A_POD] == ["ring"]
    assert hold(claim, found) is Hold.IN_USE


@pytest.mark.parametrize(
    "number, key, expected",
    [
        ("32", ("team-a", "worker-0-extended-resources-9k2lm"), Origin.EXTENDED),
        ("33", ("team-z", "fake-1"), Origin.PRETENDED),
        ("33", ("team-z", "fake-2"), Origin.PRETENDED),
        ("44", ("team-a", "w-0-own-7hxkp"), Origin.TEMPLATE),
        ("44", ("team-a", "shared"), Origin.PERSON),
    ],
)
def test_a_claim_counts_as_the_schedulers_only_where_its_pod_says_so(number, key, expected) -> None:
    cluster = snapshot(by_number(number))
    assert origin(cluster.claims[key], cluster) is expected


def test_a_pods_claims_are_joined_by_status_and_by_spec() -> None:
    cluster = snapshot(by_number("44"))
    first = claims_of(cluster.pods["team-a", "w-0"], cluster)
    assert {name: claim and claim.meta.name for name, claim in first.items()} == {
        "own": "w-0-own-7hxkp",
        "shared": "shared",
        "extra": "extra",  # used by no container
    }  # "none-needed" has no claim, and that is no error
    second = claims_of(cluster.pods["team-a", "w-1"], cluster)
    assert {name: claim and claim.meta.name for name, claim in second.items()} == {
        "own": None,
        "shared": "shared",
    }


def test_a_pods_extended_resource_claim_is_one_of_its_claims() -> None:
    cluster = snapshot(by_number("32"))
    found = claims_of(cluster.pods["team-a", "worker-0"], cluster)
    assert [claim and str(claim) for claim in found.values()] == [
        "team-a/worker-0-extended-resources-9k2lm"
    ]
