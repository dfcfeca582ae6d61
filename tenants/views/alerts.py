"""Alerts: the bell of a person, one alert, and where the platform has alerts told."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from portal.alerts import bell, channels
from portal.alerts.models import MEDIA, SEVERITIES, Channel, Delivery, Route, Silence
from portal.alerts.raising import take_on
from portal.alerts.rules import Match, Medium, Severity
from portal.errors import Invalid
from portal.request_ids import request_id_of
from portal.ui.forms import blame
from tenants.access import PlatformAccess, platform_access, tenant_for
from tenants.alerts import viewer_of
from tenants.models import Tenant, User
from tenants.people import names_of
from tenants.policy import PlatformAct

PAGE_SIZE = 50
CLASSES = ["retryable", "not retryable", "needs cleanup", "unknown"]
TABS = {"open": "Open", "over": "Over"}


class ChannelForm(forms.Form):
    """Where alerts can be told."""

    name = forms.CharField(max_length=60, help_text="As people call it, such as on-call.")
    medium = forms.ChoiceField(label="By", choices=MEDIA)
    address = forms.CharField(
        max_length=500, help_text="https://… of a webhook, or one mail address."
    )


class MatchForm(forms.Form):
    """Which alerts are meant."""

    code = forms.CharField(max_length=64, required=False, help_text="Empty: any.")
    failure_class = forms.ChoiceField(
        label="Class", required=False, choices=[("", "any"), *((one, one) for one in CLASSES)]
    )
    tenant = forms.ChoiceField(required=False)
    least = forms.ChoiceField(label="At least", choices=SEVERITIES, initial=Severity.WARNING.value)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        tenants = Tenant.objects.exclude(state=Tenant.State.CLOSED).values_list("slug", "name")
        self.fields["tenant"].choices = [("", "any"), *tenants]  # type: ignore[attr-defined]

    def match(self) -> Match:
        asked = self.cleaned_data
        return Match(
            asked["code"].strip().upper(),
            asked["failure_class"],
            asked["tenant"],
            Severity(asked["least"]),
        )


class RouteForm(MatchForm):
    """Which alerts are told where, and where next."""

    channel = forms.ModelChoiceField(queryset=Channel.objects.none(), label="Tell")
    then = forms.ModelChoiceField(
        queryset=Channel.objects.none(),
        required=False,
        label="If nobody takes it on, tell",
        empty_label="nobody else",
    )
    minutes = forms.IntegerField(
        label="After minutes", required=False, min_value=1, max_value=2 * 24 * 60
    )
    tells_end = forms.BooleanField(required=False, initial=True, label="Tell when it is over")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in ("channel", "then"):
            self.fields[name].queryset = Channel.objects.filter(removed_at=None)  # type: ignore[attr-defined]


class SilenceForm(MatchForm):
    """Which alerts are not told for a while, and why."""

    reason = forms.CharField(max_length=200, label="Why")
    hours = forms.IntegerField(min_value=1, max_value=30 * 24, initial=2, label="For hours")


@require_safe
@login_required
def alerts(request: HttpRequest) -> HttpResponse:
    """One's bell; looking at what is open puts its count back to nothing."""
    user, now = _user(request), timezone.now()
    tab = request.GET.get("tab", "open")
    tab = tab if tab in TABS else "open"
    rows = bell.visible_to(viewer_of(user)).filter(over_at__isnull=tab == "open")
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    people = names_of(row.taken_by for row in page if row.taken_by)
    if tab == "open" and not user.viewing:
        bell.looked(user.person, now)
    listed = [(row, people.get(row.taken_by, "")) for row in page]
    context = {"page": page, "rows": listed, "tab": tab, "tabs": TABS, "now": now}
    return render(request, "tenants/alerts.html", context)


