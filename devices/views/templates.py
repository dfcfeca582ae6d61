"""Templates for those who write them: the list, one with its versions and holders, and its end."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from devices.authoring.audience import show_to
from devices.authoring.drafts import begin_version
from devices.authoring.holders import Held, holders_of
from devices.authoring.reviews import retire, standings
from devices.authoring.templatelist import rows
from devices.authoring.tryout import tenants
from devices.models import ClaimTemplate, TemplateVersion
from portal.errors import Invalid
from portal.request_ids import request_id_of
from portal.ui.forms import blame
from portal.ui.htmx import wants_partial
from tenants.access import PlatformAccess, platform_access
from tenants.people import names_of
from tenants.policy import PlatformAct

NOTHING = "-"


class AudienceForm(forms.Form):
    """Which tenants see a template."""

    audience = forms.ChoiceField(label="Shown to", choices=ClaimTemplate.Audience.choices)
    tenants = forms.MultipleChoiceField(
        label="Named tenants",
        required=False,
        help_text="Only where it is shown to named ones. Holders keep what they have.",
        widget=forms.CheckboxSelectMultiple,
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["tenants"].choices = [  # type: ignore[attr-defined]
            (tenant.slug, tenant.name) for tenant in tenants()
        ]


class RetireForm(forms.Form):
    """What to ask for instead, and why."""

    successor = forms.ChoiceField(
        label="Ask for instead", help_text="Holders are led there when they ask again."
    )
    words = forms.CharField(
        label="Why", max_length=240, help_text="Every holder reads it.", widget=forms.TextInput
    )

    def __init__(self, *args: Any, template: ClaimTemplate, **options: Any) -> None:
        super().__init__(*args, **options)
        others = TemplateVersion.objects.filter(state=TemplateVersion.State.APPROVED)
        others = others.exclude(template=template).select_related("template")
        self.fields["successor"].choices = [  # type: ignore[attr-defined]
            ("", "Choose one"),
            *((one.template.slug, one.template.name) for one in others),
            (NOTHING, "Nothing takes its place"),
        ]


@require_safe
@login_required
def templates(request: HttpRequest) -> HttpResponse:
    """Every template, by name; `?show=open` only those with a version that is being written."""
    access = platform_access(request.user)
    access.require(PlatformAct.SEE)
    found = rows()
    show = "open" if request.GET.get("show") == "open" else ""
    writing = [row for row in found if row.newest.state in TemplateVersion.OPEN]
    context = {
        **framed(access),
        "rows": writing if show else found,
        "total": len(found),
        "writing": len(writing),
        "show": show,
        "why_not": access.why_not(PlatformAct.WRITE_TEMPLATES),
    }
    fragment = wants_partial(request)
    return render(
        request, "devices/_templates.html" if fragment else "devices/templates.html", context
    )


@require_safe
@login_required
def template(request: HttpRequest, slug: str) -> HttpResponse:
    """One template."""
    return _one(request, slug)


@require_POST
@login_required
def template_copy(request: HttpRequest, slug: str) -> HttpResponse:
    """A new version as a copy of what is offered, opened in the editor."""
    version = begin_version(
        access=platform_access(request.user),
        slug=slug,
        request_id=request_id_of(request),
        now=timezone.now(),
    )
    messages.success(request, f"Version {version.number} is a draft; nobody sees it yet.")
    return redirect("template-version", slug, version.number)


@require_POST
@login_required
def template_audience(request: HttpRequest, slug: str) -> HttpResponse:
    """Says who sees it, and comes back."""
    access = platform_access(request.user)
    form = AudienceForm(request.POST)
    if form.is_valid():
        try:
            show_to(
                access=access,
                slug=slug,
                **form.cleaned_data,
                request_id=request_id_of(request),
                now=timezone.now(),
            )
        except Invalid as refused:
            _take(form, refused)
        else:
            messages.success(request, "Who sees it is changed.")
            return redirect("template", slug)
    return _one(request, slug, audience=form)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def template_retire(request: HttpRequest, slug: str) -> HttpResponse:
    """What retiring it does, and whom it concerns; a POST retires it."""
    access = platform_access(request.user)
    access.require(PlatformAct.WRITE_TEMPLATES)
    found = get_object_or_404(ClaimTemplate, slug=slug)
    form = RetireForm(request.POST or None, template=found)
    if request.method == "POST" and form.is_valid():
        successor = form.cleaned_data["successor"]
        try:
            retire(
                access=access,
                slug=slug,
                successor="" if successor == NOTHING else successor,
                words=form.cleaned_data["words"],
                request_id=request_id_of(request),
                now=timezone.now(),
            )
        except Invalid as refused:
            _take(form, refused)
        else:
            messages.success(request, f"{found} is retired; holders keep what they have.")
            return redirect("template", slug)
    context = {
        **framed(access),
        "template": found,
        "form": form,
        "holders": holders_of(found),
        "offered": found.versions.filter(state=TemplateVersion.State.APPROVED).first(),
    }
    status = 422 if request.method == "POST" else 200
    return render(request, "devices/template_retire.html", context, status=status)


def framed(access: PlatformAccess) -> dict[str, Any]:
    """What the frame of these pages needs: who looks, and the stream that they listen to."""
    return {"access_platform": access, "stream": reverse("platform-events")}


def _one(request: HttpRequest, slug: str, audience: AudienceForm | None = None) -> HttpResponse:
    access = platform_access(request.user)
    access.require(PlatformAct.SEE)
    found = get_object_or_404(ClaimTemplate.objects.prefetch_related("tenants"), slug=slug)
    versions = list(found.versions.select_related("successor").defer("text", "content"))
    states, holders = standings(versions), holders_of(found)
    names = names_of([*(one.changed_by for one in versions), *_hands(versions)])
    named = [tenant.slug for tenant in found.tenants.all()]
    context = {
        **framed(access),
        "template": found,
        "versions": [
            (one, states[one.pk], holders.versions.get(one.number, Held()),
             [names[person] for person in one.authors], names[one.changed_by])
            for one in versions
        ],
        "offered": next((one for one in versions if one.state == "approved"), None),
        "open": next((one for one in versions if one.state in TemplateVersion.OPEN), None),
        "newest": versions[0],
        "holders": holders,
        "audience": audience or AudienceForm({"audience": found.audience, "tenants": named}),
        "why_not": access.why_not(PlatformAct.WRITE_TEMPLATES),
    }  # fmt: skip
    return render(request, "devices/template.html", context, status=422 if audience else 200)


def _hands(versions: list[TemplateVersion]) -> list[Any]:
    return [person for one in versions for person in one.authors]


def _take(form: forms.Form, refused: Invalid) -> None:
    blame(form, refused.fields)
