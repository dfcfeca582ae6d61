"""Asking for devices: the form of a template, and what it would make."""

from __future__ import annotations

import uuid
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from devices.catalogue import free_notes, offers_for
from devices.claims import request_claim
from devices.cluster_link import cluster_link
from devices.dra.objects import ClaimWish, Shape
from devices.dra.template import BadValue, answers, build, summary
from devices.forecast import hit_rate
from devices.forms import AskForm
from devices.models import TemplateVersion
from devices.snippets import wish_yaml
from devices.spending import AmountNeeded
from devices.views.costs import costs_of
from devices.views.forecasts import advice_for, answers_given
from portal.errors import Invalid, Refused
from portal.request_ids import request_id_of
from tenants.access import Access, tenant_for
from tenants.budget import OverLimit
from tenants.grants import GrantUsedUp, usable
from tenants.policy import Act


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def ask(request: HttpRequest, slug: str, template: str) -> HttpResponse:
    """The form; a POST asks, or shows the same form with what is not right beside each field.

    With `check` in it, a POST only shows what would come of it, for browsers without script.
    """
    access = tenant_for(request.user, slug)
    version = approved_version(template)
    form = _form(request, access, version)
    checking = "check" in request.POST
    over: Refused | None = None
    if request.method == "POST" and form.is_valid() and not checking:
        try:
            claim = request_claim(
                access=access,
                version=version,
                namespace=form.cleaned_data["namespace"],
                name=form.cleaned_data["name"],
                values=form.values(),
                request_id=request_id_of(request),
                now=timezone.now(),
                at_once=form.cleaned_data.get("at_once") or 1,
                grant=form.cleaned_data["grant"],
            )
        except Invalid as refused:
            form.take(refused.fields)
        except (OverLimit, GrantUsedUp, AmountNeeded) as refused:
            over = refused
        else:
            messages.success(request, f"Asked for {claim.words}.")
            return redirect("claim", slug, claim.public_id)
    status = 422 if request.method == "POST" and not (checking and form.is_valid()) else 200
    page = {**_page(access, version, form), "over": over}
    return render(request, "devices/request.html", page, status=status)


@require_POST
@login_required
def preview(request: HttpRequest, slug: str, template: str) -> HttpResponse:
    """The summary beside the form, for the answers given so far."""
    access = tenant_for(request.user, slug)
    version = approved_version(template)
    form = _form(request, access, version)
    form.is_valid()
    return render(request, "devices/_request_summary.html", _page(access, version, form))


def approved_version(slug: str) -> TemplateVersion:
    """The version that can be asked for now; 404 where there is none."""
    return get_object_or_404(
        TemplateVersion.objects.select_related("template"),
        template__slug=slug,
        state=TemplateVersion.State.APPROVED,
    )


def _form(request: HttpRequest, access: Access, version: TemplateVersion) -> AskForm:
    return AskForm(
        request.POST if request.method == "POST" else None,
        tenant=access.tenant,
        template=version.read(),
        free=free_notes(offers_for(), old=not cluster_link().live),
        grants=list(usable(access.tenant, version.template.slug, timezone.now())),
        initial={
            "name": f"{version.template.slug}-{uuid.uuid4().hex[:4]}"[:40],
            **answers_given(request, access),
        },
    )


def _page(access: Access, version: TemplateVersion, form: AskForm) -> dict[str, Any]:
    template = version.read()
    page = {
        "access": access,
        "version": version,
        "form": form,
        "why_not_ask": access.why_not(Act.ASK),
        "shared": template.shared,
    }
    given = form.values() if form.is_bound and hasattr(form, "cleaned_data") else form.offered()
    try:
        values = answers(template, given)
    except BadValue as bad:
        return {**page, "wrong": bad.fields}
    draft = build(template, values)
    names = dict(form.cleaned_data) if form.is_bound and hasattr(form, "cleaned_data") else {}
    first = access.tenant.namespaces.values_list("name", flat=True).first()
    wish = ClaimWish(
        public_id="…",
        tenant=access.tenant.slug,
        namespace=names.get("namespace") or form.initial.get("namespace") or first or "…",
        name=names.get("name") or form.initial["name"],
        request_id="…",
        shape=Shape.CLAIM if template.shared else Shape.TEMPLATE,
        devices=draft.devices,
        matches=draft.matches,
    )
    return {
        **page,
        **advice_for(access, version, values, wish),
        "rate": hit_rate(timezone.now()),
        "costs": costs_of(access, wish, names.get("at_once") or 1, names.get("grant") or ""),
        "words": summary(template, draft),
        "yaml": wish_yaml(wish),
    }
