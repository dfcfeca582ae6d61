"""The audit: for auditors all of it, for a tenant's owners their tenant's; search and export."""

from __future__ import annotations

import re
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from portal.audit.export import KINDS, texts
from portal.audit.record import record
from portal.audit.search import Search, chunks, page
from portal.exports import streamed
from portal.request_ids import request_id_of
from tenants.access import platform_access, tenant_for
from tenants.models import User
from tenants.people import names_of
from tenants.policy import Act, PlatformAct

DIGEST = re.compile(r"[0-9a-f]{64}")


class SearchForm(forms.Form):
    """What to look for; everything is optional."""

    actor = forms.CharField(required=False, max_length=150)
    action = forms.CharField(required=False, max_length=64)
    subject = forms.CharField(required=False, max_length=320)
    request_id = forms.CharField(required=False, max_length=64, label="Request id")
    tenant = forms.CharField(required=False, max_length=63)
    source = forms.ChoiceField(
        required=False,
        choices=[("", "Acts and sightings"), ("berth", "Acts"), ("cluster", "Seen in the cluster")],
    )
    since = forms.DateTimeField(
        required=False,
        label="From",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )
    until = forms.DateTimeField(
        required=False,
        label="Until",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )

    def search(self, tenant: str | None) -> Search | None:
        """What was asked for, or None where nobody can fit it; `tenant` narrows whoever asks."""
        asked = self.cleaned_data
        person = None
        if asked["actor"]:
            user = User.objects.filter(username=asked["actor"]).first()
            if user is None:
                return None
            person = user.person
        return Search(
            tenant=tenant if tenant is not None else asked["tenant"] or None,
            person=person,
            action=asked["action"].strip(),
            subject=asked["subject"].strip(),
            request_id=asked["request_id"].strip(),
            source=asked["source"],
            since=asked["since"],
            until=asked["until"],
        )


@require_safe
@login_required
def tenant_audit(request: HttpRequest, slug: str) -> HttpResponse:
    """A tenant's own lines, for its owners."""
    access = tenant_for(request.user, slug)
    access.require(Act.READ_AUDIT)
    return _list(request, slug, {"access": access})


@require_safe
@login_required
def whole_audit(request: HttpRequest) -> HttpResponse:
    """Every line, for auditors."""
    platform_access(request.user).require(PlatformAct.READ_AUDIT)
    return _list(request, None, {})


@require_safe
@login_required
def tenant_export(request: HttpRequest, slug: str) -> HttpResponseBase:
    """A tenant's own lines that fit the search, as a file."""
    tenant_for(request.user, slug).require(Act.READ_AUDIT)
    return _export(request, slug)


@require_safe
@login_required
def whole_export(request: HttpRequest) -> HttpResponseBase:
    """Every line that fits the search, as a file."""
    platform_access(request.user).require(PlatformAct.READ_AUDIT)
    return _export(request, None)


def export(request: HttpRequest, search: Search | None, kind: str) -> HttpResponseBase:
    """The file, and an audit line that says who took it; shared with the API."""
    now = timezone.now()
    tenant = (search.tenant if search else None) or ""
    assert isinstance(request.user, User)
    with transaction.atomic():
        record(
            action="audit.exported",
            subject=f"audit {tenant or 'of the platform'}",
            request_id=request_id_of(request),
            at=now,
            person=request.user.person,
            tenant=tenant,
            facts={"format": kind, "search": request.META.get("QUERY_STRING", "")[:500]},
        )
    pieces = chunks(search) if search else iter(())
    name = f"audit-{tenant or 'platform'}-{now:%Y%m%dT%H%M}"
    return streamed(request, texts(pieces, kind, names_of), kind=kind, name=name)


def _list(request: HttpRequest, tenant: str | None, context: dict[str, Any]) -> HttpResponse:
    form = SearchForm(request.GET)
    search = form.search(tenant) if form.is_valid() else None
    shown = (
        page(search, before=_number(request, "before"), after=_number(request, "after"))
        if search
        else None
    )
    lines = shown.lines if shown else ()
    names = names_of(line.person for line in lines)
    kept = request.GET.copy()
    for key in ("before", "after"):
        kept.pop(key, None)
    context |= {
        "form": form,
        "shown": shown,
        "rows": [(line, names[line.person], _facts(line.facts)) for line in lines],
        "whole": tenant is None,
        "searched": any(kept.values()),
        "kept": kept.urlencode(),
        "formats": list(KINDS),
    }
    return render(request, "tenants/audit.html", context, status=200 if form.is_valid() else 422)


def _export(request: HttpRequest, tenant: str | None) -> HttpResponseBase:
    form = SearchForm(request.GET)
    kind = request.GET.get("format", "jsonl")
    search = form.search(tenant) if form.is_valid() else None
    return export(request, search, kind if kind in KINDS else "jsonl")


def _number(request: HttpRequest, key: str) -> int | None:
    text = request.GET.get(key, "")
    return int(text) if text.isdecimal() and len(text) < 19 else None


def _facts(facts: dict[str, Any]) -> str:
    """The facts of a line in one line of text."""
    return ", ".join(
        f"{key.replace('_', ' ')}: {_short(value) if isinstance(value, str) else _plain(value)}"
        for key, value in facts.items()
        if value not in (None, "", [], {})
    )


def _short(text: str) -> str:
    """A digest by its beginning, as people compare it; everything else as it is."""
    return f"{text[:12]}…" if DIGEST.fullmatch(text) else text


def _plain(value: Any) -> str:
    """Words for what JSON holds; what is empty or not so within a group is left out."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        said = [
            f"{key.replace('_', ' ')} {_plain(one)}"
            for key, one in value.items()
            if one not in (None, "", [], {}, False)
        ]
        return f"({', '.join(said)})"
    if isinstance(value, list):
        return " ".join(_plain(one) for one in value)
    return str(int(value) if isinstance(value, float) and value.is_integer() else value)
