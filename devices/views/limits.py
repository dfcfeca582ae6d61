"""Limits of a tenant: what is used, by which lines, sharing out, and asking for other limits."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from devices.models import Offer
from devices.tenancy.limit_rows import limit_row, limit_rows, line_rows, query_of, what_of
from devices.tenancy.spending import (
    amount_words,
    budget_of,
    capacity_effects,
    class_names,
    lines_behind,
    read_amount,
    words_of,
)
from portal.approvals.models import Approval
from portal.errors import Invalid
from portal.request_ids import request_id_of
from portal.ui.forms import blame
from tenants.access import Access, tenant_for
from tenants.limit_setting import ask_for_limit, share_out
from tenants.limits import Measure, What, devices_of
from tenants.models import LimitWish
from tenants.policy import Act

WISHES = 20
PAGE_SIZE = 50


class AmountField(forms.CharField):
    """A quantity as people write it; empty is no limit."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=40, required=False, **options)

    def clean(self, value: Any) -> Decimal | None:
        text = super().clean(value)
        if not text:
            return None
        try:
            return read_amount(text)
        except ValueError as error:
            raise forms.ValidationError(str(error)) from error


class RaiseForm(forms.Form):
    """Another limit, and why."""

    amount = AmountField(label="New limit", help_text="A number such as 8. Empty: without a limit.")
    reason = forms.CharField(
        label="What for",
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="Whoever decides reads this.",
    )


