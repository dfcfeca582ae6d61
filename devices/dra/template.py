"""Approved templates: typed parameters and what each value does to the request. Pure.

A value that a tenant chooses never becomes CEL or YAML text. A choice carries its fragments, which
the template's author wrote; a number is placed as a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from devices.dra.objects import DeviceWish, MatchWish

Value = str | int | bool
LONGEST_SUMMARY = 240


class BadValue(Exception):
    """Values that the template does not allow; `fields` says per parameter what would be right."""

    def __init__(self, fields: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {text}" for name, text in fields.items()))
        self.fields = dict(fields)


class Option(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One answer to a choice.

    `selectors` adds CEL by request name; `device_class` replaces the class by request name.
    """

    value: str
    label: str
    words: str = ""
    selectors: dict[str, tuple[str, ...]] = {}
    device_class: dict[str, str] = {}


class Choice(msgspec.Struct, frozen=True, tag="choice", tag_field="kind"):
    """One of several options, shown as radio cards."""

    name: str
    label: str
    options: tuple[Option, ...]
    default: str
    help: str = ""

    def value(self, raw: Any) -> str:
        """The chosen option's value, or ValueError with a sentence."""
        if raw in {option.value for option in self.options}:
            return str(raw)
        raise ValueError(f"Choose one of {', '.join(option.value for option in self.options)}.")

    def apply(self, draft: Draft, value: Value) -> Draft:
        option = next(option for option in self.options if option.value == value)
        return draft.saying(option.label).each(
            lambda device: replace(
                device,
                device_class=option.device_class.get(device.name, device.device_class),
                selectors=device.selectors + option.selectors.get(device.name, ()),
            )
        )

    def words(self, value: Value) -> str:
        return next(option.label for option in self.options if option.value == value)


class Count(msgspec.Struct, frozen=True, tag="count", tag_field="kind"):
    """How many devices a request asks for."""

    name: str
    label: str
    request: str
    maximum: int
    minimum: int = 1
    default: int = 1
    help: str = ""

    def value(self, raw: Any) -> int:
        """A whole number within the bounds, or ValueError with a sentence."""
        try:
            number = int(raw) if not isinstance(raw, bool | float) else None
        except (TypeError, ValueError):
            number = None
        if number is None or not self.minimum <= number <= self.maximum:
            raise ValueError(self.bounds)
        return number

    @property
    def bounds(self) -> str:
        """What is allowed, as a sentence."""
        return f"Give a whole number from {self.minimum} to {self.maximum}."

    def apply(self, draft: Draft, value: Value) -> Draft:
        return draft.each(
            lambda device: (
                replace(device, count=int(value)) if device.name == self.request else device
            )
        )

    def words(self, value: Value) -> str:
        return str(value)


class Switch(msgspec.Struct, frozen=True, tag="switch", tag_field="kind"):
    """On or off. On adds selectors, and may ask for one shared attribute value."""

    name: str
    label: str
    default: bool = False
    help: str = ""
    selectors: dict[str, tuple[str, ...]] = {}
    match_attribute: str = ""
    match_requests: tuple[str, ...] = ()

    def value(self, raw: Any) -> bool:
        """True or false, or ValueError with a sentence. Browsers send "on" or nothing."""
        if raw in (True, "on", "true"):
            return True
        if raw in (False, None, "", "false"):
            return False
        raise ValueError("Give true or false.")

    def apply(self, draft: Draft, value: Value) -> Draft:
        if not value:
            return draft
        draft = draft.saying(_in_mid_sentence(self.label)).each(
            lambda device: replace(
                device, selectors=device.selectors + self.selectors.get(device.name, ())
            )
        )
        if self.match_attribute:
            match = MatchWish(self.match_attribute, self.match_requests)
            draft = replace(draft, matches=(*draft.matches, match))
        return draft

    def words(self, value: Value) -> str:
        return "yes" if value else "no"


Parameter = Choice | Count | Switch


class Request(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A request before any parameter acts on it."""

    name: str
    device_class: str
    words: str
    count: int = 1
    selectors: tuple[str, ...] = ()


class Template(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a template version's JSON holds: the parameters people answer and the requests made.

    `shared` is one claim for several Pods, at most `pods` of them at once (None: as many as
    Kubernetes takes, 256).
    """

    requests: tuple[Request, ...]
    parameters: tuple[Parameter, ...] = ()
    shared: bool = False
    pods: int | None = None

    @property
    def device_classes(self) -> frozenset[str]:
        """Every class that some answer can lead to."""
        classes = {request.device_class for request in self.requests}
        for parameter in self.parameters:
            if isinstance(parameter, Choice):
                for option in parameter.options:
                    classes.update(option.device_class.values())
        return frozenset(classes)


@dataclass(frozen=True, slots=True)
class Draft:
    """Requests and constraints while parameters act on them, one after the other.

    `said` is what the answers add in words to the devices' own.
    """

    devices: tuple[DeviceWish, ...]
    matches: tuple[MatchWish, ...] = ()
    said: tuple[str, ...] = ()

    def each(self, change: Any) -> Draft:
        return replace(self, devices=tuple(change(device) for device in self.devices))

    def saying(self, words: str) -> Draft:
        return replace(self, said=(*self.said, words))


def read_template(data: Mapping[str, Any]) -> Template:
    """A version's JSON → Template. Raises `msgspec.ValidationError` with path and reason."""
    return msgspec.convert(data, Template)


def answers(template: Template, raw: Mapping[str, Any]) -> dict[str, Value]:
    """Checked values by parameter; a missing one takes its default.

    Raises `BadValue` for every value that is not allowed and for names the template does not know.
    """
    wrong: dict[str, str] = {}
    values: dict[str, Value] = {}
    for parameter in template.parameters:
        try:
            values[parameter.name] = parameter.value(raw.get(parameter.name, parameter.default))
        except ValueError as error:
            wrong[parameter.name] = str(error)
    known = {parameter.name for parameter in template.parameters}
    for name in sorted(set(raw) - known):
        wrong[name] = f"This template has no such parameter; it has {', '.join(sorted(known))}."
    if wrong:
        raise BadValue(wrong)
    return values


def build(template: Template, values: Mapping[str, Value]) -> Draft:
    """The requests and constraints for checked values (from `answers`)."""
    draft = Draft(
        tuple(
            DeviceWish(request.name, request.device_class, request.count, request.selectors)
            for request in template.requests
        )
    )
    for parameter in template.parameters:
        draft = parameter.apply(draft, values[parameter.name])
    return draft


def summary(template: Template, draft: Draft) -> str:
    """What is asked for, for people: "2 × H100, 1 × RDMA port, same PCIe root".

    First the devices, then the options chosen and what is switched on, in the template's order; at
    most `LONGEST_SUMMARY` characters.
    """
    words = {request.name: request.words for request in template.requests}
    devices = [f"{device.count} × {words[device.name]}" for device in draft.devices]
    said = ", ".join([*devices, *draft.said])
    return said if len(said) <= LONGEST_SUMMARY else said[: LONGEST_SUMMARY - 1] + "…"


def _in_mid_sentence(label: str) -> str:
    """ "Same PCIe root" → "same PCIe root"; "NUMA zone" keeps its capitals."""
    return label[:1].lower() + label[1:] if label[1:2].islower() else label
