"""Finding claims: what can be asked of a list, the same words in pages, saved views and API."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from django.db.models import Q

from devices.asks.lifetimes import SOON
from devices.dra.lifecycle import ENDED, State
from devices.models import Claim
from devices.models.claim import ClaimQuerySet
from portal.errors import Invalid
from portal.keyset import Order, cut
from tenants.models import User

#: What a list is asked for, in the order of its form; `tenant` on the platform's list alone.
PARAMETERS: Final = (
    "q", "state", "class", "namespace", "template", "by", "age", "ends", "attention", "sort",
    "tenant",
)  # fmt: skip
OPEN, ALL, ME, NEVER = "open", "all", "me", "never"
#: Asks that stand still and may need a person, the most urgent first.
URGENT: Final = (State.FAILED, State.PENDING, State.HELD)
#: More than so many are not counted: "more than 10,000" says enough.
COUNTED: Final = 10_000
CHUNK: Final = 1000
LONGEST: Final = 253

#: Word of `sort` → the column and which way.
ORDERS: Final[Mapping[str, Order]] = {
    "newest": Order("pk", descending=True),
    "oldest": Order("pk"),
    "name": Order("name"),
    "-name": Order("name", descending=True),
    "state": Order("state"),
    "-state": Order("state", descending=True),
    "waiting": Order("since"),
    "-waiting": Order("since", descending=True),
    "ends": Order("expires_at"),
    "-ends": Order("expires_at", descending=True),
}

_AGE = re.compile(r"(under|over)-(\d{1,4})([hd])")
_SPAN = re.compile(r"(\d{1,4})([hd])")


@dataclass(frozen=True, slots=True)
class Search:
    """What is looked for; empty does not narrow. `state` may be `open` or `all`."""

    q: str = ""
    state: str = ALL
    device_class: str = ""
    namespace: str = ""
    template: str = ""
    by: str = ""
    age: str = ""
    ends: str = ""
    attention: bool = False
    sort: str = "newest"
    tenant: str = ""

    @property
    def order(self) -> Order:
        return ORDERS[self.sort]


def refusals(given: Mapping[str, str]) -> dict[str, str]:
    """A sentence for each parameter that makes no sense; empty: all of them do."""
    return _read(given)[1]


def search_from(given: Mapping[str, str], *, state: str = ALL) -> Search:
    """Reads parameters as an address has them; `state` is what an absent one means.

    Raises `Invalid` with a sentence per parameter that makes no sense. A name that nothing has is
    no error: it finds nothing.
    """
    asked, wrong = _read(given)
    if wrong:
        raise Invalid("The list cannot be searched like that.", fields=wrong)
    return Search(
        q=asked["q"],
        state=asked["state"] or state,
        device_class=asked["class"],
        namespace=asked["namespace"],
        template=asked["template"],
        by=asked["by"],
        age=asked["age"],
        ends=asked["ends"],
        attention=asked["attention"] == "yes",
        sort=asked["sort"] or "newest",
        tenant=asked["tenant"],
    )


def _read(given: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """Every parameter without what stands around it, and what is wrong with which."""
    asked = {name: given.get(name, "").strip() for name in PARAMETERS}
    asked["q"] = asked["q"].replace("\x00", "").strip()  # people search for any text
    wrong = {
        name: "Leave out the NUL character." if "\x00" in text else f"At most {LONGEST} characters."
        for name, text in asked.items()
        if "\x00" in text or len(text) > LONGEST
    }
    states = [OPEN, ALL, *State]
    if asked["state"] and asked["state"] not in states:
        wrong["state"] = f"One of {', '.join(states)}."
    if asked["sort"] and asked["sort"] not in ORDERS:
        wrong["sort"] = f"One of {', '.join(ORDERS)}."
    if asked["age"] and not _AGE.fullmatch(asked["age"]):
        wrong["age"] = "Such as under-12h or over-7d."
    if asked["ends"] and asked["ends"] != NEVER and not _SPAN.fullmatch(asked["ends"]):
        wrong["ends"] = "Such as 24h or 7d for asks that end within that time, or never."
    if asked["attention"] not in {"", "yes", "no"}:
        wrong["attention"] = "yes or no."
    return asked, wrong


def found(
    search: Search, rows: ClaimQuerySet, *, me: UUID, now: datetime, notes: bool = True
) -> ClaimQuerySet:
    """Those of `rows` that fit, in no order. `me` is who looks; without `notes`, who may not read
    them does not find by them either.
    """
    if search.state == OPEN:
        rows = rows.open()
    elif search.state != ALL:
        rows = rows.filter(state=search.state)
    if search.q:
        # Names are lower-case by rule; notes are as people write them.
        named = Q(name__contains=search.q.lower()) | Q(public_id=search.q.lower())
        noted = ~Q(note="") & Q(note__icontains=search.q)
        rows = rows.filter(named | noted if notes else named)
    if search.device_class:
        rows = rows.filter(classes__contains=[search.device_class])
    if search.namespace:
        rows = rows.filter(namespace__name=search.namespace)
    if search.template:
        rows = rows.filter(version__template__slug=search.template)
    if search.by:
        # Looked up first: as a subquery the planner would walk through all claims for it.
        rows = rows.filter(asked_by=me if search.by == ME else _person(search.by))
    if search.age:
        way, number, unit = _AGE.fullmatch(search.age).groups()  # type: ignore[union-attr]
        moment = now - _span(number, unit)
        rows = rows.filter(
            **{"requested_at__gt" if way == "under" else "requested_at__lte": moment}
        )
    if search.ends == NEVER:
        rows = rows.filter(expires_at=None)
    elif search.ends:
        rows = rows.filter(
            expires_at__lte=now + _span(*_SPAN.fullmatch(search.ends).groups()),  # type: ignore[union-attr]
            released_at=None,
        )
    if search.attention:
        rows = rows.filter(needs_attention(now))
    if search.tenant:
        rows = rows.filter(tenant__slug=search.tenant)
    return rows


def needs_attention(now: datetime) -> Q:
    """Failed, pending or held, or ending soon."""
    near = Q(expires_at__lte=now + SOON, released_at=None) & ~Q(state__in=ENDED)
    return Q(state__in=URGENT) | near


def pieces(rows: ClaimQuerySet, order: Order) -> Iterator[tuple[Claim, ...]]:
    """All of them, piece by piece, each a query of its own, so that a long file holds nothing."""
    cursor = ""
    while True:
        piece = cut(rows, order, CHUNK, cursor)
        yield piece.rows
        if not (cursor := piece.after):
            return


def kept(given: Mapping[str, str]) -> dict[str, str]:
    """What of an address belongs to the list, without what is empty: a saved view's query."""
    return {name: text for name in PARAMETERS if (text := given.get(name, "").strip())}


def asks_for_something(given: Iterable[str]) -> bool:
    """Whether an address names any parameter, even an empty one."""
    return not {"view", *PARAMETERS}.isdisjoint(given)


def _person(username: str) -> UUID:
    """The person's id; one that nobody has where nobody is called that."""
    person = User.objects.filter(username=username).values_list("person", flat=True).first()
    return person or UUID(int=0)


def _span(number: str, unit: str) -> timedelta:
    return timedelta(hours=int(number)) if unit == "h" else timedelta(days=int(number))
