"""Which places are proposed to be closed, which are not, and how much of a pool may be."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from itertools import count
from math import isclose

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.dra.evictions import RuleReach
from devices.dra.isolation import (
    Place,
    Preparation,
    Rule,
    chance,
    recovered,
    room,
    suspected,
    suspects,
)
from devices.dra.isolationobjects import (
    Target,
    computed,
    node_taints,
    read_dry_run,
    taint_rule,
)
from devices.dra.names import ISOLATED_TAINT
from devices.dra.taints import Effect, read_rule
from tests.factories import NOON

DRIVER = "gpu.example"
MINUTE = timedelta(minutes=1)
_numbers = count()


def key(node: str, device: str) -> tuple[str, str, str]:
    return (DRIVER, node, device)


def ready(node: str, device: str = "gpu-0", ago: timedelta = MINUTE) -> Preparation:
    return Preparation(
        f"p{next(_numbers)}", node, DRIVER, (key(node, device),), NOON, ready_at=NOON - ago
    )


def failed(
    node: str,
    device: str = "gpu-0",
    code: str = "PREPARE_FAILED",
    since: timedelta = 5 * MINUTE,
    seen: timedelta = timedelta(),
) -> Preparation:
    return Preparation(
        f"p{next(_numbers)}", node, DRIVER, (key(node, device),), NOON - seen,
        failed_at=NOON - seen - since, code=code,
    )  # fmt: skip


def many(number: int, of: Preparation) -> list[Preparation]:
    return [replace(of, pod=f"{of.pod}-{index}") for index in range(number)]


ELSEWHERE = [*many(10, ready("n2")), *many(10, ready("n3"))]


def found(preparations: Iterable[Preparation]) -> list[str]:
    return [str(one.place) for one in suspects(preparations, NOON)]


@pytest.mark.parametrize(
    ("preparations", "places"),
    [
        pytest.param([], [], id="nothing was tried"),
        pytest.param([*many(4, failed("n1")), *ELSEWHERE], ["n1"], id="one node fails alone"),
        pytest.param([*many(2, failed("n1")), *ELSEWHERE], [], id="two are too few"),
        pytest.param(many(9, failed("n1")), [], id="nobody to compare with"),
        pytest.param(
            [*many(4, failed("n1")), *many(4, failed("n2")), *many(4, failed("n3"))],
            [],
            id="a driver that fails everywhere is not mended by closing a node",
        ),
        pytest.param(
            [*many(4, failed("n1")), *many(9, ready("n1")), *ELSEWHERE],
            [],
            id="most of what was tried there works",
        ),
        pytest.param(
            [*many(4, failed("n1", code="PREPARE_CONFIG_REFUSED")), *ELSEWHERE],
            [],
            id="settings that a driver refuses accuse no node",
        ),
        pytest.param(
            [*many(4, failed("n1", since=timedelta(seconds=20))), *ELSEWHERE],
            [],
            id="what fails for seconds only is a driver's restart",
        ),
        pytest.param(
            [*many(4, failed("n1", seen=timedelta(hours=1))), *ELSEWHERE],
            [],
            id="what failed an hour ago is over",
        ),
        pytest.param(
            [*many(4, failed("n1", "gpu-3")), *many(9, ready("n1", "gpu-1")), *ELSEWHERE],
            ["gpu-3 on n1"],
            id="one device of a node that works",
        ),
        pytest.param(
            [*many(4, failed("n1", "gpu-3")), *many(2, ready("n1", "gpu-1")), *ELSEWHERE],
            ["n1"],
            id="too little beside it to accuse one device",
        ),
        pytest.param(
            [*many(4, failed("n1")), *many(4, failed("n9")), *ELSEWHERE, *many(9, ready("n4"))],
            ["n1", "n9"],
            id="two nodes at the same time",
        ),
    ],
)
def test_what_is_proposed(preparations: list[Preparation], places: list[str]) -> None:
    assert found(preparations) == places


def test_a_suspect_brings_its_figures() -> None:
    (one,) = suspects([*many(3, failed("n1")), *many(9, ready("n2"))], NOON)
    assert one.sentence == "3 of 3 Pods could not be prepared here, 0 of 9 elsewhere."
    # C(12, 3) = 220 ways, and two places (the node, its device) were tested.
    assert isclose(one.chance, 2 / 220)
    assert dict(one.codes) == {"PREPARE_FAILED": 3} and len(one.pods) == 3


def test_the_chance_of_the_worked_example() -> None:
    assert isclose(chance(3, 3, 0, 10), 1 / 286)


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 12), st.integers(0, 12))
def test_chances_are_chances_and_more_failures_are_rarer(
    failed_here: int, fine_here: int, failed_there: int, fine_there: int
) -> None:
    tried, others = failed_here + fine_here, failed_there + fine_there
    now = chance(failed_here, tried, failed_there, others)
    assert 0 < now <= 1 + 1e-9
    assert isclose(chance(0, tried, failed_there, others), 1)
    if failed_here < tried and failed_there:
        assert chance(failed_here + 1, tried, failed_there - 1, others) <= now


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("xyz"), st.booleans())))
def test_nothing_is_proposed_below_the_least_of_failures(rows: list[tuple[str, str, bool]]) -> None:
    preparations = [failed(n, d) if bad else ready(n, d) for n, d, bad in rows]
    for one in suspects(preparations, NOON):
        assert one.failed >= Rule().least_failed and one.others_tried >= Rule().least_others
        assert one.failed * 2 >= one.tried and one.chance <= Rule().most_chance


NODE = Place(DRIVER, "n1")


@pytest.mark.parametrize(
    ("preparations", "well", "still"),
    [
        pytest.param([], False, False, id="nothing was tried since"),
        pytest.param([ready("n1", ago=MINUTE)], True, False, id="one became ready"),
        pytest.param([ready("n1", ago=9 * MINUTE)], False, False, id="one was ready before"),
        pytest.param([ready("n2")], False, False, id="one elsewhere"),
        pytest.param([ready("n1"), failed("n1")], False, False, id="another fails meanwhile"),
        pytest.param([failed("n1")], False, True, id="it only fails"),
    ],
)
def test_when_a_place_has_recovered(
    preparations: list[Preparation], well: bool, still: bool
) -> None:
    assert recovered(NODE, preparations, NOON - 5 * MINUTE, NOON) is well
    if not (preparations and well):
        assert suspected(NODE, preparations, NOON) is (still or len(preparations) == 2)


POOL = [key(node, f"gpu-{number}") for node in ("n1", "n2", "n3", "n4") for number in range(4)]


@pytest.mark.parametrize(
    ("closed", "place", "allowed"),
    [
        pytest.param([], POOL[:4], True, id="exactly the share"),
        pytest.param(POOL[4:5], POOL[:4], False, id="with what is closed already it is more"),
        pytest.param(POOL[:2], POOL[:4], True, id="what is closed there already counts once"),
        pytest.param([key("elsewhere", "gpu-0")], POOL[:4], True, id="other pools do not count"),
    ],
)
def test_how_much_of_a_pool_may_be_closed(
    closed: list[tuple[str, str, str]], place: list[tuple[str, str, str]], allowed: bool
) -> None:
    assert room("h100", POOL, closed, place, 0.25).allowed is allowed


def test_of_a_pool_that_publishes_nothing_nothing_may_be_closed() -> None:
    assert not room("h100", [], [], POOL[:1], 1.0).allowed


@given(st.sets(st.sampled_from(POOL)), st.sets(st.sampled_from(POOL)), st.floats(0, 1))
def test_never_more_than_the_share_is_closed(
    closed: set[tuple[str, str, str]], place: set[tuple[str, str, str]], share: float
) -> None:
    if room("h100", POOL, closed, place, share).allowed:
        assert len(closed | place) <= share * len(POOL)


# --- objects ---

TARGET = Target("abc123", DRIVER, "n1", "gpu-3")


def said(message: str, generation: int = 2, observed: int = 2) -> dict[str, object]:
    condition = {
        "type": "EvictionInProgress",
        "status": "False",
        "message": message,
        "observedGeneration": observed,
    }
    return {"metadata": {"generation": generation}, "status": {"conditions": [condition]}}


@pytest.mark.parametrize(
    ("rule", "pods", "sentence"),
    [
        pytest.param(
            said("1 published device selected. 1 allocated device selected. 1 pod would be "
                 "evicted in 1 namespace if the effect was NoExecute."),
            1, "1 Pod holds these devices and stays.", id="one",
        ),
        pytest.param(
            said("8 published devices selected. 5 allocated devices selected. 3 pods would be "
                 "evicted in 2 different namespaces if the effect was NoExecute."),
            3, "3 Pods hold these devices and stay.", id="several",
        ),
        pytest.param(
            said("0 published devices selected. 0 allocated devices selected. 0 pods would be "
                 "evicted in 0 different namespaces if"),
            0, "No Pod holds these devices.", id="none",
        ),
        pytest.param(
            said("Something new"), None,
            "The cluster says it in words that Berth cannot count; they stand below.",
            id="words of a release to come are shown, not counted",
        ),
    ],
)  # fmt: skip
def test_what_a_dry_run_says(rule: dict[str, object], pods: int | None, sentence: str) -> None:
    read = read_dry_run(rule)
    assert read is not None and (read.pods, read.sentence) == (pods, sentence)


def test_what_was_said_of_the_rule_before_is_not_said_of_this_one() -> None:
    assert read_dry_run(said("3 pods would be evicted", generation=3)) is None
    assert read_dry_run({"metadata": {"generation": 1}}) is None


def test_a_rule_selects_one_pool_or_one_device_and_never_all() -> None:
    for target in (TARGET, Target("abc123", DRIVER, "n1")):
        rule, unknown = read_rule(taint_rule(target, Effect.NONE, 1))
        assert (rule.driver, rule.pool, rule.device) == (DRIVER, "n1", target.device)
        assert rule.selects and not rule.taint.closes and not unknown
    assert taint_rule(TARGET, Effect.NONE, 1)["spec"] != taint_rule(TARGET, Effect.NONE, 2)["spec"]


def test_what_berth_counted_itself_is_marked() -> None:
    reach = RuleReach((key("n1", "gpu-3"),), (), ("a/p", "b/q"))
    assert computed(reach).computed and computed(reach).namespaces == 2


OTHERS = [{"key": "other", "effect": "NoSchedule"}]
MINE = {"key": ISOLATED_TAINT, "value": "abc123", "effect": "NoSchedule"}
THEIRS = {**MINE, "value": "def456"}


@pytest.mark.parametrize(
    ("before", "closed", "after"),
    [
        pytest.param(OTHERS, True, [*OTHERS, MINE], id="closed beside other taints"),
        pytest.param([*OTHERS, MINE], True, [*OTHERS, MINE], id="closed twice is closed"),
        pytest.param([THEIRS], True, [THEIRS], id="another isolation keeps it closed"),
        pytest.param([*OTHERS, MINE], False, OTHERS, id="opened"),
        pytest.param([THEIRS], False, [THEIRS], id="opening takes one's own taint only"),
    ],
)
def test_taints_of_a_node(
    before: list[dict[str, str]], closed: bool, after: list[dict[str, str]]
) -> None:
    assert node_taints(before, "abc123", closed=closed) == after
