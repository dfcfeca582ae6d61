"""What gates measure in rows: which Pods are whose, what counts for and against a moved node."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from devices.dra.snapshot import read
from devices.forecasts.picture import picture
from devices.models import Claim, ClaimEvent, DriftLine, OwnershipLine
from migrationplan.gates import Outcome
from migrationplan.gating import Subject
from migrationplan.gating.judging import kept, read_now
from migrationplan.measures import Measure
from tenants.access import PlatformAccess
from tests.factories import NOON, make_access
from tests.migrationplan.gating.rows import BOOK, NOT_GIVEN, a_cluster, a_gate, lines, reading, ways
from tests.migrationplan.test_survey import DRIVER, GPU, a_claim, a_node, a_slice

pytestmark = pytest.mark.django_db
PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE


def test_a_slow_node_fails_against_the_others_of_its_pool(
    subject: Subject, operator: PlatformAccess, claim: Claim
) -> None:
    gate = a_gate(operator, Measure.PREPARED)
    ways(claim, 30, "p1", path="plugin")
    ways(claim, 20, "m1")
    ways(claim, 20, "m2", prepare=30)
    found = reading(subject, gate)
    assert found.verdict == FAIL
    assert found.sentence.startswith("20 of 40 Pods took longer than 6 s from bound to prepared")
    assert {sample.node for sample in kept(found).moved} == {"m1", "m2"}
    assert (found.figures["moved"]["p50"], found.figures["others"]["p95"]) == (17, 4)


@pytest.mark.parametrize(
    ("node", "more", "side"),
    [
        pytest.param("m1", {}, "moved", id="a claim on a moved node"),
        pytest.param("m1", {"path": "extended"}, "moved", id="by name, on DRA"),
        pytest.param("p1", {"path": "plugin"}, "others", id="the plugin on another node"),
        pytest.param("m1", {"path": "plugin"}, None, id="the plugin's, before its node moved"),
        pytest.param("m1", {"hours": 5.5}, None, id="before the node counts"),
        pytest.param("d1", {}, None, id="a node of an earlier wave"),
        pytest.param("m1", {"hours": 7}, None, id="before it all began"),
        pytest.param("z", {"node_pool": "other"}, None, id="another pool"),
        pytest.param("z", {"node_pool": ""}, None, id="a node in no pool"),
        pytest.param("m1", {"classes": ["h100", "nic"]}, None, id="it asked for more"),
        pytest.param("m1", {"classes": ["l40s"]}, None, id="another class"),
        pytest.param("", {"times": NOT_GIVEN}, "moved", id="waits for a claim"),
        pytest.param("", {"times": NOT_GIVEN, "path": "plugin"}, "others", id="waits by name"),
        pytest.param("", {"times": NOT_GIVEN, "path": "extended"}, None, id="either may serve it"),
    ],
)  # fmt: skip
def test_whose_pods_are_whose(
    subject: Subject, operator: PlatformAccess, claim: Claim,
    node: str, more: dict[str, Any], side: str | None,
) -> None:  # fmt: skip
    ways(claim, 1, node, **more)
    samples = kept(reading(subject, a_gate(operator, Measure.ALLOCATION)))
    assert (len(samples.moved), len(samples.others)) == (side == "moved", side == "others")


@pytest.mark.parametrize(
    ("times", "value"),
    [
        pytest.param({}, 0.0, id="given at once"),
        pytest.param({"allocated_at": NOON - timedelta(hours=1)}, 1.0, id="given too late"),
        pytest.param(NOT_GIVEN, 1.0, id="waits too long"),
        pytest.param(
            NOT_GIVEN | {"created_at": NOON - timedelta(minutes=1)}, None, id="may still get it"
        ),
        pytest.param(
            NOT_GIVEN | {"released_at": NOON - timedelta(hours=1, minutes=55)}, None,
            id="gave up before",
        ),
    ],
)  # fmt: skip
def test_who_got_devices(
    subject: Subject, operator: PlatformAccess, claim: Claim,
    times: dict[str, Any], value: float | None,
) -> None:  # fmt: skip
    ways(claim, 1, "m1", times=times)
    samples = kept(reading(subject, a_gate(operator, Measure.ALLOCATION))).moved
    assert [one.value for one in samples] == ([] if value is None else [value])


def test_failures_count_by_class_and_a_tenants_mistake_is_none(
    subject: Subject, operator: PlatformAccess, claim: Claim
) -> None:
    ways(claim, 1, "m1", retries=2)
    for code in ("PREPARE_DEVICE_FAULT", "PREPARE_CONFIG_REFUSED", "QUOTA_TOO_SMALL", "ODD"):
        ClaimEvent.objects.create(claim=claim, at=NOON - timedelta(hours=1), state="x", code=code)
    gates = {
        measure: a_gate(operator, measure, slug=f"g{number}")
        for number, measure in enumerate(
            (Measure.NOT_RETRYABLE, Measure.NEEDS_CLEANUP, Measure.RETRIES)
        )
    }
    found = read_now(subject, list(gates.values()), NOON, picture=a_cluster())
    values = {measure: kept(found[gate.slug]).moved[0].value for measure, gate in gates.items()}
    from devices.dra.codes import CODES, Class, Who

    wanted = {
        measure: any(
            CODES[code].class_ is kind and CODES[code].who is not Who.TENANT
            for code in ("PREPARE_DEVICE_FAULT", "PREPARE_CONFIG_REFUSED")
        )
        for measure, kind in (
            (Measure.NOT_RETRYABLE, Class.NOT_RETRYABLE),
            (Measure.NEEDS_CLEANUP, Class.NEEDS_CLEANUP),
        )
    }
    assert values == {**{key: float(value) for key, value in wanted.items()}, Measure.RETRIES: 1.0}


def test_the_book_tells_of_conflicts_and_of_devices_that_do_not_show(
    subject: Subject, operator: PlatformAccess
) -> None:
    lines(("m1", "dra", 4), ("m2", "dra", 3), ("p1", "plugin", 4))
    OwnershipLine.objects.create(
        node="m1", node_uid="m1", type=GPU, owner="conflict", published=4, plugin=4,
        since=NOON - timedelta(hours=3), until=NOON - timedelta(hours=2),
    )  # fmt: skip
    conflicts = reading(subject, a_gate(operator, Measure.CONFLICTS))
    assert (conflicts.verdict, conflicts.sentence) == (FAIL, "1 of 2 nodes had two owners: m1.")
    missing = reading(subject, a_gate(operator, Measure.MISSING, "missing"))
    assert missing.sentence == "1 of 2 nodes show fewer devices than they should: m2."


def test_a_dip_that_has_not_lasted_is_not_known_yet(
    subject: Subject, operator: PlatformAccess
) -> None:
    lines(("m1", "dra", 4))
    lines(("m2", "dra", 0), since=NOON - timedelta(seconds=30))
    found = reading(subject, a_gate(operator, Measure.MISSING))
    assert (found.verdict, found.sentence) == (
        INCONCLUSIVE, "Not known: nothing is known for sure of m2.",
    )  # fmt: skip


def test_the_picture_tells_of_drift_fragmentation_and_tenants(
    subject: Subject, operator: PlatformAccess
) -> None:
    lines(*BOOK)
    seen = a_cluster(a_claim("mine", "m1"))
    drift = reading(subject, a_gate(operator, Measure.DRIFT, "drift"), seen=seen)
    assert drift.verdict == PASS, drift.sentence
    apart = kept(reading(subject, a_gate(operator, Measure.FRAGMENTATION, "apart"), seen=seen))
    assert sorted(one.value for one in apart.moved) == [0] * 4 + [1] * 3
    assert [one.value for one in apart.others] == [0] * 8
    tenants = a_gate(operator, Measure.VIOLATIONS, "tenants")
    assert reading(subject, tenants, seen=seen).verdict == PASS
    fewer = a_cluster()
    fewer = picture(read([a_node("m1", 0), a_node("m2", 0), a_slice("m1")]), NOON)
    lost = reading(subject, drift_gate := a_gate(operator, Measure.DRIFT, "d2"), seen=fewer)
    assert lost.verdict == FAIL, (lost.sentence, drift_gate)


def test_drift_that_was_and_went_counts_against_a_moved_node(
    subject: Subject, operator: PlatformAccess
) -> None:
    lines(*BOOK)
    gate = a_gate(operator, Measure.DRIFT)
    for node, gone in (("m1", 4), ("m2", 5.5), ("p1", 4)):
        seen = NOON - timedelta(hours=gone + 1)
        DriftLine.objects.create(
            key=node, pool=subject.pool, code="DRIFT_DEVICES_MISSING", node=node, driver=DRIVER,
            first_seen_at=seen, seen_at=seen, believed_at=seen,
            gone_at=NOON - timedelta(hours=gone),
        )  # fmt: skip
    found = reading(subject, gate)
    assert found.sentence == "1 of 2 nodes do not show what they should have: m1."


def test_one_device_for_two_tenants_is_a_violation(
    subject: Subject, operator: PlatformAccess
) -> None:
    lines(*BOOK)
    make_access("avocet", slug="tidewater", namespaces=("team",))
    make_access("basil", slug="basalt", namespaces=("other",))
    theirs = a_claim("theirs", "m1")
    theirs["metadata"] |= {"namespace": "other", "uid": "theirs"}
    seen = a_cluster(a_claim("mine", "m1"), theirs)
    found = reading(subject, a_gate(operator, Measure.VIOLATIONS), seen=seen)
    assert found.verdict == FAIL
    assert "other/theirs" in found.sentence and "team/mine" in found.sentence


@pytest.mark.parametrize("measure", [Measure.DRIFT, Measure.VIOLATIONS, Measure.FRAGMENTATION])
def test_an_old_mirror_proves_nothing(
    subject: Subject, operator: PlatformAccess, measure: Measure
) -> None:
    lines(*BOOK)
    old = a_cluster(as_of=NOON - timedelta(minutes=5))
    found = reading(subject, a_gate(operator, measure), seen=old)
    assert found.verdict == INCONCLUSIVE
    assert "not been heard" in found.sentence


def test_nobody_told_of_useful_time_is_inconclusive(
    subject: Subject, operator: PlatformAccess, claim: Claim
) -> None:
    ways(claim, 40, "m1")
    found = reading(subject, a_gate(operator, Measure.USEFUL))
    assert (found.verdict, found.sentence) == (
        INCONCLUSIVE, "Not known: no training platform has told of a Pod here.",
    )  # fmt: skip
