"""What-if for the pages: the answers a link carries, and advice in the viewer's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from devices.asks.claimfacts import cluster_events, device_facts, pod_times
from devices.asks.claims import LONGEST_NOTE
from devices.asks.history import classes_of, usual_times
from devices.asks.lifetimes import lasts
from devices.asks.question_form import PARAMETER
from devices.asks.snippets import extended_pod
from devices.authoring.succession import Lineage, Succession
from devices.dra.codes.devices import CODES as CODES_OF_DEVICES
from devices.dra.lifecycle import State
from devices.dra.objects import ClaimWish
from devices.dra.templates import Value
from devices.forecasts.alternatives import Alternative
from devices.forecasts.forecast import EXPLAINED, Advice, advise, nearest_to, pending
from devices.forecasts.telling import told, waiting
from devices.models import Claim, ClassWords, TemplateVersion
from devices.routing.paths import offered_by_plugin, routed
from devices.routing.routes import Path
from tenants.access import Access

#: Entries of the form beside the template's questions that an address may carry: texts with their
#: longest, and numbers.
TEXTS: Final[Mapping[str, int]] = {"namespace": 63, "name": 63, "note": LONGEST_NOTE}
NUMBERS: Final = ("at_once", "days")


@dataclass(frozen=True, slots=True)
class Link:
    """An alternative and the address of the form that is filled in with it."""

    nearest: Alternative
    address: str


def answers_given(request: HttpRequest, access: Access) -> dict[str, Any]:
    """What a form starts with: the address's own answers over those of an earlier ask (`like`).

    Only this tenant's asks can be asked for again; another's is as if it were not there.
    """
    given: dict[str, Any] = {}
    like = request.GET.get("like", "").replace("\x00", "")[:12]
    earlier = Claim.objects.of(access.tenant).select_related("namespace")
    if like and (claim := earlier.filter(public_id=like).first()):
        given = {PARAMETER + name: value for name, value in claim.values.items()}
        given |= {**entries_of(claim), "note": claim.note}
    for name, value in request.GET.items():
        text = str(value).replace("\x00", "")
        if name.startswith(PARAMETER):
            given[name] = {"true": True, "false": False}.get(text, text)
        elif name in TEXTS:
            given[name] = text[: TEXTS[name]]
        elif name in NUMBERS and text.isascii() and text.isdecimal():
            given[name] = text[:4]
    return given


def entries_of(claim: Claim) -> dict[str, str]:
    """What was said of an ask beside its template's questions, as a form's address has it."""
    days = lasts(claim.requested_at, claim.expires_at)
    return {
        "namespace": claim.namespace.name,
        "name": claim.name,
        **({"at_once": str(claim.at_once)} if claim.at_once > 1 else {}),
        **({"days": str(days)} if days is not None else {}),
    }


def form_address(slug: str, template: str, values: Mapping[str, Value], **named: str) -> str:
    """The address of a form that is filled in."""
    answers = {
        PARAMETER + name: str(value).lower() if isinstance(value, bool) else value
        for name, value in values.items()
    }
    return f"{reverse('request-new', args=[slug, template])}?{urlencode({**answers, **named})}"


def advice_for(
    access: Access,
    version: TemplateVersion,
    values: Mapping[str, Value],
    wish: ClaimWish,
    numbers: Mapping[str, int],
) -> dict[str, Any]:
    """The context of `devices/_what_if.html` and `devices/_route.html`. `numbers` are what else was
    filled in (see NUMBERS): an alternative keeps them.
    """
    mine = frozenset(access.tenant.namespaces.values_list("name", flat=True))
    advice = advise(
        tenant=access.tenant,
        template=version.read(),
        values=values,
        namespace=wish.namespace,
        name=wish.name,
        mine=mine,
        now=timezone.now(),
    )
    kept = {name: str(number) for name, number in numbers.items()}
    named = {"namespace": wish.namespace, "name": wish.name, **kept}
    route = routed(wish, version.template.slug, timezone.now())
    return {
        "advice": advice,
        **in_words(advice, mine),
        "links": [
            Link(one, form_address(access.tenant.slug, version.template.slug, one.values, **named))
            for one in advice.nearest
        ],
        "route": route,
        "plugin": offered_by_plugin(wish) if route.path is Path.PLUGIN else (),
        "extended": extended_pod(wish, route.resources or route.also),
    }


def in_words(advice: Advice, mine: frozenset[str]) -> dict[str, Any]:
    """Funnels and holders as this viewer may know them."""
    if advice.found is None:
        return {"told": (), "waits": ()}
    names = dict(ClassWords.objects.values_list("device_class", "display_name"))
    return {
        "told": told(advice.found, mine, names),
        "waits": waiting(advice.found, mine),
    }


def claim_page(access: Access, claim: Claim) -> dict[str, Any]:
    """What the live part of a claim's page shows beside the row."""
    mine = frozenset(access.tenant.namespaces.values_list("name", flat=True))
    facts = device_facts(claim, mine)
    devices = [
        (device, facts.get((device["driver"], device["pool"], device["device"])))
        for device in claim.placed
    ]
    now = timezone.now()
    lineage = Lineage(access.tenant, now)
    page = {
        "devices": devices,
        "times": pod_times(claim, now),
        "said_by_cluster": cluster_events(claim),
        "lineage": lineage,
        "again": _again(access, claim, claim.values, lineage.of(claim.version)),
    }
    if claim.state == State.PENDING:
        page |= _why_pending(access, claim, mine)
    return page


def _why_pending(access: Access, claim: Claim, mine: frozenset[str]) -> dict[str, Any]:
    """The explanation, where it is about devices or the node; other reasons stand on the row."""
    if claim.code not in CODES_OF_DEVICES and claim.code not in EXPLAINED:
        return {}
    found = pending(claim, mine)
    if found is None:
        return {}
    why, seen = found
    names = dict(ClassWords.objects.values_list("device_class", "display_name"))
    nearest: tuple[Alternative, ...] = ()
    if not why.fits:
        nearest = nearest_to(claim, seen)
    return {
        "why": why,
        "as_of": seen.as_of,
        "told": told(why, mine, names),
        "waits": waiting(why, mine),
        "links": [Link(one, _again(access, claim, one.values)) for one in nearest],
        "usual": usual_times(classes_of(claim), timezone.now())["wait"],
    }


def _again(
    access: Access,
    claim: Claim,
    values: Mapping[str, Value],
    told: Succession | None = None,
) -> str:
    """The address of the form of this claim's template, or of what took its place, filled in."""
    version = told.version if told and told.version else claim.version
    return form_address(
        access.tenant.slug,
        version.template.slug,
        values,
        **entries_of(claim),
    )
