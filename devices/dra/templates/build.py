"""A template and checked answers → requests, constraints and configuration, and whole objects.

Fragments that the author wrote are put beside each other; nothing is ever put together out of text
and a tenant's value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from devices.dra.objects import (
    ClaimWish,
    ConfigWish,
    DeviceWish,
    MatchWish,
    Obj,
    Shape,
    claim_objects,
)
from devices.dra.quantity import parse
from devices.dra.taints import Toleration
from devices.dra.templates.conditions import holds
from devices.dra.templates.content import (
    Alternative,
    Amount,
    Choice,
    ConfigPart,
    ConstraintPart,
    Count,
    Fragments,
    Parameter,
    Request,
    Switch,
    Template,
    TolerationPart,
    Value,
)
from devices.dra.templates.pointers import placed

Part = TypeVar("Part")
EXAMPLE: Final = "example"
"""Stands for names and ids that only a real ask has."""


@dataclass(frozen=True, slots=True)
class Draft:
    """What answers make: requests, constraints, configuration.

    `said` is what the answers add in words to the devices' own.
    """

    devices: tuple[DeviceWish, ...]
    matches: tuple[MatchWish, ...] = ()
    configs: tuple[ConfigWish, ...] = ()
    said: tuple[str, ...] = ()

    def each(self, change: Callable[[DeviceWish, str], DeviceWish]) -> Draft:
        """With every ask changed; `change` gets it and its full name ("gpu" or "gpu/small")."""
        return replace(self, devices=tuple(_changed(device, change) for device in self.devices))

    def saying(self, words: str) -> Draft:
        return replace(self, said=(*self.said, words))


def shape_of(template: Template) -> Shape:
    """One claim that Pods share, or a template from which each Pod gets its own."""
    return Shape.CLAIM if template.shared else Shape.TEMPLATE


def build(template: Template, values: Mapping[str, Value]) -> Draft:
    """The requests and constraints for checked values (from `answers` or `settle`)."""
    asked = [request for request in template.requests if holds(request.when, values)]
    draft = Draft(tuple(_wish(request) for request in asked))
    constraints, configs = list(template.constraints), list(template.config)
    for parameter in template.parameters:
        if parameter.name in values:
            draft = _apply(draft, parameter, values[parameter.name])
            if (fragments := _fragments(parameter, values[parameter.name])) is not None:
                draft = _added(draft, fragments)
                constraints += fragments.constraints
                configs += fragments.config
    names = {name for device in draft.devices for name in _names(device)}
    matches = (_match(part, names, values) for part in constraints)
    made = (_config(part, names, values) for part in configs)
    return replace(
        draft,
        matches=tuple(dict.fromkeys(one for one in matches if one is not None)),
        configs=tuple(one for one in made if one is not None),
    )


def claim_wish(
    template: Template,
    draft: Draft,
    *,
    name: str,
    namespace: str,
    tenant: str,
    public_id: str = EXAMPLE,
    request_id: str = EXAMPLE,
) -> ClaimWish:
    """The ask that a draft of the template makes, under these names."""
    return ClaimWish(
        public_id=public_id,
        tenant=tenant,
        namespace=namespace,
        name=name,
        request_id=request_id,
        shape=shape_of(template),
        devices=draft.devices,
        matches=draft.matches,
        configs=draft.configs,
    )


def render(
    template: Template,
    values: Mapping[str, Value],
    *,
    name: str = EXAMPLE,
    namespace: str = EXAMPLE,
    tenant: str = EXAMPLE,
) -> list[Obj]:
    """The objects of an ask with these answers, as they would be applied."""
    draft = build(template, values)
    return claim_objects(claim_wish(template, draft, name=name, namespace=namespace, tenant=tenant))


# --- what one answer does -------------------------------------------------------------------------


def _apply(draft: Draft, parameter: Parameter, value: Value) -> Draft:
    match parameter:
        case Choice():
            return draft.saying(parameter.option(value).label)
        case Count():
            if not parameter.request:
                return draft
            return draft.each(
                lambda ask, name: (
                    replace(ask, count=int(value)) if _means(parameter.request, name) else ask
                )
            )
        case Amount():
            amount = str(parse(str(value)))
            draft = draft.saying(parameter.words(value))
            return draft.each(
                lambda ask, name: (
                    _holding(ask, {parameter.capacity: amount})
                    if _means(parameter.request, name)
                    else ask
                )
            )
        case Switch():
            return draft.saying(_in_mid_sentence(parameter.label)) if value else draft


def _fragments(parameter: Parameter, value: Value) -> Fragments | None:
    match parameter:
        case Choice():
            return parameter.option(value)
        case Switch() if value:
            return parameter
    return None


def _added(draft: Draft, part: Fragments) -> Draft:
    ordered = [_ordered(device, part.alternatives) for device in draft.devices]
    return replace(draft, devices=tuple(ordered)).each(lambda ask, name: _with(ask, name, part))


def _with(ask: DeviceWish, name: str, part: Fragments) -> DeviceWish:
    ask = replace(
        ask,
        device_class=_last(part.device_class, name, ask.device_class),
        count=_last(part.count, name, ask.count),
        selectors=(*ask.selectors, *_all(part.selectors, name)),
        tolerations=(*ask.tolerations, *map(_toleration, _all(part.tolerations, name))),
    )
    for wanted, capacity in part.capacity.items():
        if _means(wanted, name):
            ask = _holding(ask, capacity)
    return ask


def _ordered(device: DeviceWish, orders: Mapping[str, tuple[str, ...]]) -> DeviceWish:
    order = orders.get(device.name)
    if order is None:
        return device
    known = {one.name: one for one in device.alternatives}
    return replace(device, alternatives=tuple(known[name] for name in order if name in known))


def _changed(device: DeviceWish, change: Callable[[DeviceWish, str], DeviceWish]) -> DeviceWish:
    if not device.alternatives:
        return change(device, device.name)
    alternatives = [change(one, f"{device.name}/{one.name}") for one in device.alternatives]
    return replace(device, alternatives=tuple(alternatives))


def _holding(ask: DeviceWish, capacity: Mapping[str, str]) -> DeviceWish:
    amounts = {name: str(parse(text)) for name, text in capacity.items()}
    return replace(ask, capacity=tuple({**dict(ask.capacity), **amounts}.items()))


def _names(device: DeviceWish) -> tuple[str, ...]:
    return (device.name, *(f"{device.name}/{one.name}" for one in device.alternatives))


# --- parts ----------------------------------------------------------------------------------------


def _wish(request: Request) -> DeviceWish:
    if request.alternatives:
        asks = tuple(_ask(one) for one in request.alternatives)
        return DeviceWish(request.name, alternatives=asks)
    return _ask(request)


def _ask(part: Request | Alternative) -> DeviceWish:
    ask = DeviceWish(
        part.name,
        part.device_class,
        part.count,
        part.selectors,
        tolerations=tuple(map(_toleration, part.tolerations)),
    )
    return _holding(ask, part.capacity)


def _toleration(part: TolerationPart) -> Toleration:
    return Toleration(part.key, part.operator, part.value, part.effect, part.seconds)


def _match(
    part: ConstraintPart, names: Iterable[str], values: Mapping[str, Value]
) -> MatchWish | None:
    """None where its condition does not hold, or none of its requests is made."""
    requests = tuple(name for name in part.requests if name in names)
    if not holds(part.when, values) or (part.requests and not requests):
        return None
    distinct = bool(part.distinct_attribute)
    return MatchWish(part.distinct_attribute or part.match_attribute, requests, distinct)


def _config(
    part: ConfigPart, names: Iterable[str], values: Mapping[str, Value]
) -> ConfigWish | None:
    requests = tuple(name for name in part.requests if name in names)
    if not holds(part.when, values) or (part.requests and not requests):
        return None
    parameters = part.parameters
    for pointer, name in part.values.items():
        if name in values:
            parameters = placed(parameters, pointer, values[name])
    return ConfigWish(part.driver, parameters, requests)


def _means(wanted: str, name: str) -> bool:
    """Whether "gpu" or "gpu/small" means the ask of the full name "gpu/small"."""
    return name == wanted or name.startswith(f"{wanted}/")


def _all(parts: Mapping[str, tuple[Part, ...]], name: str) -> tuple[Part, ...]:
    return tuple(one for wanted, some in parts.items() if _means(wanted, name) for one in some)


def _last(parts: Mapping[str, Part], name: str, otherwise: Part) -> Part:
    """What the fragments say of this ask; its own name counts more than its request's."""
    return parts.get(name, parts.get(name.partition("/")[0], otherwise))


def _in_mid_sentence(label: str) -> str:
    """ "Same PCIe root" → "same PCIe root"; "NUMA zone" keeps its capitals."""
    return label[:1].lower() + label[1:] if label[1:2].islower() else label
