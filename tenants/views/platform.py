"""Pages of the platform: who has which role, what groups give, and looking as a tenant."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from portal.errors import Invalid
from portal.request_ids import request_id_of
from portal.ui.forms import blame
from tenants.access import platform_access
from tenants.grouproles import map_group, unmap_group
from tenants.models import GroupRole, PlatformRole, Tenant, User
from tenants.models.group import PLATFORM_ROLES, TENANT_ROLES
from tenants.policy import PlatformAct
from tenants.roles import give_role, take_role
from tenants.viewing import start_viewing, stop_viewing

PAGE_SIZE = 100


class RoleForm(forms.Form):
    """Who gets which role on the platform."""

    username = forms.CharField(label="User name", max_length=150)
    role = forms.ChoiceField(choices=PlatformRole.Role.choices)


class GroupForm(forms.Form):
    """Which group gives which role, and where."""

    group = forms.CharField(
        max_length=200, help_text="Exactly as your sign-in provider writes it in its groups claim."
    )
    tenant = forms.ChoiceField(label="In", required=False)
    role = forms.ChoiceField(choices=[(role, role) for role in TENANT_ROLES + PLATFORM_ROLES])

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        tenants = Tenant.objects.filter(state=Tenant.State.ACTIVE).values_list("slug", "name")
        self.fields["tenant"].choices = [("", "the platform"), *tenants]  # type: ignore[attr-defined]


class ViewingForm(forms.Form):
    """As which tenant an admin looks, and why."""

    tenant = forms.ChoiceField()
    reason = forms.CharField(
        max_length=300, help_text="The tenant's owners read it in their audit."
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        tenants = Tenant.objects.exclude(state=Tenant.State.CLOSED).values_list("slug", "name")
        self.fields["tenant"].choices = list(tenants)  # type: ignore[attr-defined]


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def roles(request: HttpRequest) -> HttpResponse:
    """Everybody with a role on the platform; a POST gives one."""
    access = platform_access(request.user)
    form = RoleForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            give_role(
                access=access, now=timezone.now(), request_id=request_id_of(request),
                **form.cleaned_data,
            )  # fmt: skip
        except Invalid as refused:
            _take(form, refused)
        else:
            messages.success(request, "{username} is {role} now.".format(**form.cleaned_data))
            return redirect("platform-roles")
    people = (
        User.objects.filter(platform_roles__isnull=False)
        .distinct()
        .order_by("username")
        .prefetch_related(
            Prefetch("platform_roles", PlatformRole.objects.order_by("role")), "held_by_groups"
        )
    )
    page = Paginator(people, PAGE_SIZE).get_page(request.GET.get("page"))
    rows = [
        (user, [one.role for one in user.platform_roles.all()],
         {held.role for held in user.held_by_groups.all() if held.tenant_id is None})
        for user in page
    ]  # fmt: skip
    why_not = access.why_not(PlatformAct.GIVE_ROLES)
    context = {"page": page, "rows": rows, "form": form, "why_not": why_not}
    return render(request, "tenants/platform_roles.html", context, status=_status(request))


@require_POST
@login_required
def take(request: HttpRequest, username: str, role: str) -> HttpResponse:
    """Takes a role on the platform away."""
    take_role(
        access=platform_access(request.user),
        username=username,
        role=role,
        now=timezone.now(),
        request_id=request_id_of(request),
    )
    messages.success(request, f"{username} is {role} no more.")
    return redirect("platform-roles")


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def groups(request: HttpRequest) -> HttpResponse:
    """Which groups give which roles; a POST adds one."""
    access = platform_access(request.user)
    form = GroupForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            map_group(
                access=access,
                group=form.cleaned_data["group"],
                slug=form.cleaned_data["tenant"],
                role=form.cleaned_data["role"],
                now=timezone.now(),
                request_id=request_id_of(request),
            )
        except Invalid as refused:
            _take(form, refused)
        else:
            return redirect("platform-groups")
    rows = GroupRole.objects.select_related("tenant")
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    why_not = access.why_not(PlatformAct.MAP_GROUPS)
    context = {"page": page, "form": form, "why_not": why_not}
    return render(request, "tenants/platform_groups.html", context, status=_status(request))


@require_POST
@login_required
def unmap(request: HttpRequest, pk: int) -> HttpResponse:
    """A group gives a role no more, from each person's next sign-in on."""
    unmap_group(
        access=platform_access(request.user),
        pk=pk,
        now=timezone.now(),
        request_id=request_id_of(request),
    )
    return redirect("platform-groups")


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def viewing(request: HttpRequest) -> HttpResponse:
    """The form for looking as a tenant; a POST begins it."""
    access = platform_access(request.user)
    form = ViewingForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            tenant = start_viewing(
                access=access,
                session=request.session,
                slug=form.cleaned_data["tenant"],
                reason=form.cleaned_data["reason"],
                now=timezone.now(),
                request_id=request_id_of(request),
            )
        except Invalid as refused:
            _take(form, refused)
        else:
            return redirect("tenant-home", tenant.slug)
    context = {"form": form, "why_not": access.why_not(PlatformAct.VIEW_AS)}
    return render(request, "tenants/viewing.html", context, status=_status(request))


@require_POST
@login_required
def viewing_stop(request: HttpRequest) -> HttpResponse:
    """Ends looking as a tenant."""
    assert isinstance(request.user, User)
    stop_viewing(
        user=request.user,
        session=request.session,
        now=timezone.now(),
        request_id=request_id_of(request),
    )
    return redirect("home")


def _status(request: HttpRequest) -> int:
    return 422 if request.method == "POST" else 200


def _take(form: forms.Form, refused: Invalid) -> None:
    blame(form, refused.fields)
