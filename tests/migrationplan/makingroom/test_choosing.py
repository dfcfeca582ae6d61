"""Who may be ended so that another fits, by the rules alone."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from devices.dra.requests import Wish
from devices.dra.snapshot import read
from migrationplan.makingroom.choosing import Found, choose, percentile
from tests.factories import NOON
from tests.migrationplan.keeping import CLASS, DRIVER, a_class, a_node, a_slice
from tests.migrationplan.makingroom.pods import Obj, a_holder, a_waiter

ASKS = read(
    [
        {
            "kind": "ResourceClaim",
            "metadata": {"name": "w", "namespace": "team"},
            "spec": {
                "devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": CLASS}}]}
            },
        }
    ]
)
WISHES = [Wish("team/w", next(iter(ASKS.claims.values())).spec)]


def found(*objects: Obj, policy: str = "utilisation", waiting: bool = True) -> Found:
    seen = read([a_node(), a_class(), a_slice(), *objects])
    pods = [one for one in seen.pods.values() if one.meta.name == "waits"] if waiting else []
    return choose(
        seen, WISHES, pods, policy=policy, tenant="tide",
        tenants={"team": "tide", "other": "basalt"}, now=NOON,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("objects", "more", "ends", "said"),
    [
        pytest.param(
            [*a_holder("low", "gpu-0"), *a_holder("high", "gpu-1", priority=50), a_waiter()], {},
            [["low"]], "", id="the less important one",
        ),
        pytest.param(
            [*a_holder("low", "gpu-0", retryable=False), *a_holder("high", "gpu-1", priority=50),
             a_waiter()], {}, [], "did not mark them as retryable", id="nobody who is not marked",
        ),
        pytest.param(
            [*a_holder("one", "gpu-0", priority=10), *a_holder("two", "gpu-1", priority=10),
             a_waiter()], {}, [], "no less important Pod", id="nobody who is as important",
        ),
        pytest.param(
            [*a_holder("low", "gpu-0"), a_waiter()], {}, [], "fits already", id="it fits",
        ),
        pytest.param(
            [*a_holder("low", "gpu-0"), *a_holder("too", "gpu-1"), a_waiter()],
            {"policy": "continuity"}, [], "nothing is proposed", id="continuity proposes nothing",
        ),
        pytest.param(
            [*a_holder("low", "gpu-0"), *a_holder("too", "gpu-1"), a_waiter()],
            {"policy": "throughput"}, [], "nothing is proposed", id="nor does throughput",
        ),
        pytest.param(
            [*a_holder("low", "gpu-0"), *a_holder("too", "gpu-1")], {"waiting": False}, [],
            "No Pod waits", id="no Pod, no priority",
        ),
    ],
)  # fmt: skip
def test_who_may_be_ended(
    objects: list[Obj], more: dict[str, Any], ends: list[list[str]], said: str
) -> None:
    result = found(*objects, **more)
    assert [[one.pod.meta.name for one in way.endings] for way in result.choices] == ends
    assert said in result.why_not


def test_a_way_says_whose_pods_end_and_how_long_they_may_take() -> None:
    high = a_holder("high", "gpu-1", priority=50)
    [own] = found(*a_holder("low", "gpu-0"), *high, a_waiter()).choices
    [theirs] = found(*a_holder("low", "gpu-0", namespace="other"), *high, a_waiter()).choices
    assert (own.own, theirs.own) == (True, False)
    assert own.endings[0].tenant == "tide" and own.endings[0].grace == timedelta(seconds=7)
    assert own.room.devices == ((DRIVER, "n1", "gpu-0"),)
    assert own.number != theirs.number or own.endings[0].pod.meta.uid == "u-low"


@pytest.mark.parametrize(
    ("values", "share", "result"),
    [([], 0.5, None), ([1], 0.95, 1), ([1, 2], 0.5, 1), ([1, 2, 3, 4], 0.5, 2), ([1, 9], 0.95, 9)],
)
def test_a_percentile_is_one_of_the_values(
    values: list[int], share: float, result: int | None
) -> None:
    spans = [timedelta(seconds=one) for one in values]
    wanted = None if result is None else timedelta(seconds=result)
    assert percentile(spans, share) == wanted
