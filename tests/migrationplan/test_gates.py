"""Gates: what samples are a pass, a fail, or too little to say; how often that is wrong."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrationplan.gateodds import table
from migrationplan.gates import Outcome, Rule, Sample, Samples, p95_range, read
from migrationplan.intervals import difference, percentile, percentile_range, share
from migrationplan.measures import ABOUT, Kind, Measure

DOCS = Path("docs/gates.md")
BEGIN, END = "<!-- odds -->\n", "<!-- /odds -->\n"
PASS, FAIL, INCONCLUSIVE = Outcome.PASS, Outcome.FAIL, Outcome.INCONCLUSIVE


def shares(bad: int, of: int, node: str = "a1") -> tuple[Sample, ...]:
    return tuple(Sample(f"pod-{n}", node, float(n < bad)) for n in range(of))


def lasting(*seconds: float) -> tuple[Sample, ...]:
    return tuple(Sample(f"pod-{n}", "a1", value) for n, value in enumerate(seconds))


#: 60 times from 3 to 6.4 s whose 95th percentile is about 6.2.
USUAL = lasting(*(3 + 0.0576 * n for n in range(60)))


@pytest.mark.parametrize(
    ("moved", "others", "verdict"),
    [
        pytest.param((0, 60), (1, 60), PASS, id="as good as the others"),
        pytest.param((0, 19), (0, 500), INCONCLUSIVE, id="too few moved never pass"),
        pytest.param((0, 500), (0, 19), INCONCLUSIVE, id="too few others never pass"),
        pytest.param((0, 0), (0, 60), INCONCLUSIVE, id="nothing moved is no pass"),
        pytest.param((0, 60), (0, 0), INCONCLUSIVE, id="nothing to compare with is no pass"),
        pytest.param((3, 3), (0, 60), FAIL, id="three of three are no chance"),
        pytest.param((2, 3), (0, 60), INCONCLUSIVE, id="two of three may be chance"),
        pytest.param((12, 60), (1, 60), FAIL, id="clearly more often bad"),
        pytest.param((6, 60), (1, 60), INCONCLUSIVE, id="worse, perhaps within the margin"),
        pytest.param((30, 300), (12, 300), INCONCLUSIVE, id="worse for sure, perhaps too much"),
        pytest.param((18, 300), (12, 300), PASS, id="a little worse, within the margin"),
        pytest.param((60, 60), (60, 60), PASS, id="all bad everywhere is no fault of the move"),
    ],
)  # fmt: skip
def test_shares(moved: tuple[int, int], others: tuple[int, int], verdict: Outcome) -> None:
    found = read(Rule(Measure.ALLOCATION), Samples(shares(*moved), shares(*others)))
    assert found.verdict is verdict, found.sentence


@pytest.mark.parametrize(
    ("moved", "others", "verdict"),
    [
        pytest.param(USUAL, USUAL, PASS, id="the same times"),
        pytest.param(lasting(*[20.0] * 5), USUAL, FAIL, id="five of five slow"),
        pytest.param(lasting(*[9.0] * 60), USUAL, FAIL, id="all beyond the limit"),
        pytest.param(lasting(*[7.0] * 60), USUAL, PASS, id="longer, within the tolerance"),
        pytest.param(lasting(*[20.0] * 60), USUAL[:19], INCONCLUSIVE, id="slow is not known yet"),
        pytest.param(
            lasting(*[0.0] * 60), lasting(*[0.0] * 60), PASS, id="at once, both of them"
        ),
        pytest.param(
            lasting(*[1.0] * 60), lasting(*[0.0] * 60), PASS, id="a second is no news: stamps are"
        ),
    ],
)  # fmt: skip
def test_times(moved: tuple[Sample, ...], others: tuple[Sample, ...], verdict: Outcome) -> None:
    found = read(Rule(Measure.PREPARED), Samples(moved, others))
    assert found.verdict is verdict, found.sentence


def test_the_sentence_stands_alone() -> None:
    slow = lasting(*[9.0] * 9, *[4.0] * 49)
    others = lasting(*[9.0] * 1, *[6.4] * 59)
    found = read(Rule(Measure.PREPARED), Samples(slow, others))
    assert found.sentence == (
        "9 of 58 Pods took longer than 8.4 s from bound to prepared on moved nodes, 1 of 60 on the "
        "others: +13.9 (+3.7 to +25.3) points, 10 are allowed."
    )
    assert (found.moved.samples, found.moved.bad, found.moved.p50, found.moved.p95) == (58, 9, 4, 9)
    assert found.slow_from == pytest.approx(8.4)


def test_what_must_not_be_fails_at_the_first_one_and_names_it() -> None:
    rule = Rule(Measure.CONFLICTS)
    none = (Sample("a1", "a1", 0), Sample("a2", "a2", 0))
    found = read(rule, Samples((*none, Sample("a3", "a3", 2)), none))
    assert (found.verdict, found.sentence) == (FAIL, "1 of 3 nodes had two owners: a3.")
    assert read(rule, Samples(none, ())).verdict is PASS, "it needs no baseline"
    assert read(rule, Samples()).verdict is INCONCLUSIVE, "no news is not good news"


def test_a_restart_has_a_limit_and_no_baseline() -> None:
    rule = Rule(Measure.RESTART, least=2, limit=30)
    assert read(rule, Samples(lasting(12, 20))).verdict is PASS
    assert read(rule, Samples(lasting(12))).verdict is INCONCLUSIVE
    found = read(rule, Samples(lasting(40)))
    assert (found.verdict, found.sentence) == (
        FAIL, "1 of 1 restart took longer than 30 s: 40 s on a1.",
    )  # fmt: skip


sides = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(lambda two: shares(min(two), two[1]))


@given(
    measure=st.sampled_from(sorted(Measure)),
    moved=sides,
    others=sides,
    unknown=st.sampled_from(["", "the mirror is old"]),
    least=st.integers(0, 30),
)
def test_too_few_or_unknown_never_pass(
    measure: Measure,
    moved: tuple[Sample, ...],
    others: tuple[Sample, ...],
    unknown: str,
    least: int,
) -> None:
    found = read(Rule(measure, least=least, limit=1), Samples(moved, others, unknown))
    assert found.sentence
    if found.verdict is PASS:
        assert moved and not unknown
        if ABOUT[measure].kind in (Kind.SHARE, Kind.SLOW):
            assert others and min(len(moved), len(others)) >= least
    if unknown:
        assert found.verdict is INCONCLUSIVE
    assert ABOUT[measure].kind is not Kind.OUTSIDE or found.verdict is INCONCLUSIVE


@given(hits=st.integers(0, 30), more=st.integers(0, 30), others=sides.filter(bool))
def test_more_bad_samples_never_help(hits: int, more: int, others: tuple[Sample, ...]) -> None:
    order = [PASS, INCONCLUSIVE, FAIL]
    rule = Rule(Measure.RETRIES)
    before = read(rule, Samples(shares(hits, 60), others)).verdict
    after = read(rule, Samples(shares(hits + more, 60), others)).verdict
    assert order.index(after) >= order.index(before)


def test_ranges_are_those_of_the_papers() -> None:
    assert share(0, 20) == pytest.approx((0, 0.1611), abs=1e-4)
    assert share(81, 263) == pytest.approx((0.2553, 0.3662), abs=1e-4)
    assert difference(56, 70, 48, 80) == pytest.approx((0.2, 0.0524, 0.3339), abs=1e-4)
    assert difference(0, 10, 0, 20) == pytest.approx((0, -0.1611, 0.2775), abs=1e-4)
    with pytest.raises(ValueError, match="2 of 1"):
        share(2, 1)


def test_percentiles_and_how_sure_they_are() -> None:
    assert percentile([4, 1, 3, 2], 0.5) == 2.5
    assert percentile([7], 0.95) == 7
    assert percentile_range(list(range(71)), 0.95).high is None, "71 samples set no upper bound"
    assert percentile_range(list(range(72)), 0.95).high == 71
    assert p95_range(lasting(1)).low is None
    ends = percentile_range(list(range(2000)), 0.95)
    assert (ends.low, ends.high) == (1879, 1919)


def test_how_often_gates_err_is_what_the_docs_say(golden: Callable[[str, str], None]) -> None:
    before, _, rest = DOCS.read_text().partition(BEGIN)
    after = rest.partition(END)[2]
    lines = "".join(f"{line}\n" for line in table())
    golden(str(DOCS), f"{before}{BEGIN}{lines}{END}{after}")
