"""The platform's pages of tenants: all of them, one of them, its namespaces, adopting one."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Count, Prefetch, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from devices.models import Closure
from devices.tenancy.adoption import NotAdoptable, add_namespace, remove_namespace, survey_of
from devices.tenancy.closures import newest
from portal.errors import Invalid
from portal.request_ids import request_id_of
from portal.ui.forms import Card, RadioCards, blame
from tenants.access import PlatformAccess, platform_access
from tenants.founding import LONGEST_NAME, change_tenant, make_tenant
from tenants.models import Membership, Tenant
from tenants.policy import PlatformAct

PAGE_SIZE = 50
PLAIN_TEXT = {"autocomplete": "off", "spellcheck": "false"}
PRIORITIES = [(one.value, Card(one.label, one.words)) for one in Tenant.Priority]


class TenantForm(forms.Form):
    """A new tenant, with its first owner."""

    name = forms.CharField(max_length=LONGEST_NAME, help_text="As people say it.")
    slug = forms.CharField(
        label="Short name",
        max_length=63,
        help_text="In addresses and on namespaces; it never changes. Lower-case letters, digits, -",
        widget=forms.TextInput(attrs=PLAIN_TEXT),
    )
    owner = forms.CharField(
        label="First owner", max_length=150, help_text="User name of somebody who has signed in."
    )
    priority = forms.ChoiceField(
        choices=PRIORITIES,
        initial=Tenant.Priority.CONTINUITY,
        widget=RadioCards,
        label="When a path is frozen",
    )


class ChangeForm(forms.Form):
    """What can be changed of a tenant."""

    name = forms.CharField(max_length=LONGEST_NAME)
    priority = forms.ChoiceField(
        choices=PRIORITIES, widget=RadioCards, label="When a path is frozen"
    )


class NamespaceForm(forms.Form):
    """The name of a namespace."""

    name = forms.CharField(max_length=63, widget=forms.TextInput(attrs=PLAIN_TEXT))


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def tenants(request: HttpRequest) -> HttpResponse:
    """Every tenant, by name; a POST makes one."""
    access = platform_access(request.user)
    access.require(PlatformAct.SEE)
    form = TenantForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            made = make_tenant(
                access=access, request_id=request_id_of(request), now=timezone.now(),
                **form.cleaned_data,
            )  # fmt: skip
        except Invalid as refused:
            take(form, refused)
        else:
            _say(request, f"{made.name} is made. Give it namespaces and limits next.")
            return redirect("platform-tenant", made.slug)
    found = _listed().order_by("name", "pk")
    context = {
        "page": Paginator(found, PAGE_SIZE).get_page(request.GET.get("page")),
        "form": form,
        "why_not": access.why_not(PlatformAct.RUN_TENANTS),
    }
    return render(request, "devices/platform_tenants.html", context, status=status(request))


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def tenant(request: HttpRequest, slug: str) -> HttpResponse:
    """One tenant; a POST renames it or sets its priority policy."""
    access = platform_access(request.user)
    access.require(PlatformAct.SEE)
    found = get_object_or_404(_listed(), slug=slug)
    initial = {"name": found.name, "priority": found.priority}
    form = ChangeForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            change_tenant(
                access=access, tenant=found, request_id=request_id_of(request),
                now=timezone.now(), **form.cleaned_data,
            )  # fmt: skip
        except Invalid as refused:
            take(form, refused)
        else:
            _say(request, "Changed.")
            return redirect("platform-tenant", slug)
    return _page(request, access, found, form, NamespaceForm())


@require_POST
@login_required
def namespace_add(request: HttpRequest, slug: str) -> HttpResponse:
    """Has a new namespace made."""
    access, found = _run(request, slug)
    form = NamespaceForm(request.POST)
    if form.is_valid():
        try:
            place = add_namespace(
                access=access, tenant=found, adopt=False, request_id=request_id_of(request),
                now=timezone.now(), **form.cleaned_data,
            )  # fmt: skip
        except Invalid as refused:
            take(form, refused)
        else:
            _say(request, f"{place.name} is being made.")
            return redirect("platform-tenant", slug)
    initial = {"name": found.name, "priority": found.priority}
    return _page(request, access, found, ChangeForm(initial=initial), form)


@require_POST
@login_required
def namespace_remove(request: HttpRequest, slug: str, name: str) -> HttpResponse:
    """Lets a namespace leave its tenant."""
    access, found = _run(request, slug)
    remove_namespace(
        access=access,
        tenant=found,
        name=name,
        request_id=request_id_of(request),
        now=timezone.now(),
    )
    _say(request, f"{name} leaves {found.name}: Berth's quota and names go, all else stays.")
    return redirect("platform-tenant", slug)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def survey(request: HttpRequest, slug: str) -> HttpResponse:
    """What is in a namespace of the cluster (`?name=`); a POST adopts it."""
    access, found = _run(request, slug)
    form = NamespaceForm(request.POST or request.GET)
    if not form.is_valid():
        initial = {"name": found.name, "priority": found.priority}
        return _page(request, access, found, ChangeForm(initial=initial), form)
    name, refused = form.cleaned_data["name"].strip(), ""
    if request.method == "POST":
        try:
            add_namespace(
                access=access, tenant=found, name=name, adopt=True,
                request_id=request_id_of(request), now=timezone.now(),
            )  # fmt: skip
        except (Invalid, NotAdoptable) as no:
            refused = next(iter(no.fields.values())) if isinstance(no, Invalid) else no.message
        else:
            _say(request, f"{name} is adopted; nothing in it was changed.")
            return redirect("platform-tenant", slug)
    context = {
        "tenant": found,
        "survey": survey_of(found, name, timezone.now()),
        "refused": refused,
    }
    return render(request, "devices/namespace_survey.html", context, status=status(request))


def _listed() -> Any:
    """Tenants with what the list and the page show of each, in a constant number of queries."""
    late = Closure.objects.under_way().exclude(late_at=None)
    return Tenant.objects.annotate(
        places=Count("namespaces", filter=Q(namespaces__left_at=None), distinct=True),
        people=Count("memberships", distinct=True),
    ).prefetch_related(Prefetch("closures", late, to_attr="late_closings"))


def _run(request: HttpRequest, slug: str) -> tuple[PlatformAccess, Tenant]:
    """The admin and the tenant; 403 for whoever may only look."""
    access = platform_access(request.user)
    access.require(PlatformAct.RUN_TENANTS)
    return access, get_object_or_404(_listed(), slug=slug)


def _page(
    request: HttpRequest,
    access: PlatformAccess,
    found: Tenant,
    form: forms.Form,
    add: forms.Form,
) -> HttpResponse:
    why_not = access.why_not(PlatformAct.RUN_TENANTS)
    if not why_not and found.state == Tenant.State.CLOSED:
        why_not = f"{found.name} is closed; nothing of it can be changed any more."
    owners = Membership.objects.filter(tenant=found, role=Membership.Role.OWNER)
    context = {
        "tenant": found,
        "form": form,
        "add": add,
        "namespaces": found.namespaces.select_related("standing"),
        "owners": [one.user for one in owners.select_related("user").order_by("pk")],
        "closure": newest(found),
        "why_not": why_not,
        "stream": reverse("platform-tenant-events", args=[found.slug]),
    }
    return render(request, "devices/platform_tenant.html", context, status=status(request))


def status(request: HttpRequest) -> int:
    """422 where a form comes back."""
    return 422 if request.method == "POST" else 200


def take(form: forms.Form, refused: Invalid) -> None:
    """Puts what a verb refused beside the fields."""
    blame(form, refused.fields)


def _say(request: HttpRequest, text: str) -> None:
    messages.success(request, text, extra_tags=request_id_of(request))
