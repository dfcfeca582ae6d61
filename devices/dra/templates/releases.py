"""Whether every supported release takes what a template makes, and what must be on for it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from devices.dra.claims import MOST_DEVICES
from devices.dra.gates import ON_BY_DEFAULT, RELEASES, SINCE, Gates, gates
from devices.dra.objects import DeviceWish
from devices.dra.selector import why_refused
from devices.dra.templates.build import Draft
from devices.dra.templates.content import Template
from devices.dra.templates.findings import Finding, Need, Severity
from devices.dra.templates.places import capacities, constraints, selectors

#: Limits of resource/v1 (types.go): lists, and bytes of a driver's settings.
MOST_ENTRIES: Final = 32
MOST_ALTERNATIVES: Final = 8
MOST_TOLERATIONS: Final = 16
LONGEST_SETTINGS: Final = 10 * 1024


def needs(
    template: Template, drafts: Sequence[Draft], cluster: Gates | None
) -> Iterator[tuple[Need, str]]:
    """The features that what is made relies on, each with the path of what needs it."""
    for gate, why, path in _features(template, drafts):
        since = next((one for one in RELEASES if one in ON_BY_DEFAULT[gate]), SINCE.get(gate, ""))
        state = "unknown" if cluster is None else "on" if gate in cluster else "off"
        yield Need(gate, why, since, state, cluster is not None and gate in cluster.read), path


def _features(template: Template, drafts: Sequence[Draft]) -> Iterator[tuple[str, str, str]]:
    asks = [ask for draft in drafts for device in draft.devices for ask in device.asks]
    for number, request in enumerate(template.requests):
        if request.alternatives:
            path = f"requests[{number}].alternatives"
            yield "DRAPrioritizedList", "alternatives in order", path
            break
    if any(ask.capacity for ask in asks):
        path = next(iter(capacities(template).values()), "")
        yield "DRAConsumableCapacity", "an amount of a capacity", path
    elif any(match.distinct for draft in drafts for match in draft.matches):
        path = next(p for p in constraints(template).values() if p.endswith("distinct_attribute"))
        yield "DRAConsumableCapacity", "devices that differ in an attribute", path
    if any(ask.tolerations for ask in asks):
        yield "DRADeviceTaints", "tolerations of device taints", ""
    for number, request in enumerate(template.requests):
        if request.sharing == "partition":
            yield "DRAPartitionableDevices", "partitions of devices", f"requests[{number}].sharing"
            break


def of_gates(found: Iterable[tuple[Need, str]]) -> Iterator[Finding]:
    """What a cluster without a feature does, and which releases are without it by default."""
    for need, path in found:
        off = [release for release in RELEASES if release not in ON_BY_DEFAULT[need.gate]]
        if need.state == "off":
            yield Finding(
                "GATE_OFF",
                Severity.ERROR,
                f"This cluster does not have {need.gate} on, so {need.why} would be dropped from "
                "every object without a word.",
                f"Turn {need.gate} on in the API server and the scheduler, or do without.",
                path,
            )
        if off:
            yield Finding(
                "FIELD_DROPPED",
                Severity.NOTE,
                f"By default Kubernetes {', '.join(off)} does without {need.why}: {need.gate} is "
                "off there, and what asks for it is dropped or never served.",
                f"Before this template is used there, turn {need.gate} on.",
                path,
                ", ".join(off),
            )


def of_expressions(template: Template, cluster: Gates | None) -> Iterator[Finding]:
    """Expressions that an API server would refuse, and in which releases."""
    for text, path in selectors(template).items():
        refused: dict[str, list[str]] = {}
        for release in RELEASES:
            here = cluster is not None and cluster.release == release
            if why := why_refused(text, cluster if here else gates(release)):
                refused.setdefault(why, []).append(release)
        for why, some in refused.items():
            everywhere = len(some) == len(RELEASES)
            here = cluster is not None and cluster.release in some
            where = "" if everywhere else f" of {', '.join(some)}"
            yield Finding(
                "SELECTOR_REFUSED",
                Severity.ERROR if everywhere or here else Severity.WARNING,
                f"The API server{where} refuses “{text}”: {why}.",
                "Correct the expression; the playground shows its answer for every device.",
                path,
                "" if everywhere else ", ".join(some),
            )


def of_limits(drafts: Sequence[Draft]) -> Iterator[Finding]:
    """What is longer than the API's lists, and more devices than a claim can hold."""
    for draft in drafts:
        least = sum(min(ask.count for ask in device.asks) for device in draft.devices)
        if least > MOST_DEVICES:
            yield Finding(
                "TOO_MANY_DEVICES",
                Severity.ERROR,
                f"Some answers ask for {least} devices; a claim never holds more than "
                f"{MOST_DEVICES}.",
                "Lower the maximum of a count.",
                "parameters",
            )
        yield from _too_long("requests", len(draft.devices), MOST_ENTRIES, "requests")
        yield from _too_long("constraints", len(draft.matches), MOST_ENTRIES, "constraints")
        yield from _too_long("settings", len(draft.configs), MOST_ENTRIES, "config")
        for device in draft.devices:
            yield from _of_asks(device)
        for config in draft.configs:
            size = len(json.dumps(config.parameters).encode())
            yield from _too_long("bytes of settings", size, LONGEST_SETTINGS, "config")


def _of_asks(device: DeviceWish) -> Iterator[Finding]:
    alternatives = len(device.alternatives)
    yield from _too_long("alternatives", alternatives, MOST_ALTERNATIVES, "requests")
    for ask in device.asks:
        yield from _too_long("selectors", len(ask.selectors), MOST_ENTRIES, "requests")
        yield from _too_long("tolerations", len(ask.tolerations), MOST_TOLERATIONS, "requests")


def _too_long(noun: str, length: int, most: int, path: str) -> Iterator[Finding]:
    if length > most:
        yield Finding(
            "OVER_API_LIMIT",
            Severity.ERROR,
            f"Some answers make {length} {noun}; the API takes {most}.",
            "Leave some out.",
            path,
        )
