"""Asking for devices: the form of a template, and what it would make."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from devices.asks.claims import FormUsed, longest_days, request_claim
from devices.asks.costs import costs_of, within_limits
from devices.asks.forms import AskForm
from devices.asks.question_form import PARAMETER
from devices.asks.snippets import NOTHING_YET, calls, made
from devices.authoring.shown import allows, shown
from devices.authoring.succession import changed, gone
from devices.catalogue.classes import free_notes, offers_for
from devices.cluster_link import cluster_link
from devices.dra.templates import build, claim_wish, plainly, ranked, settle, summary
from devices.forecasts.forecast import hit_rate
from devices.models import Claim, TemplateVersion
from devices.tenancy.spending import AmountNeeded
from devices.views.amounts import amounts_of
from devices.views.forecasts import NUMBERS, TEXTS, advice_for, answers_given
from portal.errors import Invalid, Refused
from portal.request_ids import request_id_of
from portal.ui.htmx import wants_partial
from tenants.access import Access, tenant_for
from tenants.budget import OverLimit
from tenants.grants import GrantUsedUp, usable
from tenants.policy import Act
from tenants.sums import limits_of

OUT = "not in your limits"
NEW = "Your answers brought this question up. Look at it, then ask again."


@dataclass(slots=True)
class Outcome:
    """What came of sending the form: a claim, or why nothing was asked for."""

    claim: Claim | None = None
    over: Refused | None = None
    used: str = ""
    """Id of the claim that the same page made before."""


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def ask(request: HttpRequest, slug: str, template: str) -> HttpResponse:
    """The form; a POST asks, or shows the same form with what is not right beside each field.

    With `check` in it, a POST only shows what would come of it, for browsers without script.
    """
    access = tenant_for(request.user, slug)
    version = shown(access.tenant, template, timezone.now())
    if version is None:
        return _retired(request, access, template)
    form = _form(request, access, version)
    checking = "check" in request.POST
    outcome = Outcome() if checking else _asked(request, access, version, form)
    if outcome.claim is not None:
        messages.success(request, f"Asked for {outcome.claim.words}.")
        return redirect("claim", slug, outcome.claim.public_id)
    page = {**_page(request, access, version, form), "over": outcome.over, "used": outcome.used}
    if outcome.used:
        page["form_key"] = uuid.uuid4()
    status = 422 if request.method == "POST" and not (checking and form.is_valid()) else 200
    return render(request, "devices/request.html", page, status=status)


@require_POST
@login_required
def preview(request: HttpRequest, slug: str, template: str) -> HttpResponse:
    """What is beside and below the form, for the answers given so far; and the questions, where
    the answers changed which ones there are.
    """
    access = tenant_for(request.user, slug)
    version = shown(access.tenant, template, timezone.now())
    if version is None:
        return _retired(request, access, template)
    form = _form(request, access, version)
    form.is_valid()
    page = {**_page(request, access, version, form), "fragment": True}
    return render(request, "devices/_request_preview.html", page)


def _retired(request: HttpRequest, access: Access, template: str) -> HttpResponse:
    """What is offered no more, what takes its place, and the entries that were sent; 404 for what
    never was, or is not for this tenant.
    """
    found = gone(template, access.tenant, timezone.now())
    if found is None:
        raise Http404
    if wants_partial(request):
        return HttpResponse(status=204, headers={"HX-Refresh": "true"})
    version, told = found
    kept = (*TEXTS, *NUMBERS)
    entries = {name: one for name, one in request.POST.items() if name in kept or name[:2] == "p-"}
    page = {"access": access, "version": version, "told": told, "entries": urlencode(entries)}
    return render(request, "devices/request_retired.html", page, status=410)


def _asked(
    request: HttpRequest, access: Access, version: TemplateVersion, form: AskForm
) -> Outcome:
    """Asks, where the form was sent, all in it is right, and its person has seen all of it."""
    if not form.is_valid() or _stale(request, version):
        return Outcome()
    for name in form.unseen:
        form.add_error(name, NEW)
    if form.unseen:
        return Outcome()
    try:
        return Outcome(
            request_claim(
                access=access,
                version=version,
                namespace=form.cleaned_data["namespace"],
                name=form.cleaned_data["name"],
                values=form.values(),
                request_id=request_id_of(request),
                now=timezone.now(),
                at_once=form.cleaned_data.get("at_once") or 1,
                grant=form.cleaned_data["grant"],
                days=form.cleaned_data["days"],
                note=form.cleaned_data["note"],
                form=request.POST.get("form", "").replace("\x00", "")[:36],
            )
        )
    except Invalid as refused:
        form.take(refused.fields)
    except FormUsed as refused:
        return Outcome(used=str(refused.facts["claim"]))
    except (OverLimit, GrantUsedUp, AmountNeeded) as refused:
        return Outcome(over=refused)
    return Outcome()


def _stale(request: HttpRequest, version: TemplateVersion) -> bool:
    """Whether the page was made for another version than the one that can be asked for now."""
    return request.POST.get("version", str(version.number)) != str(version.number)


def _differences(request: HttpRequest, version: TemplateVersion, form: AskForm) -> list[str]:
    """What the version that the page was made for and the present one make of the same entries."""
    number = request.POST.get("version", "")
    if not _stale(request, version) or not number.isascii() or not number.isdecimal():
        return []
    before = version.template.versions.filter(number=int(number[:9])).first()
    return changed(before, version, form.values()) if before is not None else []


def _form(request: HttpRequest, access: Access, version: TemplateVersion) -> AskForm:
    template, given = version.read(), answers_given(request, access)
    fresh = request.method != "POST"
    start, said = within_limits(access, template, given) if fresh else ({}, {})
    return AskForm(
        request.POST if request.method == "POST" else None,
        tenant=access.tenant,
        template=template,
        said=said,
        free=_notes(access),
        grants=list(usable(access.tenant, version.template.slug, timezone.now())),
        longest=longest_days(access.tenant, version),
        initial={
            "name": f"{version.template.slug}-{uuid.uuid4().hex[:4]}"[:40],
            **given,
            **{PARAMETER + name: value for name, value in start.items()},
        },
    )


def _notes(access: Access) -> dict[str, str]:
    """A note per device class for the cards: how many are free, or that limits stand against it."""
    offers, limits = offers_for(tenant=access.tenant), limits_of(access.tenant)
    notes = free_notes(offers, old=not cluster_link().live)
    return notes | {one.name: OUT for one in offers if not allows(limits, one.name)}


def _page(
    request: HttpRequest, access: Access, version: TemplateVersion, form: AskForm
) -> dict[str, Any]:
    template = form.template
    page = {
        "access": access,
        "version": version,
        "form": form,
        "form_key": request.POST.get("form", "")[:36] or uuid.uuid4(),
        "stale": _stale(request, version),
        "differences": _differences(request, version, form),
        "why_not_ask": access.why_not(Act.ASK),
        "shared": template.shared,
    }
    if form.wrong and form.is_bound:
        return {**page, "wrong": form.wrong, "made": NOTHING_YET}
    values = settle(template, form.values(), tenant=access.tenant.slug)
    draft = build(template, values)
    names = dict(form.cleaned_data) if form.is_bound and hasattr(form, "cleaned_data") else {}
    first = access.tenant.namespaces.values_list("name", flat=True).first()
    wish = claim_wish(
        template,
        draft,
        public_id="…",
        tenant=access.tenant.slug,
        namespace=names.get("namespace") or form.initial.get("namespace") or first or "…",
        name=names.get("name") or form.initial["name"],
        request_id="…",
    )
    body = {
        "template": version.template.slug,
        "namespace": wish.namespace,
        "name": wish.name,
        "values": values,
        "at_once": names.get("at_once") or 1,
    }
    numbers = {name: names[name] for name in NUMBERS if names.get(name)}
    advice = advice_for(access, version, values, wish, numbers)
    return {
        **page,
        **advice,
        "rate": hit_rate(timezone.now()),
        "costs": costs_of(access, wish, names.get("at_once") or 1, names.get("grant") or ""),
        "words": summary(template, draft),
        "plainly": plainly(template, draft),
        "ranked": ranked(template, draft),
        "amounts": amounts_of(template, draft),
        "made": made(
            replace(wish, resources=advice["route"].resources),
            calls(base=settings.PUBLIC_URL, tenant=access.tenant.slug, body=body),
        ),
    }
