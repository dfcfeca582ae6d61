"""Paths of new work: the operators' page, and what is set for a tenant."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from devices.models import ClaimTemplate, Offer, PluginResource, RouteRule
from devices.routing.rerouting import (
    ResourceNamed,
    end_route,
    forget_resource,
    name_resource,
    set_route,
)
from devices.routing.routes import Path
from portal.errors import Invalid
from portal.request_ids import request_id_of
from tenants.access import PlatformAccess, platform_access
from tenants.models import Tenant, User
from tenants.policy import PlatformAct

PAGE_SIZE = 50
MOMENT = {"type": "datetime-local"}


def _moment(label: str, help_text: str) -> forms.DateTimeField:
    widget = forms.DateTimeInput(attrs=MOMENT, format="%Y-%m-%dT%H:%M")
    return forms.DateTimeField(required=False, label=label, help_text=help_text, widget=widget)


class RouteForm(forms.Form):
    """Which class's new work goes where, for whom, why, and from when until when."""

    device_class = forms.ChoiceField(label="New work for")
    path = forms.ChoiceField(
        label="Goes by",
        choices=[(path.value, path.words[0].upper() + path.words[1:]) for path in Path],
    )
    tenant = forms.ChoiceField(label="Tenant", required=False)
    template = forms.ChoiceField(label="Template", required=False)
    reason = forms.CharField(
        max_length=240, label="Why", help_text="Whoever asks reads it beside the form."
    )
    starts_at = _moment("From", "In UTC; empty: at once.")
    until = _moment("Until", "In UTC. It ends by itself then; empty: until somebody ends it.")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        classes = Offer.objects.order_by("device_class").values_list("device_class", flat=True)
        tenants = Tenant.objects.exclude(state=Tenant.State.CLOSED).values_list("slug", "name")
        templates = ClaimTemplate.objects.order_by("name").values_list("slug", "name")
        for name, choices in (
            ("device_class", [(one, one) for one in classes]),
            ("tenant", [("", "All tenants"), *tenants]),
            ("template", [("", "Whatever template"), *templates]),
        ):
            self.fields[name].choices = choices  # type: ignore[attr-defined]


class ResourceForm(forms.Form):
    """Which class stands for a plugin's extended resource."""

    resource = forms.CharField(
        max_length=253, label="Extended resource", help_text="As Pods ask for it."
    )
    resource_class = forms.ChoiceField(label="Is this device class")
    selector = forms.CharField(
        required=False,
        label="Only devices for which",
        help_text="CEL, where the name means some devices of the class only; usually empty.",
        widget=forms.Textarea(attrs={"rows": 2, "spellcheck": "false", "class": "name"}),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        classes = Offer.objects.order_by("device_class").values_list("device_class", flat=True)
        self.fields["resource_class"].choices = [(one, one) for one in classes]  # type: ignore[attr-defined]


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def routes(request: HttpRequest) -> HttpResponse:
    """What is set and what was; a POST sets another path."""
    access = platform_access(request.user)
    form = RouteForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made = set_route(
                access=access,
                request_id=request_id_of(request),
                now=timezone.now(),
                **form.cleaned_data,
            )
        except Invalid as refused:
            _take(form, refused)
        else:
            words = f"New work for {made.words} goes by {made.way}."
            messages.success(request, words, extra_tags=request_id_of(request))
            return redirect("routes")
    return _page(request, access, form, ResourceForm())


@require_POST
@login_required
def route_end(request: HttpRequest, public_id: str) -> HttpResponse:
    """Ends a rule; asks without Pods follow."""
    access, request_id = platform_access(request.user), request_id_of(request)
    try:
        found = end_route(
            access=access, public_id=public_id, request_id=request_id, now=timezone.now()
        )
    except RouteRule.DoesNotExist as absent:
        raise Http404 from absent
    words = f"Nothing is set any more for {found.words} by that rule."
    messages.success(request, words, extra_tags=request_id)
    return redirect("routes")


@require_POST
@login_required
def resource_name(request: HttpRequest) -> HttpResponse:
    """Says what a plugin's resource stands for; comes back to the page."""
    access, form = platform_access(request.user), ResourceForm(request.POST)
    access.require(PlatformAct.ROUTE)
    if form.is_valid():
        data = {**form.cleaned_data, "device_class": form.cleaned_data["resource_class"]}
        del data["resource_class"]
        try:
            made = name_resource(
                access=access, request_id=request_id_of(request), now=timezone.now(), **data
            )
        except Invalid as refused:
            _take(form, refused, device_class="resource_class")
        except ResourceNamed as refused:
            form.add_error("resource", refused.message)
        else:
            messages.success(request, f"{made.resource} is {made.device_class} in claims.")
            return redirect("routes")
    return _page(request, access, RouteForm(), form)


@require_POST
@login_required
def resource_forget(request: HttpRequest, pk: int) -> HttpResponse:
    """Takes back what was said of a resource."""
    access = platform_access(request.user)
    found = PluginResource.objects.filter(pk=pk).first()
    if found is None:
        raise Http404
    forget_resource(
        access=access,
        resource=found.resource,
        request_id=request_id_of(request),
        now=timezone.now(),
    )
    messages.success(request, f"Nothing is said of {found.resource} any more.")
    return redirect("routes")


def _page(
    request: HttpRequest, access: PlatformAccess, form: RouteForm, naming: ResourceForm
) -> HttpResponse:
    now = timezone.now()
    page = Paginator(RouteRule.objects.all(), PAGE_SIZE).get_page(request.GET.get("page"))
    standing = list(RouteRule.objects.open().order_by("device_class", "pk"))
    context = {
        "access_platform": access,
        "form": form,
        "naming": naming,
        "page": page,
        "rows": named([*page.object_list]),
        "standing": named(standing),
        "resources": PluginResource.objects.all(),
        "why_not": access.why_not(PlatformAct.ROUTE),
        "now": now,
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "devices/routes.html", context, status=status)


def named(rows: list[RouteRule]) -> list[tuple[RouteRule, str, str]]:
    """Rules with the names of who set and who ended them; one query for all names."""
    people = {person for row in rows for person in (row.set_by, row.ended_by) if person}
    names = {user.person: user.words for user in User.objects.filter(person__in=people)}
    gone = "somebody who left"
    return [
        (
            row,
            names.get(row.set_by, gone),
            names.get(row.ended_by, gone) if row.ended_by else "",
        )
        for row in rows
    ]


def _take(form: forms.Form, refused: Invalid, **other: str) -> None:
    for name, text in refused.fields.items():
        form.add_error(other.get(name, name), text)
