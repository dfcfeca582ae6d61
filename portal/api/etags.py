"""ETag and If-Match: who writes says what they looked at."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework.request import Request

from portal.errors import Outdated


def etag(revision: int) -> str:
    """The strong entity tag of a row's revision."""
    return f'"{revision}"'


def check_match(request: Request, revision: int, present: Mapping[str, Any]) -> None:
    """Raises `Outdated` where If-Match names another revision; `present` goes into its facts."""
    wanted = request.headers.get("If-Match")
    if wanted is None or wanted.strip() == "*":
        return
    if etag(revision) not in {tag.strip() for tag in wanted.split(",")}:
        raise Outdated(
            "It changed since you looked; facts.now says how it stands.",
            etag=etag(revision),
            now=dict(present),
        )
