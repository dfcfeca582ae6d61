"""The audit chain: nobody changes, drops or reorders a line without being found out."""

from __future__ import annotations

from typing import Any

import pytest

from portal.audit.chain import GENESIS, breaks, digest

Line = tuple[int, str, str, dict[str, Any]]


def chain(count: int) -> list[Line]:
    lines, previous = [], GENESIS
    for number in range(1, count + 1):
        content = {"number": number, "action": "claim.asked"}
        own = digest(previous, content)
        lines.append((number, previous, own, content))
        previous = own
    return lines


def changed(lines: list[Line]) -> list[Line]:
    number, previous, own, content = lines[1]
    return [lines[0], (number, previous, own, {**content, "action": "nothing"}), *lines[2:]]


def rewritten(lines: list[Line]) -> list[Line]:
    """Changed, with a digest that fits the new content: the next line gives it away."""
    number, previous, _, content = lines[1]
    content = {**content, "action": "nothing"}
    return [lines[0], (number, previous, digest(previous, content), content), *lines[2:]]


@pytest.mark.parametrize(
    ("lines", "broken"),
    [
        pytest.param([], None, id="an empty chain proves"),
        pytest.param(chain(4), None, id="a whole chain proves"),
        pytest.param(changed(chain(4)), 2, id="a changed line is found"),
        pytest.param(rewritten(chain(4)), 3, id="a line changed with its digest is found"),
        pytest.param([*chain(4)[:1], *chain(4)[2:]], 3, id="a dropped line is found"),
        pytest.param(chain(4)[1:], 2, id="a dropped first line is found"),
        pytest.param(
            [chain(4)[0], chain(4)[2], chain(4)[1], chain(4)[3]], 3, id="reordered lines are found"
        ),
    ],
)
def test_breaks(lines: list[Line], broken: int | None) -> None:
    found = next(breaks(lines), None)
    assert (found.number if found else None) == broken


def test_the_order_of_keys_does_not_count() -> None:
    assert digest(GENESIS, {"a": 1, "b": 2}) == digest(GENESIS, {"b": 2, "a": 1})
