"""The platform's side of limits: every tenant, how it stands, and setting what it may have."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from devices.models import Offer
from devices.tenancy.limit_rows import limit_rows, what_of
from devices.tenancy.spending import budget_of, class_names
from devices.views.limits import AmountField
from portal.errors import Invalid
from portal.request_ids import request_id_of
from portal.ui.forms import blame
from tenants.access import PlatformAccess, platform_access
from tenants.limit_setting import remove_limit, set_limit
from tenants.limits import ANY_CLASS, Measure, What
from tenants.longest import MOST_DAYS, set_longest_days
from tenants.models import Tenant
from tenants.policy import PlatformAct

PAGE_SIZE = 50


class LimitForm(forms.Form):
    """A limit as the platform sets it."""

    measure = forms.ChoiceField(
        label="Counts",
        choices=[
            (Measure.DEVICES.value, "Devices of a class"),
            (Measure.CAPACITY.value, "A capacity of a class"),
            (Measure.CLAIMS.value, "Claims"),
        ],
    )
    device_class = forms.ChoiceField(label="Device class", required=False)
    capacity = forms.CharField(
        max_length=253,
        required=False,
        help_text="Only for a capacity: its qualified name, as the driver publishes it.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    amount = AmountField(label="Limit", help_text="Such as 8 or 80Gi. Empty: without a limit.")
    remove = forms.BooleanField(
        label="Take it away",
        required=False,
        help_text="A class is then not allowed; claims and capacities are not limited.",
    )

    def __init__(self, *args: Any, classes: list[tuple[str, str]], **options: Any) -> None:
        super().__init__(*args, **options)
        choices = [("", "none"), (ANY_CLASS, "Any class"), *classes]
        self.fields["device_class"].choices = choices  # type: ignore[attr-defined]

    def what(self) -> What:
        data = self.cleaned_data
        return What(Measure(data["measure"]), data["device_class"], data["capacity"].strip())


@require_safe
@login_required
def tenants(request: HttpRequest) -> HttpResponse:
    """Every tenant, by name."""
    access = platform_access(request.user)
    access.require(PlatformAct.SEE)
    rows = Tenant.objects.annotate(limited=Count("limits")).order_by("name", "pk")
    page = Paginator(rows, PAGE_SIZE).get_page(request.GET.get("page"))
    return render(request, "devices/platform_limits.html", {"page": page})


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def tenant(request: HttpRequest, slug: str) -> HttpResponse:
    """One tenant's limits; a POST sets or takes away one."""
    access = platform_access(request.user)
    access.require(PlatformAct.SEE)
    found = get_object_or_404(Tenant, slug=slug)
    names = class_names()
    known = sorted(set(Offer.objects.values_list("device_class", flat=True)) | set(names))
    given = what_of(request.GET)
    initial = (
        {"measure": given.measure, "device_class": given.device_class, "capacity": given.capacity}
        if given
        else {}
    )
    form = LimitForm(
        request.POST or None,
        initial=initial,
        classes=[(name, names.get(name, name)) for name in known],
    )
    if request.method == "POST" and form.is_valid():
        try:
            _change(request, access, found, form)
        except Invalid as refused:
            blame(form, refused.fields)
        else:
            messages.success(request, f"The limits of {found.name} are changed.")
            return redirect("platform-limit", slug)
    budget = budget_of(found, timezone.now())
    context = {
        "tenant": found,
        "rows": limit_rows(budget, names),
        "any_class": budget.any_class,
        "form": form,
        "why_not": access.why_not(PlatformAct.SET_LIMITS),
        "most_days": MOST_DAYS,
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "devices/platform_limit.html", context, status=status)


@require_POST
@login_required
def longest_days(request: HttpRequest, slug: str) -> HttpResponse:
    """Sets how long the tenant's claims may last; empty takes the maximum away."""
    access = platform_access(request.user)
    access.require(PlatformAct.SEE)
    text = request.POST.get("days", "").strip()
    number = int(text) if text.isdecimal() and len(text) < 6 else 0
    try:
        set_longest_days(
            platform=access,
            tenant=get_object_or_404(Tenant, slug=slug),
            days=number if text else None,
            request_id=request_id_of(request),
            now=timezone.now(),
        )
    except Invalid as refused:
        messages.error(request, " ".join([refused.message, *refused.fields.values()]))
    else:
        messages.success(request, "Saved. Claims that are open keep the end that they have.")
    return redirect("platform-limit", slug)


def _change(request: HttpRequest, access: PlatformAccess, tenant: Tenant, form: LimitForm) -> None:
    """Sets or takes away what the form says."""
    what, now = form.what(), timezone.now()
    if form.cleaned_data["remove"]:
        remove_limit(
            platform=access, tenant=tenant, what=what, request_id=request_id_of(request), now=now
        )
    else:
        set_limit(
            platform=access,
            tenant=tenant,
            what=what,
            amount=form.cleaned_data["amount"],
            request_id=request_id_of(request),
            now=now,
        )
