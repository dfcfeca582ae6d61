"""The steps by which a tenant is closed: a table of situations, and what holds in all of them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.dra.closing import (
    MOVES,
    OVER,
    UNDER_WAY,
    Act,
    Ask,
    Decision,
    EndBonds,
    Holder,
    Phase,
    Place,
    Release,
    Seen,
    TakeOff,
    Thing,
    decide,
    held,
    moves,
    revocable,
)

TRAIN = Ask("bcdfghjk", "train", "tide")
CLAIM = Thing("ResourceClaim", "tide", "train-bcdfghjk", "bcdfghjk")
POD = Holder("tide", "worker-0", frozenset({"train-bcdfghjk"}))
SHUT = Place("tide", shut=True)


@pytest.mark.parametrize(
    ("phase", "seen", "move", "acts", "codes"),
    [
        pytest.param(
            Phase.STOPPING,
            Seen(places=(SHUT, Place("eval"))),
            None,
            (),
            ["NAMESPACE_OPEN"],
            id="one namespace still lets new work begin",
        ),
        pytest.param(
            Phase.STOPPING,
            Seen(places=(Place("tide", code="REFUSED_BY_CLUSTER", why="no"),)),
            None,
            (),
            ["REFUSED_BY_CLUSTER"],
            id="the cluster refuses to close a namespace",
        ),
        pytest.param(
            Phase.STOPPING, Seen(places=(SHUT,)), Phase.WAITING, (), [], id="nothing new can begin"
        ),
        pytest.param(
            Phase.STOPPING, Seen(), Phase.WAITING, (), [], id="a tenant without namespaces"
        ),
        pytest.param(
            Phase.WAITING, Seen(pods=(POD,)), None, (), ["POD_RUNNING"], id="a Pod still runs"
        ),
        pytest.param(
            Phase.WAITING,
            Seen(pods=(replace(POD, leaving=True),)),
            None,
            (),
            ["POD_LEAVING"],
            id="a Pod is being deleted and is there yet",
        ),
        pytest.param(
            Phase.WAITING,
            Seen(things=(replace(CLAIM, reserved=("gone-0",)),), asks=(TRAIN,)),
            None,
            (),
            ["CLAIM_RESERVED"],
            id="the cluster has a claim reserved for a Pod that no list shows",
        ),
        pytest.param(
            Phase.WAITING,
            Seen(things=(CLAIM,), asks=(TRAIN,)),
            Phase.RECLAIMING,
            (),
            [],
            id="the last Pod has ended",
        ),
        pytest.param(
            Phase.RECLAIMING,
            Seen(things=(CLAIM,), asks=(TRAIN,)),
            None,
            (EndBonds(), Release("bcdfghjk")),
            [],
            id="grants end and claims are let go of",
        ),
        pytest.param(
            Phase.RECLAIMING,
            Seen(asks=(TRAIN,), bonds_ended=True),
            None,
            (Release("bcdfghjk", there=False),),
            [],
            id="what somebody else took away is only recorded",
        ),
        pytest.param(
            Phase.RECLAIMING,
            Seen(asks=(replace(TRAIN, sent=False),), bonds_ended=True),
            None,
            (Release("bcdfghjk"),),
            [],
            id="what was never sent is let go of",
        ),
        pytest.param(
            Phase.RECLAIMING,
            Seen(pods=(POD,), things=(CLAIM,), asks=(TRAIN,), bonds_ended=True),
            None,
            (),
            ["POD_RUNNING"],
            id="a Pod has come back: its claim stays",
        ),
        pytest.param(
            Phase.RECLAIMING,
            Seen(
                pods=(replace(POD, uses=frozenset({"bcdfghjk"})),), asks=(TRAIN,), bonds_ended=True
            ),
            None,
            (),
            ["POD_RUNNING"],
            id="a Pod carries the label of an ask without an object: the ask stays",
        ),
        pytest.param(
            Phase.RECLAIMING,
            Seen(
                things=(
                    replace(CLAIM, deleting=True, finalizers=("example.com/keep", "mine.io/too")),
                ),
                asks=(replace(TRAIN, let_go=True),),
                bonds_ended=True,
            ),
            None,
            (),
            ["FINALIZER"],
            id="a stranger's finalizer keeps a deleted claim",
        ),
        pytest.param(
            Phase.RECLAIMING,
            Seen(things=(CLAIM,), asks=(replace(TRAIN, let_go=True),), bonds_ended=True),
            None,
            (),
            ["RELEASING"],
            id="a claim is on its way out",
        ),
        pytest.param(
            Phase.RECLAIMING,
            Seen(asks=(replace(TRAIN, let_go=True),), bonds_ended=True),
            None,
            (),
            ["RELEASING"],
            id="it is gone and not yet recorded so",
        ),
        pytest.param(
            Phase.RECLAIMING,
            Seen(bonds_ended=True),
            Phase.LETTING_GO,
            (),
            [],
            id="nothing is left to reclaim",
        ),
        pytest.param(
            Phase.RECLAIMING, Seen(), None, (EndBonds(),), [], id="no claims, but grants to end"
        ),
        pytest.param(
            Phase.LETTING_GO,
            Seen(places=(replace(SHUT, off=True), Place("eval"))),
            None,
            (TakeOff("eval"),),
            [],
            id="one namespace still carries Berth's names",
        ),
        pytest.param(
            Phase.LETTING_GO,
            Seen(places=(Place("eval", code="FINALIZER", why="kept"),)),
            None,
            (TakeOff("eval"),),
            ["FINALIZER"],
            id="a quota that is kept is named and tried again",
        ),
        pytest.param(
            Phase.LETTING_GO, Seen(), Phase.CLOSED, (), [], id="no namespace carries anything"
        ),
        pytest.param(Phase.ASKED, Seen(), None, (), [], id="an owner's wish does nothing"),
        pytest.param(Phase.CLOSED, Seen(asks=(TRAIN,)), None, (), [], id="closed is the end"),
        pytest.param(Phase.CANCELLED, Seen(asks=(TRAIN,)), None, (), [], id="so is cancelled"),
    ],
)
def test_the_next_step(
    phase: Phase, seen: Seen, move: Phase | None, acts: tuple[Act, ...], codes: list[str]
) -> None:
    decision = decide(phase, seen)
    assert (decision.move, decision.acts) == (move, acts)
    assert [blocker.code for blocker in decision.blockers] == codes


def test_a_finalizer_is_named_with_the_object_that_it_keeps() -> None:
    kept = replace(CLAIM, deleting=True, finalizers=("example.com/keep",))
    seen = Seen(things=(kept,), asks=(replace(TRAIN, let_go=True),), bonds_ended=True)
    (blocker,) = decide(Phase.RECLAIMING, seen).blockers
    assert blocker.subject == "ResourceClaim tide/train-bcdfghjk"
    assert "example.com/keep" in blocker.why


def test_there_is_a_way_back_only_while_nothing_is_taken_away() -> None:
    assert {phase for phase in Phase if revocable(phase)} == {
        Phase.ASKED,
        Phase.STOPPING,
        Phase.WAITING,
    }


def test_no_way_leads_back() -> None:
    order = list(Phase)
    for before, after in moves():
        assert order.index(before) < order.index(after)
    assert all(not MOVES[phase] for phase in OVER)


# --- what holds whatever is seen ------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c"])
PLACES = st.sampled_from(["tide", "eval"])
THINGS = st.builds(
    Thing,
    kind=st.sampled_from(["ResourceClaim", "ResourceClaimTemplate"]),
    namespace=PLACES,
    name=NAMES,
    ask=NAMES,
    reserved=st.lists(st.sampled_from(["p", "q"]), max_size=1).map(tuple),
    deleting=st.booleans(),
    finalizers=st.lists(st.just("example.com/keep"), max_size=1).map(tuple),
)
SEEN = st.builds(
    Seen,
    places=st.lists(
        st.builds(Place, name=PLACES, shut=st.booleans(), off=st.booleans()), max_size=2
    ).map(tuple),
    pods=st.lists(
        st.builds(
            Holder,
            namespace=PLACES,
            name=st.sampled_from(["p", "q"]),
            uses=st.frozensets(NAMES, min_size=1),
        ),
        max_size=2,
    ).map(tuple),
    things=st.lists(THINGS, max_size=4).map(tuple),
    asks=st.lists(
        st.builds(Ask, public_id=NAMES, name=NAMES, namespace=PLACES, let_go=st.booleans()),
        max_size=3,
        unique_by=lambda ask: ask.public_id,
    ).map(tuple),
    bonds_ended=st.booleans(),
)


@given(st.sampled_from(list(Phase)), SEEN)
def test_a_decision_moves_forward_or_acts_and_never_touches_what_a_pod_holds(
    phase: Phase, seen: Seen
) -> None:
    decision = decide(phase, seen)
    assert not (decision.move and (decision.acts or decision.blockers))
    assert decision.move is None or decision.move in MOVES[phase]
    assert decision.move is not Phase.CANCELLED, "only people cancel"
    asks = {ask.public_id: ask for ask in seen.asks}
    for act in decision.acts:
        assert phase in {Phase.RECLAIMING, Phase.LETTING_GO}, "nothing is taken away before"
        if isinstance(act, Release):
            assert not held(asks[act.public_id], seen)
    if decision.move is Phase.LETTING_GO:
        assert seen.bonds_ended and not seen.asks and not seen.pods
    if decision.move is Phase.CLOSED:
        assert all(place.off for place in seen.places)


@given(SEEN, st.lists(st.sampled_from(["look", "end", "again"]), max_size=40))
def test_doubled_and_lost_turns_change_nothing_and_it_always_ends_closed(
    seen: Seen, story: list[str]
) -> None:
    """A small world in which acts take effect, turns are lost or done twice, and Pods end."""
    phase, world, way = Phase.STOPPING, seen, [Phase.STOPPING]
    last = Decision()
    for word in [*story, *["end", "look"] * 12]:
        if word == "end":  # the world moves on by itself: Pods end, strangers' finalizers go
            world = _later(world)
            continue
        decision = last if word == "again" else decide(phase, world)
        if decision.move and decision.move in MOVES[phase]:  # the stored phase guards the move
            phase = decision.move
            way.append(phase)
        for act in decision.acts:
            if isinstance(act, Release):
                assert phase in {Phase.RECLAIMING, Phase.LETTING_GO, Phase.CLOSED}
            world = _done(world, act)
        last = decision
    assert phase is Phase.CLOSED
    assert way == [Phase.STOPPING, *sorted(UNDER_WAY - {Phase.STOPPING}, key=list(Phase).index),
                   Phase.CLOSED]  # fmt: skip
    assert not world.asks and all(place.off for place in world.places)


def _later(world: Seen) -> Seen:
    gone = {ask.public_id for ask in world.asks if ask.let_go}
    return replace(
        world,
        places=tuple(replace(place, shut=True) for place in world.places),
        pods=world.pods[1:],
        things=tuple(
            replace(thing, reserved=()) for thing in world.things if thing.ask not in gone
        ),
        asks=tuple(ask for ask in world.asks if ask.public_id not in gone),
    )


def _done(world: Seen, act: Act) -> Seen:
    match act:
        case EndBonds():
            return replace(world, bonds_ended=True)
        case TakeOff(name):
            return replace(
                world,
                places=tuple(
                    replace(place, off=place.off or place.name == name) for place in world.places
                ),
            )
        case Release(public_id):
            return replace(
                world,
                asks=tuple(
                    replace(ask, let_go=ask.let_go or ask.public_id == public_id)
                    for ask in world.asks
                ),
            )
