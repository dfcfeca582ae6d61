"""Freezes: the operators' page, and the banner on every tenant's pages."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from devices.models import Freeze, NodePool, Offer
from devices.tenancy.freezes import AlreadyFrozen, freeze, frozen_for, lift
from portal.errors import Invalid
from portal.request_ids import request_id_of
from tenants.access import platform_access, tenant_for
from tenants.models import Tenant, User
from tenants.policy import PlatformAct

PAGE_SIZE = 50
PARTED = ":"
CLASS, TENANT = Freeze.Scope.CLASS, Freeze.Scope.TENANT
POOL, DRIVER, CHANGE = Freeze.Scope.POOL, Freeze.Scope.DRIVER, Freeze.Scope.CHANGE
DRA = Freeze.Path.DRA


class FreezeForm(forms.Form):
    """What to freeze, why and until when. `what` is a scope, its target and, of a node pool, the
    path in one choice.
    """

    what = forms.ChoiceField(label="Freeze", help_text="New work waits; what runs goes on.")
    reason = forms.CharField(
        max_length=240, help_text="Everybody whom it concerns reads it.", label="Why"
    )
    until = forms.DateTimeField(
        required=False,
        help_text="In UTC. It ends by itself then; empty: until somebody lifts it.",
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}, format="%Y-%m-%dT%H:%M"),
    )
    strict = forms.BooleanField(
        required=False,
        label="Strict: replacements of what runs wait too",
        help_text="A Pod that ends is then not started again until the freeze is over. Not for "
        "node pools and drivers: those are closed to every new Pod anyway.",
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        classes = Offer.objects.order_by("device_class").values_list("device_class", flat=True)
        tenants = Tenant.objects.exclude(state=Tenant.State.CLOSED).values_list("slug", "name")
        pools = list(NodePool.objects.values_list("slug", "name", "driver"))
        self.fields["what"].choices = [  # type: ignore[attr-defined]
            (f"{Freeze.Scope.ALL}{PARTED}", "Everything"),
            ("Device classes", [(f"{CLASS}{PARTED}{name}", name) for name in classes]),
            ("Tenants", [(f"{TENANT}{PARTED}{slug}", name) for slug, name in tenants]),
            ("Node pools", [(f"{POOL}{PARTED}{slug}", name) for slug, name, _ in pools]),
            (
                "Node pools, nodes of DRA alone",
                [(f"{POOL}{PARTED}{slug}{PARTED}{DRA}", name) for slug, name, _ in pools],
            ),
            (
                "Driver changes",
                [(f"{CHANGE}{PARTED}{slug}", f"of {name}") for slug, name, _ in pools],
            ),
            ("Drivers", [(f"{DRIVER}{PARTED}{one}", one) for one in sorted({p[2] for p in pools})]),
        ]


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def freezes(request: HttpRequest) -> HttpResponse:
    """What is frozen and what was; a POST freezes."""
    access = platform_access(request.user)
    form = FreezeForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        scope, target, path = [*data["what"].split(PARTED), ""][:3]
        try:
            made = freeze(
                access=access,
                scope=scope,
                target=target,
                path=path,
                strict=data["strict"],
                reason=data["reason"],
                until=data["until"],
                request_id=request_id_of(request),
                now=timezone.now(),
            )
        except Invalid as refused:
            for name, text in refused.fields.items():
                form.add_error(name if name in form.fields else "what", text)
        except AlreadyFrozen as refused:
            form.add_error("what", refused.message)
        else:
            words, request_id = made.words.capitalize(), request_id_of(request)
            messages.success(request, f"{words} is frozen.", extra_tags=request_id)
            return redirect("freezes")
    now = timezone.now()
    page = Paginator(Freeze.objects.select_related("hold"), PAGE_SIZE).get_page(
        request.GET.get("page")
    )
    context = {
        "access_platform": access,
        "form": form,
        "page": page,
        "rows": named(page.object_list),
        "standing": named(Freeze.objects.standing(now).select_related("hold")),
        "why_not": access.why_not(PlatformAct.FREEZE),
        "now": now,
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "devices/freezes.html", context, status=status)


@require_POST
@login_required
def lift_freeze(request: HttpRequest, public_id: str) -> HttpResponse:
    """Ends a freeze; what it held is sent."""
    access = platform_access(request.user)
    request_id = request_id_of(request)
    try:
        found = lift(access=access, public_id=public_id, request_id=request_id, now=timezone.now())
    except Freeze.DoesNotExist as absent:
        raise Http404 from absent
    messages.success(
        request, f"{found.words.capitalize()} takes new work again.", extra_tags=request_id
    )
    return redirect("freezes")


@require_safe
@login_required
def banner(request: HttpRequest, slug: str) -> HttpResponse:
    """The banner of a tenant's pages, which open pages fetch when a freeze comes or goes."""
    access = tenant_for(request.user, slug)
    context = {"access": access, "freezes": frozen_for(access.tenant, timezone.now())}
    return render(request, "devices/_freezes.html", context)


def named(rows: Any) -> list[tuple[Freeze, str, str]]:
    """Freezes with the names of who froze and who lifted; one query for all names."""
    found = list(rows)
    people = {person for row in found for person in (row.frozen_by, row.ended_by) if person}
    names = {user.person: user.words for user in User.objects.filter(person__in=people)}
    return [
        (
            row,
            names.get(row.frozen_by, "somebody who left"),
            names.get(row.ended_by, "somebody who left") if row.ended_by else "",
        )
        for row in found
    ]
