"""What an ask is, in words: one line for lists, and sentences for whoever reads before asking."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from devices.dra.objects import DeviceWish, MatchWish
from devices.dra.restate import restate, shown, spaced
from devices.dra.templates.build import Draft
from devices.dra.templates.content import Template

LONGEST_SUMMARY: Final = 240
SHARING: Final[Mapping[str, str]] = {
    "whole": "Whole devices, for nobody else while they are held.",
    "partition": "A partition of a device, walled off from those beside it.",
    "capacity": "A part of a device; others may hold other parts of it at the same time.",
}


_ATTRIBUTES: Final[Mapping[str, str]] = {
    "resource.kubernetes.io/pcieRoot": "PCIe root",
    "resource.kubernetes.io/numaNode": "NUMA zone",
}
"""What people call the attributes that Kubernetes itself names (KEP-6072)."""


def amount_of(text: str, name: str) -> str:
    """ "24 cores" for "24" of "cpu.example.com/cores", "40 GiB of memory" for "40Gi"."""
    number = shown(text)
    return f"{number}{'' if number.isdecimal() else ' of'} {spaced(name)}"


def summary(template: Template, draft: Draft) -> str:
    """What is asked for, for people: "2 × H100, 1 × RDMA port, same PCIe root".

    First the devices, then the options chosen and what is switched on, in the template's order; at
    most `LONGEST_SUMMARY` characters.
    """
    words = _words(template)
    devices = ", ".join(_many(device, words) for device in draft.devices)
    said = ", ".join([devices, *(one for one in draft.said if one not in devices)])
    return said if len(said) <= LONGEST_SUMMARY else said[: LONGEST_SUMMARY - 1] + "…"


def plainly(template: Template, draft: Draft) -> tuple[str, ...]:
    """The whole ask in sentences, without Kubernetes' own words where there are others."""
    return tuple(_sentences(template, draft))


def ranked(template: Template, draft: Draft) -> tuple[tuple[str, ...], ...]:
    """The alternatives of each request that has some, in the order in which they are tried."""
    words = _words(template)
    return tuple(
        tuple(_one(one, words[f"{device.name}/{one.name}"]) for one in device.alternatives)
        for device in draft.devices
        if device.alternatives
    )


def _sentences(template: Template, draft: Draft) -> Iterator[str]:
    words = _words(template)
    kinds = {request.name: request.sharing for request in template.requests}
    for device in draft.devices:
        first, *others = device.asks
        yield f"{_asked(first, _name_of(device, first), words)}."
        for one in others:
            other = _asked(one, _name_of(device, one), words)
            yield f"Where a node cannot give that: {other}."
        yield SHARING[kinds[device.name]]
    for match in draft.matches:
        yield f"{_together(match, words)}."
    drivers = sorted({config.driver for config in draft.configs})
    if drivers:
        yield f"Settings of the template go to {' and '.join(drivers)}."
    if template.shared:
        most = template.pods or 256
        yield f"One claim for all Pods that name it, at most {most} at the same time."
    else:
        yield "Each Pod gets devices of its own when it starts, and gives them back when it ends."


def _asked(ask: DeviceWish, name: str, words: Mapping[str, str]) -> str:
    text = f"{_one(ask, words[name])} of class {ask.device_class}"
    if ask.capacity:
        amounts = [amount_of(amount, key) for key, amount in ask.capacity]
        text += f", {' and '.join(amounts)}{' of each' if ask.count > 1 else ''}"
    if ask.selectors:
        text += f", with {' and '.join(restate(one) or one for one in ask.selectors)}"
    if ask.tolerations:
        taints = [f"{one.key or 'anything'}" for one in ask.tolerations]
        text += f", also where it is marked {' or '.join(taints)}"
    return text


def _together(match: MatchWish, words: Mapping[str, str]) -> str:
    asked = list(dict.fromkeys(words[name] for name in match.requests)) or ["All devices"]
    who = " and ".join(asked)
    attribute = _ATTRIBUTES.get(match.attribute) or spaced(match.attribute)
    if match.distinct:
        return f"{who}: no two with the same {attribute}"
    return f"{who}: all with the same {attribute}"


def _many(device: DeviceWish, words: Mapping[str, str]) -> str:
    return ", else ".join(_one(one, words[_name_of(device, one)]) for one in device.asks)


def _one(ask: DeviceWish, words: str) -> str:
    return f"{ask.count} × {words}"


def _name_of(device: DeviceWish, ask: DeviceWish) -> str:
    return f"{device.name}/{ask.name}" if device.alternatives else device.name


def _words(template: Template) -> dict[str, str]:
    """What people call each request and alternative."""
    words = {request.name: request.words for request in template.requests}
    for request in template.requests:
        words |= {f"{request.name}/{one.name}": one.words for one in request.alternatives}
    return words
