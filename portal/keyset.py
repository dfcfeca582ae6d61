"""Pages of long lists by key, not by number: each costs the same, however far down it lies.

A cursor holds the sort value and the primary key of a page's edge. Rows that come or go meanwhile
move nothing: no row is shown twice, none is left out.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import F, Model, Q, QuerySet

from portal.errors import Invalid

Row = TypeVar("Row", bound=Model)
Item = TypeVar("Item")

LONGEST_CURSOR = 1000


@dataclass(frozen=True, slots=True)
class Order:
    """By which column, and which way; `pk` breaks ties the same way. Rows without a value in it
    come last, whichever way.
    """

    field: str
    descending: bool = False


@dataclass(frozen=True, slots=True)
class Slice(Generic[Row]):
    """One page, and the cursors of those before and after it; empty where there is none."""

    rows: tuple[Row, ...]
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Edge:
    """Where a page begins: beyond this row, forwards or back."""

    back: bool
    value: Any
    pk: Any


def cut(rows: QuerySet[Row], order: Order, size: int, cursor: str = "") -> Slice[Row]:
    """At most `size` rows from the cursor on; one query.

    Raises `Invalid` (cursor) for one that this list did not give out.
    """
    edge = _read(rows.model, order, cursor) if cursor else None
    back = edge is not None and edge.back
    if edge is not None:
        rows = rows.filter(_beyond(order, edge))
    found = list(_sorted(rows, order, back)[: size + 1])
    more, page = len(found) > size, found[:size]
    if back:
        page.reverse()
    if not page:
        return Slice((), "", "")
    return Slice(
        tuple(page),
        _write(order, page[0], back=True) if (more if back else edge is not None) else "",
        _write(order, page[-1], back=False) if back or more else "",
    )


def cut_list(
    items: Iterable[Item], key: Callable[[Item], tuple[str, ...]], size: int, cursor: str = ""
) -> tuple[list[Item], str, str]:
    """The same of what is no table: the page by `key`, which tells items apart, and the cursors of
    the pages before and after it.

    Raises `Invalid` (cursor) for one that this list did not give out.
    """
    found = sorted(items, key=key)
    back, edge = _read_key(cursor) if cursor else (False, None)
    if edge is not None:
        found = [one for one in found if (key(one) < edge if back else key(one) > edge)]
    page = found[-size:] if back else found[:size]
    if not page:
        return [], "", ""
    more = len(found) > size
    before = _packed(1, *key(page[0])) if (more if back else edge is not None) else ""
    after = _packed(0, *key(page[-1])) if back or more else ""
    return page, before, after


def counted(rows: QuerySet[Row], most: int) -> int:
    """How many there are; `most` + 1 where there are more than that. Costs no more than that."""
    return rows.order_by().values("pk")[: most + 1].count()


def _sorted(rows: QuerySet[Row], order: Order, back: bool) -> QuerySet[Row]:
    down = order.descending != back
    tie = "-pk" if down else "pk"
    if order.field == "pk":
        return rows.order_by(tie)
    column = F(order.field)
    if not _nullable(rows.model, order.field):
        return rows.order_by(column.desc() if down else column.asc(), tie)
    nulls = {"nulls_first": True} if back else {"nulls_last": True}
    return rows.order_by(column.desc(**nulls) if down else column.asc(**nulls), tie)


def _beyond(order: Order, edge: Edge) -> Q:
    """Rows after the edge in the direction of reading."""
    down = order.descending != edge.back
    further = Q(pk__lt=edge.pk) if down else Q(pk__gt=edge.pk)
    field = order.field
    if field == "pk":
        return further
    if edge.value is None:
        alike = Q(**{f"{field}__isnull": True}) & further
        return alike | Q(**{f"{field}__isnull": False}) if edge.back else alike
    # Written so that an index on (field, pk) gives the place to start from.
    reached = Q(**{f"{field}__{'lte' if down else 'gte'}": edge.value})
    found = reached & (~Q(**{field: edge.value}) | further)
    return found if edge.back else found | Q(**{f"{field}__isnull": True})


def _nullable(model: type[Model], field: str) -> bool:
    return bool(model._meta.get_field(field).null)


def _write(order: Order, row: Model, *, back: bool) -> str:
    value = None if order.field == "pk" else getattr(row, order.field)
    if isinstance(value, datetime):
        value = value.isoformat()
    return _packed(int(back), order.field, value, row.pk)


def _packed(*parts: Any) -> str:
    text = json.dumps(parts, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _read(model: type[Model], order: Order, cursor: str) -> Edge:
    refused = _refused()
    try:
        back, field, value, pk = _unpacked(cursor)
        if field != order.field or type(pk) not in (int, str) or back not in (0, 1):
            raise refused
        pk = model._meta.pk.to_python(pk)
        if value is not None:
            column: Any = model._meta.get_field(field)
            value = column.to_python(value)
    except (ValueError, TypeError, binascii.Error, ValidationError) as error:
        raise refused from error
    odd = isinstance(value, datetime) and value.tzinfo is None
    large = isinstance(pk, int) and not -(2**63) <= pk < 2**63
    if odd or large or "\x00" in f"{value}{pk}":
        raise refused
    return Edge(bool(back), value, pk)


def _read_key(cursor: str) -> tuple[bool, tuple[str, ...]]:
    try:
        back, *key = _unpacked(cursor)
    except (ValueError, TypeError, binascii.Error) as error:
        raise _refused() from error
    if back not in (0, 1) or not all(isinstance(one, str) for one in key):
        raise _refused()
    return bool(back), tuple(key)


def _unpacked(cursor: str) -> Any:
    if len(cursor) > LONGEST_CURSOR:
        raise _refused()
    padded = cursor + "=" * (-len(cursor) % 4)
    return json.loads(base64.urlsafe_b64decode(padded.encode("ascii")))


def _refused() -> Invalid:
    return Invalid(
        "No such page.", fields={"cursor": "Take the cursor of this list's own next or previous."}
    )
