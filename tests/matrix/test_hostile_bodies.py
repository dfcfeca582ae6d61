"""Whatever stands in a body, an operation answers with less than 500: no number and no text is too
large for it, none is of the wrong kind.

Each body of the matrix with one value after the other turned hostile, sent by whoever may do it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.matrix.table import CALLERS, Row, all_rows
from tests.matrix.test_matrix import in_time, status, world  # noqa: F401 - the matrix's own world
from tests.matrix.world import World

pytestmark = pytest.mark.django_db
#: Just too large for a column of PostgreSQL, for a name; nothing; and of no kind.
HOSTILE = (2**31, 2**63, "x" * 5000, None, [[]])
DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi.json"


def rows() -> list[Row]:
    """Those of the API that take JSON and that somebody may do."""
    return [
        row
        for row in all_rows()
        if row.route.startswith("api/") and "{" in row.body and doer(row) is not None
    ]


def doer(row: Row) -> str | None:
    """The first caller who gets it done."""
    done = [name for name, cell in zip(CALLERS, row.cells, strict=False) if cell.startswith("2")]
    return done[0] if done else None


def leaves(body: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each value of a document."""
    if isinstance(body, dict | list) and body:
        for key, value in body.items() if isinstance(body, dict) else enumerate(body):
            yield from leaves(value, (*path, key))
    elif path:
        yield path


def turned(body: Any, path: tuple[Any, ...], value: Any) -> Any:
    found = deepcopy(body)
    place = found
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    return found


def also(row: Row) -> list[str]:
    """Fields of the document's example, of which the matrix's body may have a part only."""
    template = re.sub(r"<\w+:(\w+)>", r"{\1}", f"/{row.route}")
    paths = json.loads(DOCUMENT.read_text())["paths"]
    found = paths.get(template) or paths.get(template.replace("{pk}", "{id}")) or {}
    content = found.get(row.method.lower(), {}).get("requestBody", {}).get("content", {})
    example = content.get("application/json", {}).get("example", {})
    return list(example) if isinstance(example, dict) else []


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.method} {row.route}")
def test_no_value_is_too_much_for_an_operation(world: World, row: Row) -> None:  # noqa: F811
    who, path = doer(row), world.path(row.route)
    assert who is not None
    head, brace, text = in_time(row.body).partition("{")
    body = json.loads(brace + text)
    ways = [*leaves(body), *((name,) for name in also(row) if name not in body)]
    broken = []
    for way in dict.fromkeys(ways):
        for value in HOSTILE:
            said = head + json.dumps(turned(body, way, value))
            found = status(world.callers[who](), replace(row, body=said), path)
            if found >= "500":
                broken.append(f"{'.'.join(map(str, way))} = {str(value)[:24]!r}: {found}")
    assert broken == []
