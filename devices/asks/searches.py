"""What people and programs search for, as it stands in an address."""

from __future__ import annotations

from collections.abc import Mapping


def search_of(parameters: Mapping[str, str]) -> str:
    """The text of `q`, trimmed; empty where there is none.

    Without NUL, which nothing here has in its name and which PostgreSQL refuses in any text.
    """
    return parameters.get("q", "").replace("\x00", "").strip()
