"""A Pod's way through the stages: the cluster's stamps, and what only Berth saw."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from devices.asks.passages import Passage, left, passage
from devices.dra.progress import Progress, Stage, Step

NOON = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


def come(*steps: tuple[Stage, float | None], ready: float | None = None) -> Progress:
    made = tuple(Step(stage, None if when is None else at(when)) for stage, when in steps)
    return Progress(made, None if ready is None else at(ready))


BOUND = (
    (Stage.CREATED, 0),
    (Stage.GENERATED, 1),
    (Stage.ALLOCATED, 2),
    (Stage.BOUND, 3),
)


def test_the_clusters_stamps_are_taken_as_they_are() -> None:
    found = passage(come(*BOUND), None, at(60))
    assert found.created == NOON
    assert found.times == {"generated_at": at(1), "allocated_at": at(2), "bound_at": at(3)}
    assert not found.observed


def test_a_stage_without_a_stamp_is_timed_when_it_is_first_seen_and_marked() -> None:
    first = passage(come(*BOUND, (Stage.PREPARED, None)), None, at(5))
    again = passage(come(*BOUND, (Stage.PREPARED, None)), first, at(9))
    assert first == again
    assert (again.times["prepared_at"], again.observed) == (at(5), frozenset({"prepared_at"}))


def test_a_stamp_replaces_what_was_only_seen() -> None:
    first = passage(come(*BOUND, (Stage.PREPARED, None)), None, at(5))
    later = passage(come(*BOUND, (Stage.PREPARED, 4)), first, at(9))
    assert (later.times["prepared_at"], later.observed) == (at(4), frozenset())


def test_what_was_passed_unseen_gets_no_time_that_is_later_than_what_followed() -> None:
    found = passage(come(*BOUND, (Stage.PREPARED, None), (Stage.RUNNING, 6)), None, at(600))
    assert "prepared_at" not in found.times
    assert found.times["running_at"] == at(6)


def test_what_was_known_stays_known_when_the_objects_no_longer_say_it() -> None:
    ran = passage(come(*BOUND, (Stage.PREPARED, 4), (Stage.RUNNING, 6), ready=7), None, at(8))
    over = passage(
        come((Stage.CREATED, 0), (Stage.GENERATED, 1), (Stage.ALLOCATED, None)), ran, at(90)
    )
    assert over.times == ran.times
    assert over.ready == at(7)


def test_a_pod_that_is_gone_has_released_once() -> None:
    ran = Passage(NOON, {"allocated_at": at(2)})
    gone = left(ran, at(30))
    assert (gone.times["released_at"], gone.observed) == (at(30), frozenset({"released_at"}))
    assert left(gone, at(99)) == gone
