"""Who may do what: the table in docs/rights.md is what the code does."""

from __future__ import annotations

from pathlib import Path

import pytest

from portal.errors import NotPermitted
from tenants.policy import Act, may, require, why_not

ROLES = ("viewer", "member", "owner")


def documented() -> list[tuple[str, str, bool]]:
    text = (Path(__file__).parents[2] / "docs" / "rights.md").read_text()
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ")]
    (_, *roles), *acts = [[cell.strip() for cell in row] for row in rows]
    assert tuple(roles) == ROLES
    return [
        (act, role, cell == "yes")
        for act, *cells in acts
        for role, cell in zip(roles, cells, strict=True)
    ]


@pytest.mark.parametrize(("act", "role", "allowed"), documented())
def test_the_documented_right(act: str, role: str, allowed: bool) -> None:
    assert may(role, Act(act)) is allowed


def test_every_act_is_documented() -> None:
    assert {act for act, _, _ in documented()} == set(Act)


def test_a_refusal_says_who_may() -> None:
    with pytest.raises(NotPermitted) as refused:
        require("viewer", Act.ASK)
    assert refused.value.facts == {"role": "viewer", "needed": ["member", "owner"]}
    assert "member or owner" in refused.value.message


def test_an_allowed_act_needs_no_words() -> None:
    assert why_not("owner", Act.RELEASE) == ""
