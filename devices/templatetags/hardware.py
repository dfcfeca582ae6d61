"""Template tags about pools, nodes, devices and features: `{% load hardware %}`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import template
from django.template import Context

from devices.catalogue.browsing import ask_of, held_for
from devices.catalogue.classes import Offered
from devices.dra.claims import Claim
from devices.dra.codes import CODES
from devices.dra.describe import quantity_words, told, traits
from devices.dra.features import Capability, Stage
from devices.dra.hardwarefacts import DeviceFacts
from devices.dra.hardwareholders import Held
from devices.dra.hardwarewords import node_taint_words, taint_words
from devices.dra.nodes import NodeTaint
from devices.dra.taints import DeviceTaint
from portal.ui import drawings, words

register = template.Library()


@register.simple_tag(takes_context=True)
def at(context: Context, name: str, *args: str) -> str:
    """`{% at "pool" pool.driver pool.name %}`: the page of whoever looks, tenant or platform."""
    address: str = context["viewer"].url(name, *args)
    return address


@register.simple_tag(takes_context=True)
def holders(context: Context, claims: Iterable[Claim]) -> Held:
    """`{% holders device.holders as who %}`: as far as the viewer may know."""
    return held_for(context["viewer"], tuple(claims))


@register.filter
def ask_id(claim: Claim) -> str:
    """The public id of the ask behind a claim; empty where there is none."""
    return ask_of(claim)


@register.filter
def device_words(device: DeviceFacts) -> str:
    """What a device is, in a few words."""
    return told(device.traits, besides=device.title, most=5)


@register.filter
def group_traits(group: Mapping[str, Any]) -> str:
    """What a group's devices have, in a few words, without their name."""
    found = traits(group.get("attributes") or {}, group.get("capacity") or {})
    return told(found, besides=group.get("title", ""), most=6)


@register.filter
def does(taint: DeviceTaint | NodeTaint) -> str:
    """What a taint does, in words."""
    return taint_words(taint) if isinstance(taint, DeviceTaint) else node_taint_words(taint)


@register.filter
def amounts(taken: Mapping[str, str] | None) -> str:
    """'24 cores, bandwidth 10 Gb/s': what of a shared device is taken."""
    found = (taken or {}).items()
    return ", ".join(trait.words for trait in traits({}, dict(found)))


@register.filter
def of_quantity(value: str, name: str) -> str:
    """A quantity of that name as people read it."""
    return quantity_words(name, value)


@register.filter
def reason(code: str) -> str:
    """A code's words; the code itself where it has none."""
    known = CODES.get(code)
    return known.words if known is not None else code


@register.filter
def why_unknown(offer: Offered) -> str:
    """Why nobody can say what is the largest request that fits."""
    return reason((offer.counts.get("largest") or {}).get("code") or "")


@register.filter
def beyond_core(found: Iterable[Capability]) -> list[Capability]:
    """Features that a class needs beside claims themselves, the least firm first."""
    order = list(Stage)
    more = [one for one in found if one.feature.key != "core"]
    return sorted(more, key=lambda one: -order.index(one.stage))


@register.filter
def wait_words(seconds: float | None) -> str:
    """'11 min'; '?' where too few say."""
    return "?" if seconds is None else words.in_words(words.span(seconds))


@register.filter
def cells(found: Iterable[DeviceFacts]) -> list[drawings.Cell]:
    """`{% berths said devices|cells %}`: one cell a device, with its name."""
    return [drawings.Cell(one.kind, one.key[2]) for one in found]


@register.filter
def served_count(found: Iterable[Capability]) -> int:
    """How many features the cluster serves."""
    return sum(one.served for one in found)


@register.filter
def sources(found: Capability) -> list[str]:
    """By which ways a feature was found out, each once."""
    return list(dict.fromkeys(seen.source for seen in found.evidence))
