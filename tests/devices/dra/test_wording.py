"""How sentences carry lists and lengths of time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from devices.dra.wording import lasting, many, some_of


@pytest.mark.parametrize(
    "names, said",
    [
        pytest.param([], "", id="nobody"),
        pytest.param(["a"], "a", id="one"),
        pytest.param(["a", "b"], "a, b", id="as many as are named"),
        pytest.param(["a", "b", "c", "d"], "a, b and 2 more", id="the rest is counted"),
    ],
)
def test_a_list_names_the_first_and_counts_the_rest(names, said):
    assert some_of(names, 2) == said


@pytest.mark.parametrize("number, said", [(1, "1 Pod holds"), (2, "2 Pods hold")])
def test_a_number_agrees_with_its_noun_and_verb(number, said):
    assert many(number, "Pod holds", "Pods hold") == said
    assert many(number, "claim") == f"{number} claim{'s' * (number > 1)}"


def test_a_list_of_phrases_is_parted_otherwise():
    assert some_of(["1 GPU, 10 GB", "2 GPUs, 10 GB", "x"], 2, by="; ") == (
        "1 GPU, 10 GB; 2 GPUs, 10 GB and 1 more"
    )


@pytest.mark.parametrize(
    "length, said",
    [
        pytest.param(
            timedelta(days=2, hours=2, minutes=59), "2 days 3 hours", id="two units, rounded"
        ),
        pytest.param(timedelta(minutes=59, seconds=59), "59 minutes 59 seconds", id="minutes"),
        pytest.param(timedelta(hours=23, minutes=59, seconds=45), "1 day", id="rounded up"),
        pytest.param(timedelta(days=1, minutes=5), "1 day", id="a unit of none is left out"),
        pytest.param(timedelta(hours=1, minutes=1), "1 hour 1 minute", id="one is no plural"),
        pytest.param(timedelta(seconds=45.9), "45 seconds", id="no parts of seconds"),
        pytest.param(timedelta(0), "no time", id="none"),
        pytest.param(-timedelta(hours=1), "no time", id="what is over"),
    ],
)
def test_a_length_of_time_in_words(length, said):
    assert lasting(length) == said
