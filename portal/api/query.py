"""Parameters of an address are what the OpenAPI document says of them, for every operation.

What an operation declares with `extend_schema` is held against what came, so that a number that is
none is named instead of passed over. What a document cannot say (`under-24h`), an operation's own
reader refuses; both are told in one answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import cache
from typing import Any
from uuid import UUID

from django.utils.dateparse import parse_date, parse_datetime
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter

from portal.errors import Invalid

WHOLE = re.compile(r"-?[0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class Declared:
    """One parameter: how it reads, and what to say where it does not."""

    name: str
    fits: Callable[[str], bool]
    words: str


def check(
    view: type,
    method: str,
    given: Mapping[str, str],
    refusals: Callable[[Mapping[str, str]], Mapping[str, str]] | None = None,
) -> None:
    """Raises `Invalid` naming each parameter that is not what was declared, or that the operation's
    own `refusals` name; its own words go before those of the document.
    """
    wrong = {
        one.name: one.words
        for one in declared(view, "get" if method == "HEAD" else method.lower())
        if one.name in given and not one.fits(given[one.name])
    }
    if refusals is not None:
        wrong |= refusals(given)
    if wrong:
        raise Invalid("Some parameters are not right.", fields=wrong)


@cache
def declared(view: type, method: str) -> tuple[Declared, ...]:
    """What an operation declares about its query, as far as it can be held against a text."""
    kind = getattr(getattr(view, method, None), "kwargs", {}).get("schema")
    if kind is None:
        return ()
    schema = kind()
    schema.view, schema.method = view(), method.upper()
    schema.view.request, schema.view.kwargs = None, {}
    found = [_declared(one) for one in schema.get_override_parameters()]
    return tuple(one for one in found if one is not None)


def _declared(one: Any) -> Declared | None:
    if not isinstance(one, OpenApiParameter) or one.location != OpenApiParameter.QUERY:
        return None
    if one.enum:
        known = tuple(map(str, one.enum))
        return Declared(one.name, known.__contains__, f"One of {', '.join(known)}.")
    if one.type in (int, OpenApiTypes.INT):
        return Declared(one.name, _whole, "A whole number.")
    if one.type in (bool, OpenApiTypes.BOOL):
        return Declared(one.name, ("true", "false").__contains__, "true or false.")
    if one.type in (datetime, OpenApiTypes.DATETIME):
        return Declared(one.name, _moment, "A moment such as 2026-11-02T12:00:00Z.")
    if one.type in (date, OpenApiTypes.DATE):
        return Declared(one.name, _day, "A day such as 2026-11-02.")
    if one.type in (UUID, OpenApiTypes.UUID):
        return Declared(one.name, _uuid, "A UUID.")
    return None


def _whole(text: str) -> bool:
    return WHOLE.fullmatch(text) is not None


def _moment(text: str) -> bool:
    try:
        return parse_datetime(text) is not None
    except ValueError:
        return False


def _day(text: str) -> bool:
    try:
        return parse_date(text) is not None
    except ValueError:
        return False


def _uuid(text: str) -> bool:
    try:
        return bool(UUID(text))
    except ValueError:
        return False
