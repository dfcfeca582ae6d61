"""What the devices of this cluster say of the amounts in an ask, for its page."""

from __future__ import annotations

from dataclasses import dataclass

from devices.dra.templates import Draft, Template
from devices.dra.templates.amounts import sentences
from devices.forecasts.warm import warm


@dataclass(frozen=True, slots=True)
class Amounts:
    """One request that asks for a part of a device: what it is called, and what holds for it."""

    words: str
    said: tuple[str, ...]


def amounts_of(template: Template, draft: Draft) -> list[Amounts]:
    """For every ask with an amount; empty where the cluster was never seen."""
    seen = warm()
    if seen is None:
        return []
    words = {request.name: request.words for request in template.requests}
    return [
        Amounts(words[device.name], sentences(seen.now, ask, shared=template.shared))
        for device in draft.devices
        for ask in device.asks
        if ask.capacity
    ]
