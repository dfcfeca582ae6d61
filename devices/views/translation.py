"""The translator: a manifest that asks by extended resource, pasted, and the same with claims."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from devices.models import Claim, Proof
from devices.routing import proofs
from devices.routing.translating import example, translated, usable_claims
from devices.translation.findings import Finding, Kind
from devices.translation.translate import LONGEST, Translation
from portal.errors import Invalid
from portal.request_ids import request_id_of
from portal.ui.htmx import wants_partial
from tenants.access import Access, tenant_for
from tenants.policy import Act


class TranslationForm(forms.Form):
    """What to translate, with which claims, and whether the API server is asked."""

    text = forms.CharField(
        label="Manifest",
        strip=False,
        max_length=LONGEST,
        help_text="Pods, Jobs, Deployments and their like; several documents, YAML or JSON.",
        widget=forms.Textarea(
            attrs={"rows": 24, "spellcheck": "false", "class": "name", "wrap": "off"}
        ),
    )
    claim = forms.ChoiceField(
        label="Devices come from",
        required=False,
        help_text="A claim of yours must have what the manifest asks for.",
    )
    namespace = forms.ChoiceField(
        label="Namespace", required=False, help_text="Where what names none would go."
    )
    prove = forms.BooleanField(
        label="Ask the API server too",
        required=False,
        initial=True,
        help_text="A dry run: nothing is made. The objects are dropped with its answer.",
    )

    def __init__(self, *args: Any, access: Access, claims: list[Claim], **options: Any) -> None:
        super().__init__(*args, **options)
        places = access.tenant.namespaces.values_list("name", flat=True)
        self.fields["namespace"].choices = [(name, name) for name in places]  # type: ignore[attr-defined]
        self.fields["claim"].choices = [  # type: ignore[attr-defined]
            ("", "A new template in the manifest"),
            *((one.public_id, f"{one.name}: {one.words}") for one in claims),
        ]
        if not access.may(Act.ASK):
            del self.fields["prove"]

    def clean_text(self) -> str:
        """Browsers send line ends as Windows writes them, whatever was pasted."""
        return str(self.cleaned_data["text"]).replace("\r\n", "\n")


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def translation(request: HttpRequest, slug: str) -> HttpResponse:
    """The form; a POST shows beside it what becomes of the manifest."""
    access = tenant_for(request.user, slug)
    form = _form(request, access)
    context: dict[str, Any] = {"access": access, "form": form, "longest": LONGEST}
    if request.method == "POST":
        context |= _result(request, access, form)
    wrong = request.method == "POST" and not form.is_valid()
    fragment = wants_partial(request) and request.method == "POST"
    page = "devices/_translation_parts.html" if fragment else "devices/translation.html"
    # A fragment is swapped in whatever is wrong; htmx swaps nothing of an error.
    return render(request, page, context, status=422 if wrong and not fragment else 200)


@require_POST
@login_required
def translation_file(request: HttpRequest, slug: str) -> HttpResponse:
    """The translated manifest as a file."""
    access = tenant_for(request.user, slug)
    form = _form(request, access)
    found = _translated(access, form) if form.is_valid() else None
    if found is None:
        context = {"access": access, "form": form, "longest": LONGEST}
        return render(request, "devices/translation.html", context, status=422)
    response = HttpResponse(found.text, content_type="application/yaml; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="with-claims.yaml"'
    return response


@require_safe
@login_required
def proof(request: HttpRequest, slug: str, public_id: str) -> HttpResponse:
    """What the API server said to one's own translation; as a fragment, that alone."""
    access = tenant_for(request.user, slug)
    row = proofs.find(access.tenant, public_id, access.user.person)
    if row is None:
        raise Http404
    context = {"access": access, **shown(row)}
    fragment = wants_partial(request)
    return render(request, "devices/_proof.html" if fragment else "devices/proof.html", context)


def shown(row: Proof) -> dict[str, Any]:
    """A proof for its template: what was said before and after, side by side."""
    said = proofs.answers_of(row)
    return {
        "proof": row,
        "sides": (
            ("As pasted", [one for one in said if one.before]),
            ("With claims", [one for one in said if not one.before]),
        ),
    }


def _form(request: HttpRequest, access: Access) -> TranslationForm:
    initial = {"text": example()} if "example" in request.GET else {}
    data = request.POST if request.method == "POST" else None
    return TranslationForm(
        data, access=access, claims=usable_claims(access.tenant), initial=initial
    )


def _translated(access: Access, form: TranslationForm) -> Translation | None:
    """The translation; None where the form is not right, which then says so."""
    try:
        return translated(access.tenant, form.cleaned_data["text"], form.cleaned_data["claim"])
    except Invalid as refused:
        for name, text in refused.fields.items():
            form.add_error(name, text)
    return None


def _result(request: HttpRequest, access: Access, form: TranslationForm) -> dict[str, Any]:
    found = _translated(access, form) if form.is_valid() else None
    if found is None:
        return {}
    context: dict[str, Any] = {
        "found": found,
        "changes": told(found.of(Kind.CHANGES)),
        "checks": told(found.of(Kind.CHECK)),
        "left": told(found.of(Kind.LEFT)),
    }
    if form.cleaned_data.get("prove") and found.changed:
        try:
            row = proofs.ask(
                found.pairs,
                tenant=access.tenant,
                namespace=form.cleaned_data["namespace"],
                person=access.user.person,
                request_id=request_id_of(request),
                now=timezone.now(),
            )
        except Invalid as refused:
            context["not_asked"] = " ".join(refused.fields.values())
        else:
            context |= shown(row)
    return context


def told(findings: tuple[Finding, ...]) -> list[tuple[str, str, list[Finding]]]:
    """Findings that say the same, together: code, words, and where."""
    found: dict[tuple[str, str], list[Finding]] = {}
    for one in findings:
        found.setdefault((one.code, one.words), []).append(one)
    return [(code, words, places) for (code, words), places in found.items()]
