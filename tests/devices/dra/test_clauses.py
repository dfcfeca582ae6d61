"""A selector taken apart at its &&."""

from __future__ import annotations

import pytest

from devices.dra.clauses import clauses, without


@pytest.mark.parametrize(
    "expression, parts",
    [
        ("a", ("a",)),
        ("a && b", ("a", "b")),
        ("a&&b&&c", ("a", "b", "c")),
        ("(a && (b || c)) && d", ("a", "b || c", "d")),
        ("a || b && c", ("a || b && c",)),
        ("x ? a && b : c", ("x ? a && b : c",)),
        ('device.driver == "x && y" && b', ('device.driver == "x && y"', "b")),
        (r'a == "\" && " && b', (r'a == "\" && "', "b")),
        ("r'\\' && b", ("r'\\'", "b")),
        ('"""a && "b" """ == x && b', ('"""a && "b" """ == x', "b")),
        ("cel.bind(a, b && c, a && d)", ("cel.bind(a, b && c, a && d)",)),
        ('d["x"].?y.orValue(1) == 1 && b', ('d["x"].?y.orValue(1) == 1', "b")),
        ("a // && no\n && c", ("a", "c")),
        ('a == "//" && b', ('a == "//"', "b")),
        ("", ("",)),
    ],
)
def test_conditions_that_all_have_to_hold(expression, parts) -> None:
    assert clauses(expression) == parts


@pytest.mark.parametrize(
    "expression, index, left",
    [
        ("a && b && c", 1, "a && c"),
        ("a && (b || c) && d", 0, "(b || c) && d"),
        ("a && (b || c)", 0, "b || c"),
        ("a", 0, ""),
    ],
)
def test_one_clause_less(expression, index, left) -> None:
    assert without(expression, index) == left
