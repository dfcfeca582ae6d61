"""What a template's requests meet in a cluster: classes, selectors, constraints, amounts. Pure.

An expression that fails on a single device ends the scheduling of the whole Pod, so each is asked
of every device, and of each kind of device with one attribute taken away.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from devices.dra.claims import Ask
from devices.dra.claims import Request as ClaimRequest
from devices.dra.matching import Broken, selector
from devices.dra.objects import DeviceWish
from devices.dra.pools import pools
from devices.dra.requests import Failure, Want, answers
from devices.dra.restate import shown, spaced
from devices.dra.selector import Fault, Selector
from devices.dra.slices import Device
from devices.dra.snapshot import Snapshot
from devices.dra.templates.amounts import kinds_of, told
from devices.dra.templates.build import Draft
from devices.dra.templates.content import Template
from devices.dra.templates.findings import Finding, Severity
from devices.dra.templates.places import capacities, classes, constraints, drivers, selectors

GUARD: Final = 'Ask first whether it is there: “.?name.orValue(…)”, or “"name" in …” before it.'


@dataclass(frozen=True, slots=True)
class Met:
    """The devices that one ask selects: how many, and one of each kind, with its driver.

    ``failures`` counts the devices on which the selectors fail, by what goes wrong.
    """

    ask: DeviceWish
    devices: int
    kinds: tuple[tuple[str, Device], ...]
    failures: Mapping[Failure, int]
    example: Mapping[Failure, str]


def of_hardware(
    template: Template, drafts: Sequence[Draft], snapshot: Snapshot
) -> Iterator[Finding]:
    """Everything that is wrong between what is asked for and the devices there are."""
    where = classes(template)
    met: dict[object, Met] = {}
    for ask in _asks(drafts):
        if ask.device_class not in snapshot.classes:
            yield Finding(
                "CLASS_MISSING",
                Severity.ERROR,
                f"This cluster has no device class {ask.device_class}.",
                f"Take one of {', '.join(sorted(snapshot.classes)) or 'none'}.",
                where.get(ask.device_class, ""),
            )
        else:
            key = (ask.device_class, ask.selectors)
            met.setdefault(key, _met(snapshot, ask))
    for one in met.values():
        yield from _of_selectors(template, snapshot, one)
    yield from _of_constraints(template, drafts, met)
    yield from _of_amounts(template, drafts, snapshot)
    yield from _of_sharing(template, drafts, snapshot)
    known = {pool.driver for pool in pools(snapshot).values()}
    for driver, path in drivers(template).items():
        if driver not in known:
            yield Finding(
                "DRIVER_NOT_SEEN",
                Severity.WARNING,
                f"No device of this cluster is published by {driver}, which is handed settings.",
                f"Drivers seen are {', '.join(sorted(known)) or 'none'}.",
                path,
            )


def _asks(drafts: Iterable[Draft]) -> Iterator[DeviceWish]:
    yield from dict.fromkeys(
        ask for draft in drafts for device in draft.devices for ask in device.asks
    )


def _met(snapshot: Snapshot, wish: DeviceWish) -> Met:
    ask = Ask(wish.name, wish.device_class, wish.selectors)
    want = Want(0, ClaimRequest(wish.name, ask), ask, snapshot.classes[wish.device_class])
    rows = answers(snapshot, want)
    kinds: dict[object, tuple[str, Device]] = {}
    failures: Counter[Failure] = Counter()
    example: dict[Failure, str] = {}
    devices = 0
    for pool in pools(snapshot).values():
        for piece in pool.slices:
            for device, answer in zip(piece.devices, rows.of(piece), strict=True):
                if isinstance(answer, Failure):
                    failures[answer] += 1
                    example.setdefault(answer, f"{pool}/{device.name}")
                elif answer:
                    devices += 1
                    key = (piece.driver, tuple(device.attributes), tuple(device.capacity))
                    kinds.setdefault(key, (piece.driver, device))
    return Met(wish, devices, tuple(kinds.values()), failures, example)


# --- selectors ------------------------------------------------------------------------------------


def _of_selectors(template: Template, snapshot: Snapshot, met: Met) -> Iterator[Finding]:
    paths, ask = selectors(template), met.ask
    where = classes(template).get(ask.device_class, "")
    for failure, times in met.failures.items():
        if failure.unmodelled or not (failure.compiles or failure.of_class):
            continue  # the API server refuses it, which is said elsewhere
        text = "" if failure.of_class else ask.selectors[failure.index]
        what = f"The class {ask.device_class}" if failure.of_class else f"“{text}”"
        yield Finding(
            "SELECTOR_FAILS",
            Severity.ERROR,
            f"{what} fails on {_many(times, 'device')}, such as {met.example[failure]}: "
            f"{failure.why}. That ends the scheduling of any Pod that asks for it.",
            "Have the class's selector corrected." if failure.of_class else GUARD,
            where if failure.of_class else paths.get(text, ""),
        )
    if not met.devices and not met.failures:
        said = f" with {' and '.join(f'“{text}”' for text in ask.selectors)}" * bool(ask.selectors)
        last = paths.get(ask.selectors[-1], where) if ask.selectors else where
        yield Finding(
            "NOTHING_MATCHES",
            Severity.WARNING,
            f"This cluster has no device of class {ask.device_class}{said}.",
            "Leave the option out until there is one, or correct it.",
            last,
        )
    yield from _unguarded(snapshot, met, paths)


def _unguarded(snapshot: Snapshot, met: Met, paths: Mapping[str, str]) -> Iterator[Finding]:
    """Expressions that would fail on a device of the class that lacks one attribute."""
    ours = _compiled(snapshot, met.ask.selectors)
    of_class = _compiled(snapshot, snapshot.classes[met.ask.device_class].selectors)
    seen: set[tuple[str, str]] = set()
    for driver, device in met.kinds:
        for expression, compiled in ours.items():
            for name in compiled.names(driver)[0]:
                if name not in device.attributes or (expression, name) in seen:
                    continue
                left = {key: value for key, value in device.attributes.items() if key != name}
                poorer = device._replace(attributes=left)
                belongs = all(one.matches(poorer, driver) is True for one in of_class.values())
                if belongs and isinstance(compiled.matches(poorer, driver), Fault):
                    seen.add((expression, name))
                    yield Finding(
                        "SELECTOR_UNGUARDED",
                        Severity.WARNING,
                        f"“{expression}” fails on a device of class {met.ask.device_class} that "
                        f"does not publish {spaced(name)}. All devices seen publish it today.",
                        GUARD,
                        paths.get(expression, ""),
                    )


def _compiled(snapshot: Snapshot, texts: Iterable[str | None]) -> dict[str, Selector]:
    found = {text: selector(snapshot, text) for text in texts if text is not None}
    return {text: one for text, one in found.items() if not isinstance(one, Broken)}


# --- constraints, amounts, sharing ----------------------------------------------------------------


def _of_constraints(
    template: Template, drafts: Sequence[Draft], met: Mapping[object, Met]
) -> Iterator[Finding]:
    paths = constraints(template)
    for draft in drafts:
        for match in draft.matches:
            for device in draft.devices:
                for ask in device.asks:
                    names = {device.name, f"{device.name}/{ask.name}"}
                    known = met.get((ask.device_class, ask.selectors))
                    bound = not match.requests or names & set(match.requests)
                    if known is None or not bound or not known.kinds:
                        continue
                    if any(_has(one, driver, match.attribute) for driver, one in known.kinds):
                        continue
                    yield Finding(
                        "ATTRIBUTE_NOT_PUBLISHED",
                        Severity.WARNING,
                        f"No device of class {ask.device_class} publishes {match.attribute}, so "
                        "none can satisfy the constraint.",
                        "Take an attribute that the drivers publish, or leave the constraint out.",
                        paths.get(match.attribute, ""),
                    )


def _has(device: Device, driver: str, attribute: str) -> bool:
    domain, _, short = attribute.rpartition("/")
    return attribute in device.attributes or (domain == driver and short in device.attributes)


def _of_amounts(
    template: Template, drafts: Sequence[Draft], snapshot: Snapshot
) -> Iterator[Finding]:
    paths = capacities(template)
    for ask in _asks(drafts):
        if not ask.capacity or not kinds_of(snapshot, ask.device_class):
            continue
        path = paths.get(ask.capacity[0][0], "")
        said = " and ".join(f"{shown(text)} of {spaced(name)}" for name, text in ask.capacity)
        answers_ = told(snapshot, ask)
        taking = [one for one in answers_ if one.taken is not None]
        if not taking:
            yield Finding(
                "CAPACITY_NOT_OFFERED",
                Severity.ERROR,
                f"No device of class {ask.device_class} gives {said}: none has that capacity, or "
                "its policy forbids the amount.",
                "Take a capacity and bounds that the devices publish.",
                path,
            )
            continue
        for one in taking:
            assert one.taken is not None
            more = [name for name, text in ask.capacity if str(one.taken[name]) != text]
            where = _many(one.kind.devices, "device")
            for name in more:
                yield Finding(
                    "CAPACITY_ROUNDED",
                    Severity.NOTE,
                    f"{said} becomes {shown(str(one.taken[name]))} on {where}.",
                    "Choose a minimum and a step that the devices use, and nobody is surprised.",
                    paths.get(name, ""),
                )


def _of_sharing(
    template: Template, drafts: Sequence[Draft], snapshot: Snapshot
) -> Iterator[Finding]:
    number = {request.name: index for index, request in enumerate(template.requests)}
    kinds = {request.name: request.sharing for request in template.requests}
    made = dict.fromkeys(
        (device.name, ask.device_class)
        for draft in drafts
        for device in draft.devices
        for ask in device.asks
    )
    for name, device_class in made:
        found = kinds_of(snapshot, device_class)
        shareable, parts = any(one.shareable for one in found), any(one.partition for one in found)
        match kinds[name]:
            case "whole" if shareable:
                text = "Several may hold one device of class {}, and the template says whole."
            case "capacity" if found and not shareable:
                text = "No device of class {} is shared by capacity, and the template says so."
            case "partition" if found and not parts:
                text = "No device of class {} is a partition of another, and the template says so."
            case _:
                continue
        yield Finding(
            "SHARING_DIFFERS",
            Severity.WARNING,
            text.format(device_class),
            "Say what the devices are: whole, partition or capacity.",
            f"requests[{number[name]}].sharing",
        )


def _many(number: int, noun: str) -> str:
    return f"one {noun}" if number == 1 else f"{number} {noun}s"
