"""Who may do what: the tables in docs/rights.md are what the code does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from portal.errors import NotPermitted
from tenants.models import ApiToken, Membership, PlatformRole
from tenants.policy import (
    MAY,
    MAY_ON_PLATFORM,
    Act,
    PlatformAct,
    Scope,
    may,
    may_on_platform,
    require,
    require_on_platform,
    why_not,
)

Cell = tuple[str, str, str]


def documented(heading: str) -> Iterator[Cell]:
    """(act, role or "scope", what the cell says) of the table below a heading."""
    text = (Path(__file__).parents[2] / "docs" / "rights.md").read_text()
    part = text.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.strip("|").split("|") for line in part.splitlines() if line.startswith("| ")]
    (_, *columns), *acts = [[cell.strip() for cell in row] for row in rows]
    for act, *cells in acts:
        yield from ((act, column, cell) for column, cell in zip(columns, cells, strict=True))


IN_TENANT = list(documented("In a tenant"))
ON_PLATFORM = list(documented("On the platform"))


@pytest.mark.parametrize(("act", "column", "cell"), IN_TENANT)
def test_the_documented_right_in_a_tenant(act: str, column: str, cell: str) -> None:
    if column == "scope":
        assert (MAY[Act(act)].scope or "none") == cell
    else:
        assert may(column, Act(act)) is (cell == "yes")


@pytest.mark.parametrize(("act", "column", "cell"), ON_PLATFORM)
def test_the_documented_right_on_the_platform(act: str, column: str, cell: str) -> None:
    if column == "scope":
        assert (MAY_ON_PLATFORM[PlatformAct(act)].scope or "none") == cell
    else:
        assert may_on_platform({column}, PlatformAct(act)) is (cell == "yes")


def test_every_act_and_every_role_is_documented() -> None:
    assert {act for act, _, _ in IN_TENANT} == set(Act) == set(MAY)
    assert {column for _, column, _ in IN_TENANT} == {*Membership.Role.values, "scope"}
    assert {act for act, _, _ in ON_PLATFORM} == set(PlatformAct) == set(MAY_ON_PLATFORM)
    assert {column for _, column, _ in ON_PLATFORM} == {*PlatformRole.Role.values, "scope"}
    assert set(Scope) == set(ApiToken.Scope.values)


def test_a_refusal_says_who_may() -> None:
    with pytest.raises(NotPermitted) as refused:
        require("viewer", Act.ASK)
    assert refused.value.facts == {"role": "viewer", "needed": ["member", "owner"]}
    assert "member or owner" in refused.value.message


def test_a_refusal_on_the_platform_says_who_may() -> None:
    with pytest.raises(NotPermitted) as refused:
        require_on_platform({"operator", "auditor"}, PlatformAct.GIVE_ROLES)
    assert refused.value.facts == {"roles": ["auditor", "operator"], "needed": ["admin"]}
    assert "auditor and operator" in refused.value.message


def test_an_allowed_act_needs_no_words() -> None:
    assert why_not("owner", Act.RELEASE) == ""


@pytest.mark.parametrize(
    ("act", "scopes", "allowed"),
    [
        pytest.param(Act.ASK, {"request"}, True, id="the scope that it takes"),
        pytest.param(Act.ASK, {"read", "admin"}, False, id="other scopes, however great"),
        pytest.param(Act.MAKE_TOKEN, {"read", "request", "operate", "admin"}, False, id="never"),
    ],
)
def test_a_token_narrows_the_person(act: Act, scopes: set[str], allowed: bool) -> None:
    assert may("owner", act) is True
    assert may("owner", act, scopes) is allowed
    assert may("viewer", act, {"read", "request"}) is False
