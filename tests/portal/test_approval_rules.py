"""The rules of approvals: who may decide, and what no sequence of decisions brings about."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.approvals.rules import (
    Case,
    Decided,
    DecidedBy,
    Decider,
    Line,
    NoSeat,
    Refusal,
    Rights,
    Seat,
    State,
    Verdict,
    digest,
    holds,
    outcome,
    seat,
)
from tests.factories import NOON

PEOPLE = [uuid5(UUID(int=0), name) for name in ("ann", "bo", "cy", "di", "ed")]
ANN, BO, CY, DI, ED = PEOPLE
APPROVER = Rights(platform=frozenset({"approver"}))
NOBODY = Rights()
INSIDE = {"tidewater": "viewer"}
OF_TIDEWATER = Rights(platform=frozenset({"approver"}), tenants=INSIDE)
BY = DecidedBy(platform=frozenset({"approver"}), tenant="tidewater", roles=frozenset({"owner"}))


def a_case(**changed: object) -> Case:
    asked: dict[str, object] = {
        "author": ANN,
        "by": BY,
        "needed": 2,
        "state": State.OPEN,
        "expires_at": NOON + timedelta(days=1),
    }
    return Case(**{**asked, **changed})  # type: ignore[arg-type]


BO_SAID_YES = (Decided(BO, BO, Verdict.APPROVE),)


@pytest.mark.parametrize(
    ("case", "decider", "wanted"),
    [
        pytest.param(
            a_case(coauthors=frozenset({BO})),
            Decider(BO, APPROVER),
            Refusal.OWN_REQUEST,
            id="nor one who had a hand in it",
        ),
        pytest.param(
            a_case(coauthors=frozenset({CY})),
            Decider(BO, NOBODY, {CY: APPROVER}),
            Refusal.NO_RIGHT,
            id="nor by a right that one of them lent",
        ),
        pytest.param(a_case(), Decider(BO, APPROVER), BO, id="an approver may"),
        pytest.param(
            a_case(), Decider(BO, Rights(tenants={"tidewater": "owner"})), BO, id="an owner may"
        ),
        pytest.param(
            a_case(),
            Decider(BO, Rights(tenants={"basalt": "owner"})),
            Refusal.NO_RIGHT,
            id="an owner of another tenant may not",
        ),
        pytest.param(
            a_case(),
            Decider(BO, Rights(tenants={"tidewater": "member"})),
            Refusal.NO_RIGHT,
            id="a member may not",
        ),
        pytest.param(
            a_case(), Decider(ANN, APPROVER), Refusal.OWN_REQUEST, id="the author never, whatever"
        ),
        pytest.param(
            a_case(),
            Decider(BO, NOBODY, {ANN: APPROVER}),
            Refusal.NO_RIGHT,
            id="nobody with the author's own right",
        ),
        pytest.param(a_case(), Decider(BO, NOBODY, {CY: APPROVER}), CY, id="with a lent right"),
        pytest.param(
            a_case(), Decider(BO, APPROVER, {CY: APPROVER}), BO, id="one's own right comes first"
        ),
        pytest.param(
            a_case(decided=BO_SAID_YES),
            Decider(BO, APPROVER, {CY: APPROVER}),
            Refusal.DECIDED_BEFORE,
            id="nobody twice, also not with a lent right",
        ),
        pytest.param(
            a_case(decided=BO_SAID_YES),
            Decider(CY, NOBODY, {BO: APPROVER}),
            Refusal.RIGHT_USED,
            id="no right twice, also not in another hand",
        ),
        pytest.param(
            a_case(decided=(Decided(CY, BO, Verdict.APPROVE),)),
            Decider(BO, APPROVER),
            Refusal.RIGHT_USED,
            id="who lent a right that was used has none left",
        ),
        *[
            pytest.param(a_case(tenant="tidewater"), decider, wanted, id=words)
            for words, decider, wanted in (
                ("an approver about another tenant", Decider(BO, APPROVER), BO),
                ("none about their own", Decider(BO, OF_TIDEWATER), Refusal.OWN_TENANT),
                (
                    "nor with a right that was lent",
                    Decider(BO, Rights(tenants=INSIDE), {CY: APPROVER}),
                    Refusal.OWN_TENANT,
                ),
                (
                    "nor anybody with theirs",
                    Decider(BO, NOBODY, {CY: OF_TIDEWATER}),
                    Refusal.NO_RIGHT,
                ),
                (
                    "an admin, for there may be nobody else",
                    Decider(BO, Rights(frozenset({"approver", "admin"}), INSIDE)),
                    BO,
                ),
                (
                    "an owner where the tenant itself decides",
                    Decider(BO, Rights(tenants={"tidewater": "owner"})),
                    BO,
                ),
            )
        ],
        pytest.param(
            a_case(state=State.VOID), Decider(BO, APPROVER), Refusal.NOT_OPEN, id="not once void"
        ),
        pytest.param(
            a_case(expires_at=NOON), Decider(BO, APPROVER), Refusal.NOT_OPEN, id="not once late"
        ),
    ],
)
def test_who_may_decide(case: Case, decider: Decider, wanted: UUID | Refusal) -> None:
    found = seat(case, decider, NOON)
    if isinstance(wanted, Refusal):
        assert isinstance(found, NoSeat)
        assert found.code == wanted
        assert found.words
    else:
        assert found == Seat(wanted)


rights = st.builds(
    Rights,
    platform=st.frozensets(st.sampled_from(["approver", "operator"])),
    tenants=st.dictionaries(st.just("tidewater"), st.sampled_from(["viewer", "owner"])),
)
attempts = st.lists(
    st.tuples(
        st.sampled_from(PEOPLE),
        st.sets(st.sampled_from(PEOPLE)),
        st.sampled_from(list(Verdict)),
    ),
    max_size=12,
)


@given(
    everybody=st.fixed_dictionaries({person: rights for person in PEOPLE}),
    attempts=attempts,
    needed=st.integers(1, 3),
)
def test_whatever_is_tried_in_whatever_order(
    everybody: dict[UUID, Rights],
    attempts: list[tuple[UUID, set[UUID], Verdict]],
    needed: int,
) -> None:
    """No history has the author in it, a person or a right twice, or a yes without the numbers."""
    case = a_case(needed=needed)
    for person, lenders, verdict in attempts:
        decider = Decider(person, everybody[person], {one: everybody[one] for one in lenders})
        taken = seat(case, decider, NOON)
        if isinstance(taken, NoSeat):
            continue
        assert case.state == State.OPEN
        decided = (*case.decided, Decided(person, taken.holder, verdict))
        case = a_case(needed=needed, decided=decided)
        case = a_case(needed=needed, decided=decided, state=outcome(case))
    people = [one.person for one in case.decided]
    holders = [one.holder for one in case.decided]
    assert len(set(people)) == len(people)
    assert len(set(holders)) == len(holders)
    assert ANN not in people + holders
    assert all(holds(everybody[holder], BY) for holder in holders)
    yes = [one for one in case.decided if one.verdict == Verdict.APPROVE]
    assert (case.state == State.APPROVED) == (len(yes) == needed and len(yes) == len(people))
    assert (case.state == State.DENIED) == (len(yes) < len(people))


@given(st.lists(st.builds(Line, st.text(), st.none() | st.text(), st.none() | st.text())))
def test_the_digest_is_over_every_line(lines: list[Line]) -> None:
    own = digest("limit", "tenant tidewater", lines)
    assert own == digest("limit", "tenant tidewater", list(lines))
    assert own != digest("limit", "tenant tidewater", [*lines, Line("gpu", "8", "16")])
    assert own != digest("limit", "tenant basalt", lines)
    assert own != digest("grant", "tenant tidewater", lines)


def test_words_name_everybody_who_may() -> None:
    assert BY.words == "approver or owner of tidewater"
