"""Taints on devices, what tolerates them, and the rules by which admins add them (KEP-5055)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from devices.dra.reading import Raw, mapping, moment, sequence, strange


class Effect(StrEnum):
    """Effects that Kubernetes acts on; any other effect is information only."""

    NONE = "None"
    NO_SCHEDULE = "NoSchedule"
    NO_EXECUTE = "NoExecute"


#: Effects that keep a device from being allocated anew.
CLOSING = frozenset({Effect.NO_SCHEDULE.value, Effect.NO_EXECUTE.value})


@dataclass(frozen=True, slots=True)
class DeviceTaint:
    """A taint on a device; ``rule`` names the DeviceTaintRule it comes from, if any."""

    key: str
    value: str = ""
    effect: str = ""
    since: datetime | None = None
    rule: str = ""

    @property
    def closes(self) -> bool:
        """Whether it keeps the device from new allocations that do not tolerate it."""
        return self.effect in CLOSING

    def __str__(self) -> str:
        return f"{self.key}{'=' + self.value if self.value else ''}:{self.effect}"


@dataclass(frozen=True, slots=True)
class Toleration:
    """What a request tolerates (resource/v1 DeviceToleration)."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""
    seconds: int | None = None

    def tolerates(self, taint: DeviceTaint) -> bool:
        """As upstream's ``resourceclaim.ToleratesTaint``: an empty effect covers all effects,
        an empty key with Exists covers all keys, and NoExecute does not cover NoSchedule.
        """
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        return self.operator in ("", "Equal") and self.value == taint.value


@dataclass(frozen=True, slots=True)
class TaintRule:
    """A DeviceTaintRule; ``selects`` is False where it has no deviceSelector at all.

    ``older_conditions`` is True where it carries the class or CEL conditions of 1.34, which
    later releases ignore: such a rule then matches more than its author meant.
    """

    name: str
    taint: DeviceTaint
    selects: bool = True
    driver: str = ""
    pool: str = ""
    device: str = ""
    older_conditions: bool = False

    def matches(self, driver: str, pool: str, device: str) -> bool:
        """Whether a device falls under the conditions that the rule names; none means all."""
        return (
            self.driver in ("", driver) and self.pool in ("", pool) and self.device in ("", device)
        )


def read_taints(raw: object, path: str, rule: str = "") -> tuple[DeviceTaint, ...]:
    """A list of DeviceTaint."""
    return tuple(_taint(mapping(item, path), rule) for item in sequence(raw, path))


def read_tolerations(raw: object, path: str) -> tuple[Toleration, ...]:
    """A list of DeviceToleration."""
    return tuple(
        Toleration(
            key=item.get("key") or "",
            operator=item.get("operator") or "Equal",
            value=item.get("value") or "",
            effect=item.get("effect") or "",
            seconds=item.get("tolerationSeconds"),
        )
        for item in (mapping(entry, path) for entry in sequence(raw, path))
    )


_SELECTOR = frozenset({"driver", "pool", "device"})
_OLDER = frozenset({"deviceClassName", "selectors"})


def read_rule(raw: Raw) -> tuple[TaintRule, list[str]]:
    """A DeviceTaintRule of any served version, and the paths that are not known."""
    name = mapping(raw.get("metadata"), "metadata").get("name") or "?"
    spec = mapping(raw.get("spec"), "spec")
    selector = mapping(spec.get("deviceSelector"), "spec.deviceSelector")
    rule = TaintRule(
        name=name,
        taint=_taint(mapping(spec.get("taint"), "spec.taint"), name),
        selects=spec.get("deviceSelector") is not None,
        driver=selector.get("driver") or "",
        pool=selector.get("pool") or "",
        device=selector.get("device") or "",
        older_conditions=any(selector.get(field) for field in _OLDER),
    )
    unknown = strange(spec, frozenset({"deviceSelector", "taint"}), "spec")
    return rule, unknown + strange(selector, _SELECTOR | _OLDER, "spec.deviceSelector")


def untolerated(
    taints: Iterable[DeviceTaint], tolerations: Iterable[Toleration]
) -> DeviceTaint | None:
    """The first taint that keeps a request with these tolerations away, or None."""
    tolerations = tuple(tolerations)
    for taint in taints:
        if taint.closes and not any(t.tolerates(taint) for t in tolerations):
            return taint
    return None


def _taint(raw: Raw, rule: str) -> DeviceTaint:
    return DeviceTaint(
        key=raw.get("key") or "",
        value=raw.get("value") or "",
        effect=raw.get("effect") or "",
        since=moment(raw.get("timeAdded")),
        rule=rule,
    )