class NewClassForm(RaiseForm):
    """A class that the tenant has no limit on yet."""

    device_class = forms.ChoiceField(label="Device class")
    field_order = ("device_class", "amount", "reason")

    def __init__(self, *args: Any, classes: list[tuple[str, str]], **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["device_class"].choices = classes  # type: ignore[attr-defined]


class ShareForm(forms.Form):
    """One field a namespace; all of them empty: every namespace draws on the whole."""

    def __init__(self, *args: Any, namespaces: list[str], shares: dict[str, str], **options: Any):
        super().__init__(*args, **options)
        for name in namespaces:
            self.fields[f"share-{name}"] = AmountField(label=name, initial=shares.get(name, ""))

    def shares(self) -> dict[str, Decimal]:
        return {
            name.removeprefix("share-"): amount
            for name, amount in self.cleaned_data.items()
            if amount is not None
        }


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def limits(request: HttpRequest, slug: str) -> HttpResponse:
    """Every limit with its four parts; a POST asks for a class that has none yet."""
    access = tenant_for(request.user, slug)
    budget, names = budget_of(access.tenant, timezone.now()), class_names()
    rows = limit_rows(budget, names)
    have = {row.what.device_class for row in rows if row.what.measure is Measure.DEVICES}
    known = sorted(set(Offer.objects.values_list("device_class", flat=True)) | set(names))
    classes = [(name, names.get(name, name)) for name in known if name not in have]
    form = NewClassForm(request.POST or None, classes=classes)
    if request.method == "POST" and form.is_valid():
        what = devices_of(form.cleaned_data["device_class"])
        if asked := _ask(request, access, what, form):
            return asked
    context = {
        "access": access,
        "rows": rows,
        "any_class": budget.any_class,
        "form": form,
        "classes": classes,
        "wishes": _wishes(access, names),
        "why_not_ask": access.why_not(Act.ASK_LIMITS),
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "devices/limits.html", context, status=status)


@require_safe
@login_required
def limit(request: HttpRequest, slug: str) -> HttpResponse:
    """One limit with the lines behind it; `?measure=&class=&capacity=` say which."""
    access = tenant_for(request.user, slug)
    return _limit_page(request, access, _what(request), RaiseForm(), None)


@require_POST
@login_required
def limit_wish(request: HttpRequest, slug: str) -> HttpResponse:
    """Asks for another limit; the page again where something is not right."""
    access = tenant_for(request.user, slug)
    what, form = _what(request), RaiseForm(request.POST)
    if form.is_valid() and (asked := _ask(request, access, what, form)):
        return asked
    return _limit_page(request, access, what, form, None)


@require_POST
@login_required
def limit_shares(request: HttpRequest, slug: str) -> HttpResponse:
    """Shares a limit out."""
    access = tenant_for(request.user, slug)
    what = _what(request)
    form = _share_form(access, {}, request.POST)
    if form.is_valid():
        try:
            share_out(
                access=access,
                what=what,
                shares=form.shares(),
                request_id=request_id_of(request),
                now=timezone.now(),
            )
        except Invalid as refused:
            for name, text in refused.fields.items():
                field = name.replace("shares.", "share-")
                form.add_error(field if field in form.fields else None, text)
        else:
            messages.success(request, "Shared out.")
            return redirect(f"{reverse('limit', args=[slug])}?{query_of(what)}")
    return _limit_page(request, access, what, RaiseForm(), form)


def _limit_page(
    request: HttpRequest,
    access: Access,
    what: What,
    form: RaiseForm,
    shares: ShareForm | None,
) -> HttpResponse:
    now = timezone.now()
    budget, names = budget_of(access.tenant, now), class_names()
    row = limit_row(budget, what, names)
    if row is None:
        raise Http404
    lines = line_rows(lines_behind(access.tenant, what, now), access.tenant)
    has_row = what in budget.limits
    now_shared = {share.namespace: share.amount for share in row.shares}
    context = {
        "access": access,
        "row": row,
        "page": Paginator(lines, PAGE_SIZE).get_page(request.GET.get("page")),
        "form": form,
        "shares": shares or _share_form(access, now_shared, None),
        "can_share": has_row and row.limit is not None,
        "wishes": _wishes(access, names, what),
        "why_not_ask": access.why_not(Act.ASK_LIMITS),
        "why_not_share": access.why_not(Act.SHARE_LIMITS),
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "devices/limit.html", context, status=status)


def _share_form(access: Access, shares: dict[str, str], data: Any) -> ShareForm:
    namespaces = list(access.tenant.namespaces.values_list("name", flat=True))
    return ShareForm(data, namespaces=namespaces, shares=shares)


def _ask(request: HttpRequest, access: Access, what: What, form: RaiseForm) -> HttpResponse | None:
    """Asks, or puts what is wrong beside its field."""
    try:
        ask_for_limit(
            access=access,
            what=what,
            amount=form.cleaned_data["amount"],
            reason=form.cleaned_data["reason"],
            capacity=capacity_effects(what),
            request_id=request_id_of(request),
            now=timezone.now(),
        )
    except Invalid as refused:
        blame(form, refused.fields)
        return None
    messages.success(request, "Asked for. An approver or an admin of the platform decides.")
    return redirect("limits", access.tenant.slug)


def _what(request: HttpRequest) -> What:
    what = what_of(request.GET)
    if what is None:
        raise Http404
    return what


def _wishes(
    access: Access, names: dict[str, str], what: What | None = None
) -> list[dict[str, Any]]:
    """The newest wishes with what was decided and said; three queries."""
    rows = LimitWish.objects.filter(tenant=access.tenant)
    if what is not None:
        rows = rows.filter(
            measure=what.measure, device_class=what.device_class, capacity=what.capacity
        )
    wishes = list(rows[:WISHES])
    approvals = Approval.objects.filter(pk__in=[wish.approval for wish in wishes])
    found = {one.pk: one for one in approvals.prefetch_related("decisions")}
    return [
        {
            "approval": approval,
            "title": words_of(wish.what, names),
            "before": amount_words(wish.what, wish.before) if wish.had_row else "none",
            "after": amount_words(wish.what, wish.amount),
            "said": [one.comment for one in approval.decisions.all() if one.comment],
        }
        for wish in wishes
        if (approval := found.get(wish.approval or 0)) is not None
    ]
