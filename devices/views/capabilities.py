"""What this cluster serves: the short form for tenants, everything for the platform."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from devices.catalogue.browsing import look
from devices.catalogue.capabilities import LONGEST_NOTE, Served, askable, say, served
from devices.dra.publishers import publishers
from devices.views.catalogue import framed, viewer_of
from portal.errors import Invalid
from portal.request_ids import request_id_of
from tenants.access import platform_access
from tenants.policy import PlatformAct

ON = {"on": True, "off": False, "": None}


class SayForm(forms.Form):
    """How one gate of one component is set; what cannot be read is asked of an admin."""

    what = forms.ChoiceField(label="Gate", help_text="Of a component whose gates no API tells.")
    on = forms.ChoiceField(
        label="It is",
        choices=[("on", "On"), ("off", "Off"), ("", "Not said: as the release has it")],
        required=False,
    )
    note = forms.CharField(
        label="How you know",
        required=False,
        max_length=LONGEST_NOTE,
        help_text="Such as where its command line is kept. Everybody of the platform reads it.",
    )

    def __init__(self, *args: object, **options: object) -> None:
        super().__init__(*args, **options)  # type: ignore[arg-type]
        groups: dict[str, list[tuple[str, str]]] = {}
        for component, gate in askable():
            groups.setdefault(component.words, []).append((f"{component.value}:{gate}", gate))
        self.fields["what"].choices = list(groups.items())  # type: ignore[attr-defined]


@require_safe
@login_required
def capabilities(request: HttpRequest, slug: str | None = None) -> HttpResponse:
    """Feature by feature: how far one may rely on it, and what Berth does without it."""
    return _page(request, slug, SayForm())


@require_POST
@login_required
def assumed(request: HttpRequest) -> HttpResponse:
    """Notes how a gate is set that nobody can read."""
    access = platform_access(request.user)
    access.require(PlatformAct.ASSUME)
    form = SayForm(request.POST)
    if form.is_valid():
        component, _, gate = form.cleaned_data["what"].partition(":")
        try:
            say(
                access=access,
                component=component,
                gate=gate,
                on=ON[form.cleaned_data["on"]],
                note=form.cleaned_data["note"],
                request_id=request_id_of(request),
                now=timezone.now(),
            )
        except Invalid as refused:
            for name, text in refused.fields.items():
                form.add_error(name if name in form.fields else "what", text)
        else:
            messages.success(request, f"Noted: {gate} in {component}. It shows as assumed.")
            return redirect("platform-capabilities")
    return _page(request, None, form)


def _page(request: HttpRequest, slug: str | None, form: SayForm) -> HttpResponse:
    viewer, found, here = viewer_of(request, slug), served(), look()
    why_not = viewer.platform.why_not(PlatformAct.ASSUME) if viewer.platform else ""
    page = framed(
        viewer,
        found=found,
        features=_shown(found, tenant=viewer.tenant is not None),
        drivers=publishers(here.snapshot) if here is not None else (),
        form=form,
        why_not=why_not,
    )
    status = 422 if request.method == "POST" else 200
    return render(request, "devices/capabilities.html", page, status=status)


def _shown(found: Served, *, tenant: bool) -> list[object]:
    """What matters to whoever asks for devices, or all."""
    return [one for one in found.features if one.feature.tenant or not tenant]
