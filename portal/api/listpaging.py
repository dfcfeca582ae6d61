"""Cursor paging of what is no table: lists in memory, sorted by a key of texts.

The same parameters and the same shape as `CursorPaging`; a cursor holds the key of a page's edge,
so that nothing is shown twice or left out while things come and go.
"""

from __future__ import annotations

import base64
import binascii
import json
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.utils.urls import replace_query_param

from portal.api.paging import CursorPaging
from portal.errors import Invalid

Item = TypeVar("Item")
Key = tuple[str, ...]
LONGEST_CURSOR = 2000


def list_page(
    request: Request,
    items: Sequence[Item],
    key: Callable[[Item], Key],
    shown: Callable[[Item], Any],
) -> Response:
    """The page of `items` (sorted by `key`) that `?cursor=` and `?limit=` ask for, each `shown`.

    Raises `Invalid` (cursor) for one that no list gave out.
    """
    size = CursorPaging().get_page_size(request) or CursorPaging.page_size
    cursor = request.query_params.get("cursor", "")
    back, edge = _read(cursor) if cursor else (False, None)
    keys = [key(item) for item in items]
    if edge is None:
        start, end = 0, min(size, len(items))
    elif back:
        end = bisect_left(keys, edge)
        start = max(end - size, 0)
    else:
        start = bisect_right(keys, edge)
        end = min(start + size, len(items))
    address = request.build_absolute_uri()
    before = after = None
    if start > 0 and start < end:
        before = replace_query_param(address, "cursor", _write(True, keys[start]))
    if end < len(items) and start < end:
        after = replace_query_param(address, "cursor", _write(False, keys[end - 1]))
    results = [shown(item) for item in items[start:end]]
    return Response({"next": after, "previous": before, "results": results})


def _write(back: bool, key: Key) -> str:
    text = json.dumps([int(back), *key], separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read(cursor: str) -> tuple[bool, Key]:
    refused = Invalid(
        "No such page.", fields={"cursor": "Take the cursor of this list's own next or previous."}
    )
    if len(cursor) > LONGEST_CURSOR:
        raise refused
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        found = json.loads(base64.urlsafe_b64decode(padded.encode("ascii")))
    except (ValueError, binascii.Error) as error:
        raise refused from error
    if not isinstance(found, list) or len(found) < 2 or found[0] not in (0, 1):
        raise refused
    if not all(isinstance(part, str) for part in found[1:]):
        raise refused
    return bool(found[0]), tuple(found[1:])
