"""Saved views of claim lists: own ones, and those shared with everybody who sees the list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet
from django.utils.text import slugify

from devices.asks.claimlist import PARAMETERS, kept, search_from
from devices.models import SavedView
from portal.audit.record import record
from portal.errors import Invalid
from tenants.access import Access, PlatformAccess
from tenants.models import Tenant
from tenants.policy import Act, PlatformAct

Viewer = Access | PlatformAccess

LONGEST_NAME = 60
LONGEST_SLUG = 40
MOST = 50
"""So many own views, and so many shared ones, has a list at most."""


def visible(access: Viewer) -> QuerySet[SavedView]:
    """The views that somebody can open on one list, by name; own ones before shared ones."""
    mine = Q(owner=access.user.person) | Q(shared=True)
    return SavedView.objects.filter(mine, tenant=_tenant(access)).order_by("shared", "name", "pk")


def named(views: Sequence[SavedView], slug: str) -> SavedView:
    """The view that `view=` means: one's own, else the shared one. Raises `Invalid` (view)."""
    for view in views:
        if view.slug == slug:
            return view
    known = ", ".join(sorted({view.slug for view in views})) or "none yet"
    raise Invalid("There is no such view.", fields={"view": f"One of: {known}."})


def opening(views: Sequence[SavedView]) -> SavedView | None:
    """What the list shows where nothing is asked for: one's own choice, else the shared one."""
    return next((view for view in views if view.opens_first), None)


@transaction.atomic
def save_view(
    *,
    access: Viewer,
    name: str,
    query: Mapping[str, str],
    shared: bool,
    opens_first: bool,
    request_id: str,
    now: datetime,
) -> SavedView:
    """Keeps a list's filters and order under a name; the same name again replaces it.

    Raises `NotPermitted`, `Invalid` (name, query and what `search_from` refuses).
    """
    _require(access, shared)
    name = " ".join(name.split())
    slug = slugify(name)[:LONGEST_SLUG].strip("-")
    wrong = {}
    if not slug or len(name) > LONGEST_NAME:
        wrong["name"] = f"Give 1 to {LONGEST_NAME} characters, some of them letters or digits."
    if strange := sorted(set(query) - set(PARAMETERS)):
        wrong["query"] = f"A list has no {', '.join(strange)}; it has {', '.join(PARAMETERS)}."
    if wrong:
        raise Invalid("Nothing was saved.", fields=wrong)
    search_from(query)
    places = _places(access, shared)
    others = places.exclude(slug=slug)
    if others.count() >= MOST:
        raise Invalid("Nothing was saved.", fields={"name": f"Remove one of the {MOST} first."})
    if opens_first:
        others.update(opens_first=False)
    view, _ = SavedView.objects.update_or_create(
        tenant=_tenant(access),
        shared=shared,
        slug=slug,
        **({} if shared else {"owner": access.user.person}),
        defaults={
            "name": name,
            "query": kept(query),
            "opens_first": opens_first,
            "made_at": now,
        },
        create_defaults={
            "owner": access.user.person,
            "name": name,
            "query": kept(query),
            "opens_first": opens_first,
            "made_at": now,
        },
    )
    if shared:
        _record("view.shared", view, access, request_id, now, view.query)
    return view


@transaction.atomic
def forget_view(*, access: Viewer, slug: str, shared: bool, request_id: str, now: datetime) -> None:
    """Removes a view; twice is fine. Raises `NotPermitted`."""
    _require(access, shared)
    view = _places(access, shared).filter(slug=slug).first()
    if view is None:
        return
    view.delete()
    if shared:
        _record("view.removed", view, access, request_id, now, view.query)


def _places(access: Viewer, shared: bool) -> QuerySet[SavedView]:
    """The shared views of a list, or somebody's own there."""
    rows = SavedView.objects.filter(tenant=_tenant(access), shared=shared)
    return rows if shared else rows.filter(owner=access.user.person)


def _require(access: Viewer, shared: bool) -> None:
    """Whoever sees the list keeps views of their own; sharing them is an act of its own."""
    if not shared:
        return
    if isinstance(access, Access):
        access.require(Act.SHARE_VIEWS)
    else:
        access.require(PlatformAct.SHARE_VIEWS)


def _tenant(access: Viewer) -> Tenant | None:
    return access.tenant if isinstance(access, Access) else None


def _record(
    action: str,
    view: SavedView,
    access: Viewer,
    request_id: str,
    now: datetime,
    query: Mapping[str, str],
) -> None:
    record(
        action=action,
        subject=f"view {view.slug}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        tenant=view.tenant.slug if view.tenant else "",
        facts={"name": view.name, "query": dict(query)},
    )
