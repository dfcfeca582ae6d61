"""What a cluster serves, feature by feature: how stable it is, how that was found out, and what
Berth does without it. Pure.

A gate is a process flag of each component. What the API server serves can be read; the gates of the
scheduler, the controller manager and the kubelet cannot, so that somebody says how they are set, or
the default of the release is taken, and both are shown as *assumed*.
Sources: ``pkg/features/kube_features.go`` and the KEPs that are named.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from devices.dra.features_table import FEATURES, LOCKED, Component, Feature
from devices.dra.gates import NEWEST, ON_BY_DEFAULT, RELEASES


class Stage(StrEnum):
    """How far one may rely on a feature in this cluster, the firmest first."""

    STABLE = "stable"
    BETA = "beta"
    ALPHA = "alpha"
    DRIVER = "driver-specific"
    NOT_SERVED = "not served"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read of the API server about one gate, kind or field: ``state`` is on, off, absent
    or unknown; ``source`` is metric, discovery or openapi; ``stage`` is empty where it says none.
    """

    state: str
    source: str
    stage: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Said:
    """What somebody of the platform says of a gate of a component."""

    on: bool
    by: str = ""
    note: str = ""


Readings = Mapping[str, Reading]
Sayings = Mapping[tuple[Component, str], Said]


@dataclass(frozen=True, slots=True)
class Evidence:
    """One thing that a verdict rests on, in words; ``source`` is metric, discovery, OpenAPI,
    release (the default of the release) or said (by the platform).
    """

    source: str
    words: str


@dataclass(frozen=True, slots=True)
class Capability:
    """One feature in this cluster. ``assumed`` names the components whose gate nobody could read;
    ``said`` are those of them about which the platform has said something.
    """

    feature: Feature
    stage: Stage
    evidence: tuple[Evidence, ...] = ()
    assumed: tuple[Component, ...] = ()
    said: tuple[Component, ...] = ()

    @property
    def served(self) -> bool:
        return self.stage not in (Stage.NOT_SERVED, Stage.UNKNOWN)


def capabilities(
    readings: Readings, release: str = NEWEST, sayings: Sayings | None = None
) -> tuple[Capability, ...]:
    """Every feature in the order of the table."""
    known = _known(release)
    return tuple(_judge(feature, readings, known, sayings or {}) for feature in FEATURES)


def by_gate(found: Iterable[Capability]) -> Mapping[str, Capability]:
    """Capabilities by the gate that each of them is about first."""
    return {one.feature.gates[0]: one for one in found if one.feature.gates}


def weakest(found: Iterable[Capability]) -> Stage:
    """How far one may rely on all of them together; stable for none."""
    order = list(Stage)
    return max((one.stage for one in found), key=order.index, default=Stage.STABLE)


def _judge(feature: Feature, readings: Readings, release: str, sayings: Sayings) -> Capability:
    evidence: list[Evidence] = []
    stages: list[Stage] = []
    for gate in feature.gates:
        stages.append(_of_gate(gate, readings.get(gate), evidence))
    for kind in feature.kinds:
        stages.append(_of_kind(kind, readings.get(kind), evidence))
    fields = [readings[name] for name in feature.fields if name in readings]
    if fields:
        stages.append(_of_fields(feature, fields, evidence))
    assumed, said = [], []
    for component in feature.needs:
        for gate in feature.gates:
            if release in LOCKED.get(gate, frozenset()):
                continue
            told = sayings.get((component, gate))
            if told is not None:
                said.append(component)
            stages.append(_of_component(component, gate, release, told, evidence))
            assumed.append(component)
    stage = _overall(stages)
    if stage is Stage.NOT_SERVED:
        assumed = [one for one in assumed if one in said]
    return Capability(
        feature, stage, tuple(evidence), tuple(dict.fromkeys(assumed)), tuple(dict.fromkeys(said))
    )


def _overall(stages: list[Stage]) -> Stage:
    """One no is a no; where nobody can say one part of it, nobody can say the whole."""
    if not stages:
        return Stage.UNKNOWN
    order = [Stage.STABLE, Stage.BETA, Stage.ALPHA, Stage.DRIVER, Stage.UNKNOWN, Stage.NOT_SERVED]
    return max(stages, key=order.index)


def _of_gate(gate: str, read: Reading | None, evidence: list[Evidence]) -> Stage:
    if read is None or read.state == "unknown":
        why = f": {read.detail}" if read and read.detail else ""
        evidence.append(Evidence("metric", f"{gate} could not be read{why}"))
        return Stage.UNKNOWN
    if read.state == "absent":
        evidence.append(Evidence("metric", f"the API server does not know {gate}"))
        return Stage.NOT_SERVED
    state = f"{read.stage or 'stable'} and {read.state}"
    evidence.append(Evidence("metric", f"{gate} is {state} in the API server"))
    return _stage(read.stage) if read.state == "on" else Stage.NOT_SERVED


def _of_kind(kind: str, read: Reading | None, evidence: list[Evidence]) -> Stage:
    if read is None or read.state == "unknown":
        evidence.append(Evidence("discovery", f"whether {kind} is served was not read"))
        return Stage.UNKNOWN
    if read.state != "on":
        more = f" ({read.detail})" if read.detail else ""
        evidence.append(Evidence("discovery", f"{kind} is not served{more}"))
        return Stage.NOT_SERVED
    evidence.append(Evidence("discovery", f"{kind} is served as {read.detail or read.stage}"))
    return _stage(read.stage)


def _of_fields(feature: Feature, fields: list[Reading], evidence: list[Evidence]) -> Stage:
    """One spelling of a field is enough: releases spell some of them differently."""
    names = " or ".join(name.rpartition(".")[2] for name in feature.fields)
    if any(one.state == "on" for one in fields):
        evidence.append(Evidence("OpenAPI", f"the API has the field {names}"))
        return Stage.STABLE  # a field says nothing about how stable its gate is
    if any(one.state == "unknown" for one in fields):
        evidence.append(Evidence("OpenAPI", f"whether the API has {names} could not be read"))
        return Stage.UNKNOWN
    evidence.append(Evidence("OpenAPI", f"the API has no field {names}"))
    return Stage.NOT_SERVED


def _of_component(
    component: Component, gate: str, release: str, told: Said | None, evidence: list[Evidence]
) -> Stage:
    if told is not None:
        state = "on" if told.on else "off"
        by = f", says {told.by}" if told.by else ""
        note = f" ({told.note})" if told.note else ""
        evidence.append(Evidence("said", f"{gate} is {state} in {component.words}{by}{note}"))
        return Stage.STABLE if told.on else Stage.NOT_SERVED
    default = ON_BY_DEFAULT.get(gate)
    if default is None or release in default:
        why = f"on by default in {release}" if default is not None else "as the release has it"
        evidence.append(Evidence("release", f"{gate} in {component.words}: {why}, not read"))
        return Stage.STABLE
    evidence.append(Evidence("release", f"{gate} in {component.words}: off by default, not read"))
    return Stage.UNKNOWN


def _stage(stage: str) -> Stage:
    return {"beta": Stage.BETA, "alpha": Stage.ALPHA, "deprecated": Stage.STABLE}.get(
        stage, Stage.STABLE
    )


def _known(release: str) -> str:
    short = ".".join(release.removeprefix("v").split(".")[:2])
    return short if short in RELEASES else NEWEST
