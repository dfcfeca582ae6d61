"""Who could make room for a request: the fewest and cheapest, and nobody who matters more."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from devices.dra.gates import gates
from devices.dra.makeroom import make_room
from devices.dra.requests import Wish
from devices.dra.snapshot import read
from tests.devices.dra.questions import a_pod, a_spec, held, one_device

NOW = datetime(2026, 6, 1, 12, tzinfo=UTC)


def room(objects: Sequence[dict[str, Any]], count: int, priority: int) -> list[tuple[str, ...]]:
    """The Pods of each choice for a request of so many devices, on a node with three."""
    pool = {"name": "n", "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"x{index}"} for index in range(3)]
    spec = {"driver": "d", "nodeName": "n", "pool": pool, "devices": devices}
    base = [
        {"kind": "DeviceClass", "metadata": {"name": "c"}, "spec": {}},
        {"kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec},
    ]
    cluster = read([*base, *objects], gates=gates("1.37"))
    return [
        tuple(pod.removeprefix("ns/") for pod in choice.pods)
        for choice in make_room(cluster, [Wish("ns/w", a_spec(count))], priority, now=NOW)
    ]


FULL = [held("x0", "a"), held("x1", "b"), held("x2", "c")]


@pytest.mark.parametrize(
    "pods, count, choices",
    [
        pytest.param(
            [a_pod("a", 10), a_pod("b", 5), a_pod("c", 100)], 1, [("b",)], id="the least important"
        ),
        pytest.param(
            [a_pod("a", 5), a_pod("b", 10, retryable=True), a_pod("c", 5)],
            1,
            [("b",)],
            id="who may be retried goes first",
        ),
        pytest.param(
            [a_pod("a", 5, hour=8), a_pod("b", 5, hour=11), a_pod("c", 5, hour=9)],
            1,
            [("b",)],
            id="the least work is lost",
        ),
        pytest.param(
            [a_pod("a", 5), a_pod("b", 6), a_pod("c", 7)],
            2,
            [("a", "b")],
            id="two have to go: the costliest is spared",
        ),
        pytest.param(
            [a_pod("a", 50), a_pod("b", 50), a_pod("c", 60)], 1, [], id="nobody is less important"
        ),
        pytest.param([a_pod("b", 5)], 2, [], id="Pods that are not known are let alone"),
    ],
)
def test_the_cheapest_holders_make_room(pods, count, choices) -> None:
    assert room([*FULL, *pods], count, 50) == choices


def test_nothing_has_to_go_where_it_fits() -> None:
    assert room([held("x0", "a"), a_pod("a", 1)], 2, 50) == []


def test_a_choice_says_what_it_frees_and_how_long_that_takes() -> None:
    cluster = read(
        [
            *one_device(),
            held("x0", "a", "b"),
            a_pod("a", 1, retryable=True),
            a_pod("b", 2, retryable=True),
        ]
    )
    [choice] = make_room(
        cluster, [Wish("ns/w", a_spec(1))], 9, now=NOW, letting_go=timedelta(seconds=5)
    )
    assert choice.devices == (("d", "n", "x0"),) and choice.pods == ("ns/a", "ns/b")
    assert choice.takes == timedelta(seconds=65) and choice.spared
    assert choice.cost == (2, 0, 2, 7200.0)
