"""Strategies and the freeze calendar: what plans are made of, and when nothing starts."""

from __future__ import annotations

from datetime import time, timedelta
from typing import Any, Final

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from migrationplan.models import CalendarFreeze, Strategy
from migrationplan.phases import Audience
from migrationplan.plans import calendar, strategies
from migrationplan.plans.wishes import WaveWish, wish_from_json, words_of
from migrationplan.views.plan_forms import (
    CalendarForm,
    NewStrategyForm,
    StrategyForm,
    WaveForms,
)
from migrationplan.windows import Window
from portal.errors import Invalid, Outdated
from portal.request_ids import request_id_of
from portal.ui.forms import blame
from tenants.access import platform_access
from tenants.people import names_of
from tenants.policy import PlatformAct

PAGE_SIZE: Final = 50
NIGHTS: Final = (Window(frozenset({0, 1, 2, 3}), time(22), time(4), "UTC"),)
#: What a new strategy proposes: a canary, retryable work, then the rest.
PROPOSED: Final = (
    WaveWish("Canary", percent=5, windows=NIGHTS),
    WaveWish("Retryable work", percent=30, audience=Audience.RETRYABLE, windows=NIGHTS),
    WaveWish("The rest", percent=100, windows=NIGHTS, soak=timedelta(hours=24), rehearsed_days=30),
)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def strategies_list(request: HttpRequest) -> HttpResponse:
    """All strategies; a POST makes one."""
    access = platform_access(request.user)
    form = NewStrategyForm(request.POST or None)
    waves = WaveForms(request.POST or None, PROPOSED)
    if request.method == "POST" and form.is_valid() and waves.is_valid():
        try:
            made = strategies.define(
                form.cleaned_data["slug"],
                name=form.cleaned_data["name"],
                words=form.cleaned_data["words"],
                waves=waves.wishes(),
                access=access,
                request_id=request_id_of(request),
                now=timezone.now(),
            )
        except Invalid as refused:
            _say(form, refused)
        else:
            messages.success(request, f"{made.name} is a strategy now.")
            return redirect("strategy", slug=made.slug)
    context = {
        "rows": list(Strategy.objects.all()),
        "form": form,
        "waves": waves,
        "why_not": access.why_not(PlatformAct.CONVERT),
        "now": timezone.now(),
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "migrationplan/plan_strategies.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def strategy(request: HttpRequest, slug: str) -> HttpResponse:
    """One strategy; a POST changes it for plans to come."""
    access = platform_access(request.user)
    found = get_object_or_404(Strategy, slug=slug)
    wishes = [wish_from_json(one) for one in found.waves]
    form = StrategyForm(request.POST or None, initial={"name": found.name, "words": found.words})
    waves = WaveForms(request.POST or None, wishes)
    if request.method == "POST" and form.is_valid() and waves.is_valid():
        try:
            strategies.change(
                found,
                **form.cleaned_data,
                waves=waves.wishes(),
                revision=int(request.POST.get("revision") or 0),
                access=access,
                request_id=request_id_of(request),
                now=timezone.now(),
            )
        except (Invalid, Outdated) as refused:
            _say(form, refused)
        else:
            messages.success(request, "The strategy is changed.")
            return redirect("strategy", slug=slug)
    context = {
        "strategy": found,
        "wishes": [(one, words_of(one, [])) for one in wishes],
        "form": form,
        "waves": waves,
        "why_not": access.why_not(PlatformAct.CONVERT),
        "now": timezone.now(),
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "migrationplan/plan_strategy.html", context, status=status)


@require_POST
@login_required
def strategy_remove(request: HttpRequest, slug: str) -> HttpResponse:
    """Forgets one; plans keep their waves."""
    access = platform_access(request.user)
    found = get_object_or_404(Strategy, slug=slug)
    strategies.remove(found, access=access, request_id=request_id_of(request), now=timezone.now())
    messages.success(request, f"{found.name} is no strategy any more.")
    return redirect("strategies")


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def plan_calendar(request: HttpRequest) -> HttpResponse:
    """The freeze calendar; a POST enters a time."""
    access = platform_access(request.user)
    form = CalendarForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made = calendar.enter(
                **form.cleaned_data,
                access=access,
                request_id=request_id_of(request),
                now=timezone.now(),
            )
        except Invalid as refused:
            _say(form, refused)
        else:
            messages.success(request, f"No node starts then: {made.reason}.")
            return redirect("plan-calendar")
    now = timezone.now()
    rows = CalendarFreeze.objects.order_by("-ends_at")
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    people = names_of(one.made_by for one in page)
    context = {
        "page": page,
        "rows": [(one, people[one.made_by], _state(one)) for one in page],
        "form": form,
        "why_not": access.why_not(PlatformAct.FREEZE),
        "now": now,
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "migrationplan/plan_calendar.html", context, status=status)


@require_POST
@login_required
def calendar_remove(request: HttpRequest, public_id: str) -> HttpResponse:
    """It counts no more."""
    access = platform_access(request.user)
    found = get_object_or_404(CalendarFreeze, public_id=public_id)
    calendar.remove(found, access=access, request_id=request_id_of(request), now=timezone.now())
    messages.success(request, f"{found.reason} counts no more.")
    return redirect("plan-calendar")


def _state(one: CalendarFreeze) -> str:
    now = timezone.now()
    if one.removed_at is not None:
        return "removed"
    if one.ends_at <= now:
        return "over"
    return "now" if one.begins_at <= now else "to come"


def _say(form: forms.Form, refused: Invalid | Outdated) -> None:
    fields: dict[str, Any] = refused.fields if isinstance(refused, Invalid) else {}
    blame(form, fields)
    if not fields:
        form.add_error(None, refused.message)