@require_safe
@login_required
def bell_of(request: HttpRequest, slug: str) -> HttpResponse:
    """The bell of the top bar, for pages that heard of a change."""
    return render(request, "portal/_bell.html", {"access": tenant_for(request.user, slug)})


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def alert(request: HttpRequest, public_id: str) -> HttpResponse:
    """One alert; a POST takes it on."""
    user = _user(request)
    row = get_object_or_404(bell.visible_to(viewer_of(user)), public_id=public_id)
    if request.method == "POST":
        take_on(row, user.person, now=timezone.now())
        return redirect("alert", public_id=public_id)
    platform = viewer_of(user).platform
    context = {
        "alert": row,
        "taken_by": names_of([row.taken_by]).get(row.taken_by, "") if row.taken_by else "",
        "deliveries": row.deliveries.select_related("channel") if platform else [],
        "now": timezone.now(),
    }
    return render(request, "tenants/alert.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def telling(request: HttpRequest) -> HttpResponse:
    """Channels, routes and silences; a POST makes the one that `make` names."""
    access, now = platform_access(request.user), timezone.now()
    made = request.POST.get("make", "")
    bound = {name: request.POST if made == name else None for name in _MAKERS}
    kept = {
        "channel": ChannelForm(bound["channel"], prefix="channel"),
        "route": RouteForm(bound["route"], prefix="route"),
        "silence": SilenceForm(bound["silence"], prefix="silence"),
    }
    secret = ""
    if request.method == "POST" and made in kept:
        access.require(PlatformAct.RUN_ALERTS)
        form = kept[made]
        if form.is_valid():
            try:
                secret = _MAKERS[made](form, access, request)
            except Invalid as refused:
                blame(form, refused.fields)
            else:
                if not secret:
                    messages.success(request, f"The {made} is made.")
                    return redirect("alert-telling")
    context = {
        "forms": kept,
        "secret": secret,
        "channels": Channel.objects.filter(removed_at=None),
        "routes": Route.objects.select_related("channel", "then"),
        "silences": Silence.objects.filter(until__gt=now),
        "why_not": access.why_not(PlatformAct.RUN_ALERTS),
        "now": now,
    }
    failed = request.method == "POST" and not secret
    response = render(request, "tenants/alert_telling.html", context, status=422 if failed else 200)
    response["Cache-Control"] = "no-store"
    return response


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def channel(request: HttpRequest, public_id: str) -> HttpResponse:
    """One channel with its log; a POST changes its secret, removes it, or tells something again."""
    access, now = platform_access(request.user), timezone.now()
    row = get_object_or_404(Channel, public_id=public_id)
    secret = ""
    if request.method == "POST":
        access.require(PlatformAct.RUN_ALERTS)
        act, by = request.POST.get("act", ""), _by(access, request)
        if act == "remove" and row.removed_at is None:
            channels.remove_channel(row, **by)
            messages.success(request, "Nothing is told there any more.")
            return redirect("alert-telling")
        if act == "secret" and row.medium == Medium.WEBHOOK and row.removed_at is None:
            secret = channels.rotate(row, **by)
        elif act == "again":
            told = get_object_or_404(row.deliveries, message_id=_uuid(request.POST.get("message")))
            channels.tell_again(told, **by)
            messages.success(request, "It is told once more.")
            return redirect("alert-channel", public_id=public_id)
    log = Delivery.objects.filter(channel=row).select_related("alert")
    context = {
        "channel": row,
        "secret": secret,
        "page": Paginator(log, PAGE_SIZE).get_page(request.GET.get("page")),
        "why_not": access.why_not(PlatformAct.RUN_ALERTS),
        "now": now,
    }
    response = render(request, "tenants/alert_channel.html", context)
    response["Cache-Control"] = "no-store"
    return response


@require_POST
@login_required
def remove_route(request: HttpRequest, pk: int) -> HttpResponse:
    """Ends a route."""
    access = platform_access(request.user)
    access.require(PlatformAct.RUN_ALERTS)
    channels.remove_route(get_object_or_404(Route, pk=pk), **_by(access, request))
    return redirect("alert-telling")


@require_POST
@login_required
def lift_silence(request: HttpRequest, public_id: str) -> HttpResponse:
    """Ends a silence early."""
    access = platform_access(request.user)
    access.require(PlatformAct.RUN_ALERTS)
    channels.lift(get_object_or_404(Silence, public_id=public_id), **_by(access, request))
    return redirect("alert-telling")


def _make_channel(form: forms.Form, access: PlatformAccess, request: HttpRequest) -> str:
    asked = form.cleaned_data
    made = channels.add_channel(
        name=asked["name"],
        medium=Medium(asked["medium"]),
        address=asked["address"],
        **_by(access, request),
    )
    return made.secrets[0] if made.secrets else ""


def _make_route(form: RouteForm, access: PlatformAccess, request: HttpRequest) -> str:
    asked = form.cleaned_data
    minutes = asked["minutes"]
    try:
        channels.add_route(
            match=form.match(),
            channel=asked["channel"],
            then=asked["then"],
            after=timedelta(minutes=minutes) if minutes else None,
            tells_end=asked["tells_end"],
            **_by(access, request),
        )
    except Invalid as refused:
        refused.fields["minutes"] = refused.fields.pop("after")
        raise
    return ""


def _make_silence(form: SilenceForm, access: PlatformAccess, request: HttpRequest) -> str:
    asked, by = form.cleaned_data, _by(access, request)
    until = by["now"] + timedelta(hours=asked["hours"])
    channels.silence(match=form.match(), reason=asked["reason"], until=until, **by)
    return ""


_MAKERS: dict[str, Any] = {
    "channel": _make_channel,
    "route": _make_route,
    "silence": _make_silence,
}


def _by(access: PlatformAccess, request: HttpRequest) -> dict[str, Any]:
    return {
        "person": access.user.person,
        "request_id": request_id_of(request),
        "now": timezone.now(),
    }


def _uuid(text: str | None) -> str:
    """A message's id as it was sent, or one that no message has."""
    try:
        return str(forms.UUIDField().clean(text))
    except forms.ValidationError:
        return "00000000-0000-0000-0000-000000000000"


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user
