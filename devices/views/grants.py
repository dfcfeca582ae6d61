"""Grants: what a tenant gave, took or is offered; offering, accepting, ending."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from devices.authoring.shown import shown_to
from devices.tenancy.lending import lendable, touched, wrong_terms
from devices.tenancy.spending import class_names
from portal.errors import Invalid
from portal.request_ids import request_id_of
from portal.ui.forms import Card, RadioCards
from tenants import grants as verbs
from tenants.access import Access, tenant_for
from tenants.models import Grant
from tenants.policy import Act
from tenants.sums import used_of

PAGE_SIZE = 50


class OfferForm(forms.Form):
    """To whom, what, how much, until when, and who pays."""

    namespace = forms.CharField(
        max_length=63,
        label="Their namespace",
        help_text="As the other tenant calls it. Only its owners will see the offer.",
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    what = forms.ChoiceField(label="Template and class")
    count = forms.IntegerField(
        label="Devices at the same time", min_value=1, max_value=verbs.MOST_DEVICES, initial=1
    )
    ends_on = forms.DateField(
        label="Last day",
        help_text="It ends at 24:00 UTC of that day; what runs then stays until it ends.",
        widget=forms.DateInput(attrs={"type": "date"}),
    )
    pays = forms.ChoiceField(
        label="Against whose limit",
        initial=Grant.Pays.GIVER,
        choices=[
            (Grant.Pays.GIVER, Card("Ours", words="Kept free for them from the day they accept.")),
            (Grant.Pays.TAKER, Card("Theirs", words="They need a limit on the class themselves.")),
        ],
        widget=RadioCards,
    )
    words = forms.CharField(
        label="What for", max_length=verbs.LONGEST_WORDS, required=False, help_text="They read it."
    )

    def __init__(self, *args: Any, choices: list[tuple[str, str]], **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["what"].choices = choices  # type: ignore[attr-defined]

    def terms(self) -> dict[str, Any]:
        """As the verb wants them."""
        template, _, device_class = self.cleaned_data["what"].partition(" ")
        last = self.cleaned_data["ends_on"]
        return {
            "namespace": self.cleaned_data["namespace"],
            "template": template,
            "device_class": device_class,
            "count": self.cleaned_data["count"],
            "pays": self.cleaned_data["pays"],
            "ends_at": datetime.combine(last + timedelta(days=1), time(), UTC),
            "words": self.cleaned_data["words"],
        }


@require_safe
@login_required
def grants(request: HttpRequest, slug: str) -> HttpResponse:
    """Newest first: what waits for an answer, what is lent to us, what we lend."""
    access = tenant_for(request.user, slug)
    page = Paginator(verbs.visible(access.tenant), PAGE_SIZE).get_page(request.GET.get("page"))
    used = used_of(grant.pk for grant in page.object_list)
    names = class_names()
    context = {
        "access": access,
        "page": page,
        "rows": [_row(access, grant, used, names) for grant in page.object_list],
        "why_not": access.why_not(Act.GRANT),
    }
    return render(request, "devices/grants.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def grant_offer(request: HttpRequest, slug: str) -> HttpResponse:
    """The form; a POST offers."""
    access = tenant_for(request.user, slug)
    names = class_names()
    choices = [
        (f"{template} {device_class}", f"{words}: {names.get(device_class, device_class)}")
        for template, words, device_class in lendable(shown_to(access.tenant, timezone.now()))
    ]
    what = f"{request.GET.get('template', '')} {request.GET.get('class', '')}"
    form = OfferForm(request.POST or None, choices=choices, initial={"what": what})
    if request.method == "POST" and form.is_valid():
        terms = form.terms()
        try:
            if wrong := wrong_terms(access.tenant, terms["template"], terms["device_class"]):
                raise Invalid("Nothing was offered.", fields=wrong)
            made = verbs.offer(
                access=access, **terms, request_id=request_id_of(request), now=timezone.now()
            )
        except Invalid as refused:
            places = {"ends_at": "ends_on", "template": "what", "device_class": "what"}
            for name, text in refused.fields.items():
                field = places.get(name, name)
                form.add_error(field if field in form.fields else None, text)
        else:
            messages.success(request, f"Offered to {made.namespace}.")
            return redirect("grant", slug, made.public_id)
    context = {"access": access, "form": form, "why_not": access.why_not(Act.GRANT)}
    status = 422 if request.method == "POST" else 200
    return render(request, "devices/grant_offer.html", context, status=status)


@require_safe
@login_required
def grant(request: HttpRequest, slug: str, public_id: str) -> HttpResponse:
    """One grant: its terms, what is in use by it, and what ending it would touch."""
    access = tenant_for(request.user, slug)
    found = verbs.find(access, public_id)
    row = _row(access, found, used_of([found.pk]), class_names())
    context = {
        "access": access,
        **row,
        "touched": touched(found, access.tenant),
        "why_not": access.why_not(Act.GRANT),
    }
    return render(request, "devices/grant.html", context)


@require_POST
@login_required
def grant_answer(request: HttpRequest, slug: str, public_id: str) -> HttpResponse:
    """Accepts, declines or ends; `act` says which."""
    acts = {"accept": verbs.accept, "decline": verbs.decline, "revoke": verbs.revoke}
    act = request.POST.get("act", "")
    access = tenant_for(request.user, slug)
    if act not in acts:
        raise Invalid("Nothing was done.", fields={"act": f"One of {', '.join(acts)}."})
    acts[act](
        access=access, public_id=public_id, request_id=request_id_of(request), now=timezone.now()
    )
    said = {"accept": "Accepted.", "decline": "Declined.", "revoke": "Ended. What runs stays."}
    messages.success(request, said[act])
    return redirect("grant", slug, public_id)


def _row(
    access: Access, grant: Grant, used: dict[int, Any], names: dict[str, str]
) -> dict[str, Any]:
    """A grant as one side sees it."""
    mine = grant.giver_id == access.tenant.pk
    taker = grant.taker.name if grant.taker else grant.namespace
    return {
        "grant": grant,
        "mine": mine,
        "other": taker if mine else grant.giver.name,
        "class_words": names.get(grant.device_class, grant.device_class),
        "used": int(used.get(grant.pk, 0)),
        "free_count": max(grant.count - int(used.get(grant.pk, 0)), 0),
        "open": grant.state in {Grant.State.OFFERED, Grant.State.ACCEPTED},
        "offered_to_us": grant.state == Grant.State.OFFERED and not mine,
    }
