"""What a list of claims shows beside its rows: filters, saved views, order, and ways on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest

from devices.asks.claimlist import (
    ALL,
    COUNTED,
    ME,
    NEVER,
    OPEN,
    PARAMETERS,
    Search,
    asks_for_something,
    found,
    search_from,
)
from devices.asks.savedviews import Viewer, named, opening, visible
from devices.dra.lifecycle import State
from devices.models import Claim, ClaimTemplate, Offer, SavedView
from devices.models.claim import ClaimQuerySet
from devices.tenancy.spending import class_names
from portal.errors import Invalid
from portal.keyset import Slice, counted, cut
from portal.ui.statuses import status_of
from tenants.access import Access
from tenants.models import Membership, Tenant

PAGE_SIZE = 50
Options = list[tuple[str, str]]

SORTS: Options = [
    ("newest", "Newest first"),
    ("oldest", "Oldest first"),
    ("name", "Name, A to Z"),
    ("-name", "Name, Z to A"),
    ("state", "State"),
    ("waiting", "Longest in its state"),
    ("-waiting", "Changed last"),
    ("ends", "Ends first"),
]
AGES: Options = [
    ("under-24h", "in the last day"),
    ("under-7d", "in the last week"),
    ("under-30d", "in the last month"),
    ("over-7d", "over a week ago"),
    ("over-30d", "over a month ago"),
    ("over-90d", "over three months ago"),
]
ENDS: Options = [("24h", "within a day"), ("7d", "within a week"), ("30d", "within a month")]


@dataclass(frozen=True, slots=True)
class Filter:
    """One question of the list; `value` is the answer given, empty where none is."""

    name: str
    label: str
    any: str
    options: Options
    value: str

    @property
    def said(self) -> str:
        """The answer in words."""
        return dict(self.options).get(self.value, self.value)


@dataclass(frozen=True, slots=True)
class Tag:
    """A filter in force, and the address of the list without it."""

    text: str
    without: str


@dataclass(frozen=True, slots=True)
class Listing:
    """The list as the page draws it."""

    search: Search
    slice: Slice[Claim]
    total: int
    filters: list[Filter]
    tags: list[Tag]
    views: Sequence[SavedView]
    view: SavedView | None
    asked: dict[str, str]
    wrong: dict[str, str] = field(default_factory=dict)

    @property
    def address(self) -> str:
        """What of the address stands for this list; never empty, so that it stays what it is."""
        return urlencode(self.asked)

    @property
    def more(self) -> bool:
        """Whether there are more than anybody counts."""
        return self.total > COUNTED

    def sorted_by(self, sort: str) -> str:
        """The same list in another order."""
        return urlencode({**self.asked, "sort": sort})


def listing(request: HttpRequest, access: Viewer, rows: ClaimQuerySet, now: datetime) -> Listing:
    """What the address asks for, over what its saved view says. A constant number of queries.

    What makes no sense is said in `wrong` and finds nothing.
    """
    views = list(visible(access))
    view, wrong = None, {}
    try:
        if slug := request.GET.get("view", ""):
            view = named(views, slug)
        elif not asks_for_something(request.GET):
            view = opening(views)
        given = {**(view.query if view else {}), **_given(request.GET)}
        search = search_from(given, state=OPEN)
        fitting = fitting_for(access, search, rows, now)
        cursor = request.GET.get("cursor", "")
        page = cut(fitting.whole(), search.order, PAGE_SIZE, cursor)
        # All that fit are on the first page: counting would look for them once more.
        whole = not cursor and not page.after
        total = len(page.rows) if whole else counted(fitting, COUNTED)
    except Invalid as refused:
        wrong, given, search = refused.fields, {}, Search(state=OPEN)
        page, total = Slice((), "", ""), 0
    asked = {name: text for name in PARAMETERS if (text := given.get(name, ""))}
    asked["state"] = search.state
    filters = _filters(access, asked)
    return Listing(search, page, total, filters, _tags(filters, asked), views, view, asked, wrong)


def fitting_for(
    access: Viewer, search: Search, rows: ClaimQuerySet, now: datetime
) -> ClaimQuerySet:
    """Those that fit, as far as the viewer may look into them: notes are their tenant's."""
    notes = isinstance(access, Access)
    return found(search, rows, me=access.user.person, now=now, notes=notes)


def _given(parameters: Mapping[str, str]) -> dict[str, str]:
    return {name: parameters[name].strip() for name in PARAMETERS if name in parameters}


def _filters(access: Viewer, asked: Mapping[str, str]) -> list[Filter]:
    names = class_names()
    classes = sorted(set(Offer.objects.values_list("device_class", flat=True)) | set(names))
    states = [(OPEN, "Open"), *[(str(one), status_of(one).word) for one in State]]
    questions: list[tuple[str, str, str, Options]] = [
        ("state", "State", "", [*states, (ALL, "Open and released")]),
        ("class", "Class", "Any class", [(name, names.get(name, name)) for name in classes]),
    ]
    if isinstance(access, Access):
        places = access.tenant.namespaces.values_list("name", flat=True)
        people = Membership.objects.filter(tenant=access.tenant).select_related("user")
        asked_by = sorted(member.user.username for member in people)
        questions += [
            ("namespace", "Namespace", "Any namespace", [(name, name) for name in places]),
            ("by", "Asked by", "Anybody", [(ME, "Me"), *[(name, name) for name in asked_by]]),
        ]
    else:
        tenants = Tenant.objects.values_list("slug", "name")
        questions.append(("tenant", "Tenant", "Any tenant", list(tenants)))
    used = ClaimTemplate.objects.filter(pk__in=_templates_used(access)).values_list("slug", "name")
    questions += [
        ("template", "Template", "Any template", list(used)),
        ("age", "Asked", "at any time", AGES),
        ("ends", "Ends", "whenever", [*ENDS, (NEVER, "never by itself")]),
        ("attention", "Attention", "Everything", [("yes", "Needs attention")]),
        ("sort", "Order", "", SORTS),
    ]
    return [
        Filter(name, label, anything, _with(options, asked.get(name, "")), asked.get(name, ""))
        for name, label, anything, options in questions
    ]


def _with(options: Options, value: str) -> Options:
    """The options, and what the address says where it is none of them: it is not lost."""
    known = not value or value in dict(options)
    return options if known else [*options, (value, value)]


def _tags(filters: Sequence[Filter], asked: Mapping[str, str]) -> list[Tag]:
    """What narrows the list, each to be taken off by itself."""
    narrowing = [one for one in filters if one.value and one.name not in {"state", "sort"}]
    tags = [Tag(f"{one.label}: {one.said}", _without(asked, one.name)) for one in narrowing]
    if q := asked.get("q"):
        tags.insert(0, Tag(f"“{q}”", _without(asked, "q")))
    return tags


def _without(asked: Mapping[str, str], name: str) -> str:
    return urlencode({key: text for key, text in asked.items() if key != name})


def _templates_used(access: Viewer) -> Any:
    """Templates that the list has claims of: another tenant's own are nobody else's business."""
    rows = Claim.objects.all()
    if isinstance(access, Access):
        rows = Claim.objects.of(access.tenant)
    return rows.order_by().values("version__template").distinct()
