"""Sums of lines against limits: tables for the words, properties for the arithmetic."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenants.limits import (
    ANY,
    CLAIMS,
    CLASS_NOT_ALLOWED,
    LIMIT_REACHED,
    ZERO,
    Bound,
    Kind,
    Limits,
    Line,
    Measure,
    What,
    devices_of,
    hard,
    may_lend,
    may_take,
    strip,
    strips,
    too_much_shared,
)

GPU, NIC = devices_of("gpu"), devices_of("nic")
MEMORY = What(Measure.CAPACITY, "gpu", "example.com/memory")


def a_line(
    amount: int, kind: Kind = Kind.REQUEST, what: What = GPU, namespace: str = "train"
) -> Line:
    return Line(kind, what, Decimal(amount), namespace, "c4k7")


def up_to(amount: int, **shares: int) -> Bound:
    return Bound(Decimal(amount), {name: Decimal(share) for name, share in shares.items()})


def test_a_strip_has_four_parts_and_outside_use_is_use() -> None:
    lines = [a_line(4), a_line(2, Kind.HOLD), a_line(1, Kind.OUTSIDE), a_line(9, what=NIC)]
    found = strip(GPU, Decimal(8), lines)
    assert (found.used, found.reserved, found.granted, found.free) == (5, 2, 0, 1)


@pytest.mark.parametrize(
    ("limits", "lines", "asked", "refused"),
    [
        pytest.param({GPU: up_to(8)}, [a_line(5)], {GPU: 3}, [], id="the last ones may be taken"),
        pytest.param(
            {GPU: up_to(8)}, [a_line(5)], {GPU: 4}, [(LIMIT_REACHED, GPU, 3, "")], id="one too many"
        ),
        pytest.param(
            {GPU: up_to(8)},
            [a_line(5), a_line(2, Kind.OUTSIDE)],
            {GPU: 2},
            [(LIMIT_REACHED, GPU, 1, "")],
            id="what was made outside of Berth counts",
        ),
        pytest.param(
            {GPU: up_to(2)},
            [a_line(5)],
            {GPU: 1},
            [(LIMIT_REACHED, GPU, -3, "")],
            id="an overdrawn limit says by how much",
        ),
        pytest.param(
            {GPU: up_to(2), NIC: up_to(4)},
            [a_line(5)],
            {NIC: 4, GPU: 0},
            [],
            id="an overdrawn limit stops nothing that it does not count",
        ),
        pytest.param(
            {NIC: up_to(4)},
            [],
            {GPU: 1},
            [(CLASS_NOT_ALLOWED, GPU, None, "")],
            id="a class without a row is not allowed",
        ),
        pytest.param({GPU: Bound(None)}, [a_line(99)], {GPU: 99}, [], id="allowed without a limit"),
        pytest.param({ANY: Bound(None)}, [a_line(99)], {GPU: 99}, [], id="any class"),
        pytest.param(
            {ANY: Bound(None), GPU: up_to(1)},
            [],
            {GPU: 2, NIC: 5},
            [(LIMIT_REACHED, GPU, 1, "")],
            id="any class, and one of them limited",
        ),
        pytest.param(
            {GPU: up_to(8, train=6, eval=2)},
            [a_line(5)],
            {GPU: 2},
            [(LIMIT_REACHED, GPU, 1, "train")],
            id="the namespace's share refuses before the tenant's limit does",
        ),
        pytest.param(
            {GPU: up_to(8, eval=2)},
            [],
            {GPU: 1},
            [(LIMIT_REACHED, GPU, 0, "train")],
            id="a namespace without a share has nothing of what is shared out",
        ),
        pytest.param(
            {GPU: up_to(8), CLAIMS: up_to(1), MEMORY: up_to(10)},
            [a_line(1, what=CLAIMS)],
            {GPU: 1, CLAIMS: 1, MEMORY: 11},
            [(LIMIT_REACHED, MEMORY, 10, ""), (LIMIT_REACHED, CLAIMS, 0, "")],
            id="every limit that would be broken is named",
        ),
        pytest.param(
            {GPU: up_to(8)}, [], {GPU: 1, CLAIMS: 3, MEMORY: 9}, [], id="no row, no limit"
        ),
    ],
)
def test_whether_it_may_be_taken(
    limits: Limits,
    lines: list[Line],
    asked: dict[What, int],
    refused: list[tuple[str, What, int | None, str]],
) -> None:
    wanted = {what: Decimal(amount) for what, amount in asked.items()}
    found = may_take(wanted, limits=limits, lines=lines, namespace="train")
    assert [(one.code, one.what, one.left, one.namespace) for one in found] == refused
    for one in found:
        assert one.remedy.endswith(".")
        assert one.over is None or one.over > 0


def test_what_is_lent_comes_from_what_no_share_has() -> None:
    limits = {GPU: up_to(8, train=6)}
    assert may_lend(GPU, Decimal(2), limits=limits, lines=[]) is None
    refusal = may_lend(GPU, Decimal(2), limits=limits, lines=[a_line(1, Kind.GRANT)])
    assert refusal is not None and (refusal.left, refusal.code) == (1, LIMIT_REACHED)
    assert may_lend(NIC, Decimal(1), limits=limits, lines=[]) is not None


@pytest.mark.parametrize(
    ("bound", "lines", "train", "other"),
    [
        pytest.param(Bound(None), [a_line(3)], None, None, id="no limit, no quota"),
        pytest.param(up_to(8), [], 8, 8, id="nothing taken: each may have all of it"),
        pytest.param(up_to(8), [a_line(5)], 8, 3, id="what one has the other has not"),
        pytest.param(
            up_to(8),
            [a_line(4), a_line(3, Kind.OUTSIDE, namespace="eval")],
            5,
            4,
            id="outside use counts where it is",
        ),
        pytest.param(
            up_to(8), [a_line(3, Kind.GRANT, namespace="theirs")], 5, 5, id="lent is gone from both"
        ),
        pytest.param(up_to(8, train=6, eval=2), [a_line(5)], 6, 2, id="shares as they were given"),
        pytest.param(up_to(8, train=2), [a_line(5)], 5, 0, id="a lowered share keeps what it held"),
        pytest.param(up_to(2), [a_line(5)], 5, 0, id="a lowered limit keeps what was accepted"),
    ],
)
def test_what_a_quota_in_the_cluster_allows(
    bound: Bound, lines: list[Line], train: int | None, other: int | None
) -> None:
    assert hard(bound, GPU, "train", lines) == train
    assert hard(bound, GPU, "eval", lines) == other


def test_use_that_nothing_allows_is_shown_as_overdrawn() -> None:
    [found] = strips({}, [a_line(2, Kind.OUTSIDE)])
    assert (found.limit, found.free, found.overdrawn) == (0, 0, 2)


def test_shares_add_up() -> None:
    assert not too_much_shared(Decimal(8), {"train": Decimal(6)}, ZERO)
    assert "6" in too_much_shared(Decimal(8), {"train": Decimal(6)}, Decimal(3))
    assert too_much_shared(None, {"train": Decimal(6)}, ZERO)


# --- properties -----------------------------------------------------------------------------------

amounts = st.integers(0, 40).map(Decimal)
whats = st.sampled_from([GPU, NIC, MEMORY, CLAIMS])
spaces = st.sampled_from(["train", "eval"])
budgets = st.lists(st.builds(Line, st.sampled_from(Kind), whats, amounts, spaces, st.just("s")))
bounds = st.builds(Bound, st.none() | amounts, st.dictionaries(spaces, amounts) | st.just({}))
books = st.dictionaries(st.one_of(whats, st.just(ANY)), bounds)


@given(what=whats, limit=amounts, lines=budgets)
def test_the_parts_add_up(what: What, limit: Decimal, lines: list[Line]) -> None:
    found = strip(what, limit, lines)
    assert found.free is not None and found.free >= 0 and found.overdrawn >= 0
    assert found.free == 0 or found.overdrawn == 0
    assert found.taken + found.free == limit + found.overdrawn
    assert found.taken == sum((line.amount for line in lines if line.what == what), ZERO)


@given(limits=books, lines=budgets, asked=st.dictionaries(whats, amounts), namespace=spaces)
def test_what_may_be_taken_never_overdraws(
    limits: Limits, lines: list[Line], asked: dict[What, Decimal], namespace: str
) -> None:
    before = {one.what: one.overdrawn for one in strips(limits, lines)}
    refusals = may_take(asked, limits=limits, lines=lines, namespace=namespace)
    taken = [Line(Kind.HOLD, what, amount, namespace, "new") for what, amount in asked.items()]
    after = {one.what: one.overdrawn for one in strips(limits, [*lines, *taken])}
    broken = {what for what in asked if after.get(what, ZERO) > before.get(what, ZERO)}
    assert broken <= {refusal.what for refusal in refusals}
    for refusal in refusals:
        assert refusal.over is None or refusal.over > 0


@given(limits=books, lines=budgets, namespace=spaces)
def test_what_was_taken_one_by_one_equals_what_is_taken_at_once(
    limits: Limits, lines: list[Line], namespace: str
) -> None:
    """Taking 1 until it is refused takes exactly what was left."""
    bound = limits.get(GPU)
    book, taken = list(lines), 0
    while taken < 50 and not may_take(
        {GPU: Decimal(1)}, limits=limits, lines=book, namespace=namespace
    ):
        book.append(Line(Kind.HOLD, GPU, Decimal(1), namespace, "one"))
        taken += 1
    if bound is None or bound.amount is None or taken == 50:
        return
    assert may_take({GPU: Decimal(1)}, limits=limits, lines=book, namespace=namespace)
    if taken:
        at_once = {GPU: Decimal(taken)}
        assert not may_take(at_once, limits=limits, lines=lines, namespace=namespace)


@given(bound=bounds, lines=budgets)
def test_a_quota_never_undercuts_what_was_accepted(bound: Bound, lines: list[Line]) -> None:
    for namespace in ("train", "eval"):
        allowed = hard(bound, GPU, namespace, lines)
        accepted = sum(
            (
                line.amount
                for line in lines
                if line.what == GPU
                and line.namespace == namespace
                and line.kind in {Kind.REQUEST, Kind.HOLD}
            ),
            ZERO,
        )
        assert allowed is None or allowed >= accepted
