"""What-if for the pages: the answers a link carries, and advice in the viewer's words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone

from devices.alternatives import Alternative
from devices.dra.objects import ClaimWish
from devices.dra.template import Value
from devices.forecast import Advice, advise, routed
from devices.forms import PARAMETER
from devices.models import Claim, ClassWords, TemplateVersion
from devices.snippets import extended_pod
from devices.telling import told, waiting
from tenants.access import Access


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
        given |= {"namespace": claim.namespace.name, "name": claim.name}
    for name, value in request.GET.items():
        text = value.replace("\x00", "")
        if name.startswith(PARAMETER):
            given[name] = {"true": True, "false": False}.get(text, text)
        elif name in ("namespace", "name"):
            given[name] = text[:63]
    return given


def form_address(slug: str, template: str, values: Mapping[str, Value], **named: str) -> str:
    """The address of a form that is filled in."""
    answers = {
        PARAMETER + name: str(value).lower() if isinstance(value, bool) else value
        for name, value in values.items()
    }
    return f"{reverse('request-new', args=[slug, template])}?{urlencode({**answers, **named})}"


def advice_for(
    access: Access, version: TemplateVersion, values: Mapping[str, Value], wish: ClaimWish
) -> dict[str, Any]:
    """The context of `devices/_what_if.html` and `devices/_route.html`."""
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
    named = {"namespace": wish.namespace, "name": wish.name}
    route = routed(wish)
    return {
        "advice": advice,
        **in_words(advice, mine),
        "links": [
            Link(one, form_address(access.tenant.slug, version.template.slug, one.values, **named))
            for one in advice.nearest
        ],
        "route": route,
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
