"""What the comparison of two stories says, and what a story leaves out."""

from __future__ import annotations

import pytest

from tests.playground.situations.compare import first_difference, without
from tests.playground.situations.record import Masked, Story, plain


@pytest.mark.parametrize(
    "real, simulated, words",
    [
        pytest.param({"a": [1]}, {"a": [1]}, "", id="equal"),
        pytest.param({"a": [1]}, {}, "a: only the real node has it: [1]", id="one has no such"),
        pytest.param(
            {}, {"a": [1]}, "a: only the simulated node has it: [1]", id="the other has none"
        ),
        pytest.param(
            {"phase": ["Pending", "Running"]},
            {"phase": ["Pending", "Failed"]},
            "phase[1]: really 'Running', simulated 'Failed'",
            id="another value",
        ),
        pytest.param(
            {"events": ["x", "y"]},
            {"events": ["x"]},
            "events[1]: only the real node goes on: 'y'",
            id="one goes on",
        ),
        pytest.param(
            {"events": ["x", "y"]},
            {"events": ["y", "x"]},
            "events[0]: really 'x', simulated 'y'",
            id="another order",
        ),
        pytest.param(
            {"at last": [{"b": 1}]},
            {"at last": [{"b": 2}]},
            "at last[0][b]: really 1, simulated 2",
            id="deep in a status",
        ),
        pytest.param(
            {"at last": [{"conditions": [{"type": "B", "status": "True"}]}]},
            {"at last": [{"conditions": [{"type": "A", "since": "TIME"}, {"type": "B"}]}]},
            "at last[0][conditions][A]: only the simulated node has it: "
            "{'type': 'A', 'since': 'TIME'}",
            id="a condition that one does not have, and no field of its neighbour",
        ),
        pytest.param(
            {"conditions": [{"type": "A"}, {"type": "B"}]},
            {"conditions": [{"type": "B"}, {"type": "A"}]},
            "",
            id="conditions in any order",
        ),
    ],
)
def test_the_first_difference_in_words(real: Story, simulated: Story, words: str) -> None:
    assert first_difference(real, simulated) == words


def test_events_by_chance_are_left_out_and_nothing_else() -> None:
    story: Story = {"Pod a: events": ["Normal Killing: x", "Normal Pulled: y"], "phase": ["Normal"]}
    assert without(story, ("Normal Killing",)) == {**story, "Pod a: events": ["Normal Pulled: y"]}
    assert without(story, ()) == story


@pytest.mark.parametrize(
    "text, masked",
    [
        pytest.param("pod ns-1/a on real-1", "pod NAMESPACE/a on NODE", id="the run's own names"),
        pytest.param(
            "x 1b4e28ba-2fa1-11d2-883f-0016d3cca427 y", "x UID y", id="a uid, nothing around it"
        ),
        pytest.param("a-gpu-x7k2m", "a-gpu-XXXXX", id="a generated claim's name"),
        pytest.param("2026-11-30T05:00:00Z", "TIME", id="a moment"),
        pytest.param("device is on fire", "device is on fire", id="words stay"),
    ],
)
def test_what_is_masked(text: str, masked: str) -> None:
    assert Masked("ns-1", "real-1")(text) == masked


def test_an_empty_field_is_none_and_those_of_the_machine_do_not_count() -> None:
    first = {"conditions": [{"type": "A", "status": "True", "message": ""}], "hostIP": "192.0.2.1"}
    second = {"conditions": [{"type": "A", "status": "True"}], "reason": None}
    assert plain(first) == plain(second)
