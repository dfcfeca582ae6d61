"""Did it pay: similar work only, over the same time only, and what cannot be compared is said."""

from __future__ import annotations

from datetime import timedelta

from migrationplan.payoff import Aspect, Finding, Path, Similar, Work, report
from tests.factories import NOON

PATIENCE = timedelta(minutes=10)


def pods(
    path: Path,
    number: int,
    *,
    devices: int = 1,
    wait: float = 5,
    ready: float = 20,
    begins: float = 6,
    given: bool = True,
    retries: int = 0,
) -> list[Work]:
    """So many Pods, one every five minutes from `begins` hours before noon."""
    found = []
    for one in range(number):
        created = NOON - timedelta(hours=begins) + timedelta(minutes=5 * one)
        found.append(
            Work(
                pod=f"{path}-{devices}-{one}",
                path=path,
                devices=devices,
                created=created,
                given=created + timedelta(seconds=wait) if given else None,
                ready=created + timedelta(seconds=ready) if given else None,
                retries=retries,
            )
        )
    return found


def compared(*work: list[Work]) -> tuple[Similar, ...]:
    return report([one for some in work for one in some], patience=PATIENCE, now=NOON)


def finding(found: Similar, aspect: Aspect, path: Path = Path.CLAIM) -> Finding:
    return {row.aspect: row for row in found.rows}[aspect].against[path].finding


def test_the_same_work_on_both_paths_is_compared() -> None:
    (found,) = compared(pods(Path.PLUGIN, 40), pods(Path.CLAIM, 40, ready=60, retries=1))
    assert finding(found, Aspect.ALLOCATION) is Finding.ALIKE
    assert finding(found, Aspect.WAIT) is Finding.ALIKE
    assert finding(found, Aspect.READY) is Finding.WORSE
    assert finding(found, Aspect.RETRIES) is Finding.WORSE
    rows = {row.aspect: row for row in found.rows}
    assert rows[Aspect.READY].sides[Path.CLAIM].p95 == 60
    assert rows[Aspect.ALLOCATION].sides[Path.PLUGIN].bad == 0
    assert found.pods == {Path.PLUGIN: 40, Path.CLAIM: 40}


def test_dra_can_be_better() -> None:
    (found,) = compared(pods(Path.PLUGIN, 40, given=False), pods(Path.CLAIM, 40))
    assert finding(found, Aspect.ALLOCATION) is Finding.BETTER
    assert finding(found, Aspect.WAIT) is Finding.NOT_COMPARABLE, "nobody waited to an end"


def test_work_of_another_size_is_no_similar_work() -> None:
    found = compared(pods(Path.PLUGIN, 40), pods(Path.CLAIM, 50, devices=8))
    assert [(one.devices, one.since) for one in found] == [(8, None), (1, None)]
    assert finding(found[0], Aspect.READY) is Finding.NOT_COMPARABLE
    why = {row.aspect: row for row in found[0].rows}[Aspect.READY].against[Path.CLAIM].why
    assert why == "both paths never ran it at the same time"
    assert not found[1].rows[0].against, "there is nothing to set against the plugin"


def test_another_week_is_not_the_same_time() -> None:
    (found,) = compared(pods(Path.PLUGIN, 60, begins=200), pods(Path.CLAIM, 60))
    assert found.since is None
    assert {finding(found, aspect) for aspect in Aspect} == {Finding.NOT_COMPARABLE}


def test_only_what_ran_at_the_same_time_counts() -> None:
    (found,) = compared(pods(Path.PLUGIN, 40, begins=6), pods(Path.CLAIM, 40, begins=4))
    rows = {row.aspect: row for row in found.rows}
    assert found.since == NOON - timedelta(hours=4)
    assert rows[Aspect.READY].sides[Path.PLUGIN].samples == 16
    assert rows[Aspect.READY].against[Path.CLAIM].why.startswith("too few: 16 and 16 samples")


def test_too_few_are_not_comparable() -> None:
    (found,) = compared(pods(Path.PLUGIN, 19), pods(Path.CLAIM, 19, ready=900))
    assert {finding(found, aspect) for aspect in Aspect} == {Finding.NOT_COMPARABLE}


def test_one_path_alone_has_nothing_to_be_compared_with() -> None:
    (found,) = compared(pods(Path.EXTENDED, 30))
    assert found.rows[0].sides[Path.EXTENDED].samples == 30
    assert finding(found, Aspect.WAIT, Path.EXTENDED) is Finding.NOT_COMPARABLE
    assert compared() == ()
