"""How offers read: groups that look the same become one line, and nothing unknown becomes zero."""

from __future__ import annotations

from typing import Any

import pytest

from devices.templatetags.offers import because, left, merged, plugin_only


def group(words: str, free: int | None, total: int) -> dict[str, Any]:
    return {"words": words, "free": free, "total": total, "nodes": 1}


def test_groups_that_read_the_same_are_one_line() -> None:
    lines = merged([group("A100", 3, 4), group("L40S", 9, 9), group("A100", 1, 8)])
    assert lines == [
        {"words": "A100", "free": 4, "total": 12},
        {"words": "L40S", "free": 9, "total": 9},
    ]


def test_unknown_stays_unknown_when_lines_are_added() -> None:
    assert merged([group("A100", None, 4), group("A100", 2, 4)]) == [
        {"words": "A100", "free": None, "total": 8}
    ]


@pytest.mark.parametrize(
    ("counts", "only"),
    [
        pytest.param({"total": 0, "plugin": {"allocatable": 16}}, True, id="plugin alone"),
        pytest.param({"total": 4, "plugin": {"allocatable": 16}}, False, id="both"),
        pytest.param({"total": 0, "plugin": None}, False, id="neither"),
    ],
)
def test_plugin_only(counts: dict[str, Any], only: bool) -> None:
    assert plugin_only(counts) is only


@pytest.mark.parametrize(
    ("plugin", "rest"),
    [
        pytest.param({"allocatable": 16, "requested": 11}, 5, id="known"),
        pytest.param({"allocatable": 4, "requested": 6}, -2, id="overdrawn is shown"),
        pytest.param({"allocatable": 16, "requested": None}, None, id="unknown"),
    ],
)
def test_what_a_plugin_has_left(plugin: dict[str, Any], rest: int | None) -> None:
    assert left(plugin) == rest


def test_a_reason_reads_in_the_middle_of_a_sentence() -> None:
    assert because("COUNTERS_TAKEN") == "other partitions of the same hardware are in use"
    assert because("SOMETHING_NEW") == "SOMETHING_NEW"
