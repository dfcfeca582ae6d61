"""Says in words where two stories part. Pure."""

from __future__ import annotations

from typing import Any

from tests.playground.situations.record import Story


def first_difference(real: Story, simulated: Story) -> str:
    """The first difference between what a real and a simulated node did, "" where there is none."""
    return next(iter(differences(real, simulated)), "")


def without(story: Story, by_chance: tuple[str, ...]) -> Story:
    """The story without events that begin so."""
    if not by_chance:
        return story
    return {
        key: [one for one in values if not one.startswith(by_chance)]
        if key.endswith(": events")
        else values
        for key, values in story.items()
    }


def differences(real: Story, simulated: Story) -> list[str]:
    """Every difference, at most one for each field."""
    found = []
    for key in sorted({*real, *simulated}):
        if key not in simulated:
            found.append(f"{key}: only the real node has it: {real[key]!r}")
        elif key not in real:
            found.append(f"{key}: only the simulated node has it: {simulated[key]!r}")
        elif words := _where(real[key], simulated[key]):
            found.append(f"{key}{words}")
    return found


def _where(real: Any, simulated: Any) -> str:
    if type(real) is not type(simulated):
        return f": really {real!r}, simulated {simulated!r}"
    if isinstance(real, dict):
        for key in sorted({*real, *simulated}):
            if key not in real or key not in simulated:
                side, value = ("real", real) if key in real else ("simulated", simulated)
                return f"[{key}]: only the {side} node has it: {value[key]!r}"
            if words := _where(real[key], simulated[key]):
                return f"[{key}]{words}"
        return ""
    if isinstance(real, list):
        if _typed(real) and _typed(simulated):
            return _where(_by_type(real), _by_type(simulated))
        for index, (one, other) in enumerate(zip(real, simulated, strict=False)):
            if words := _where(one, other):
                return f"[{index}]{words}"
        if len(real) != len(simulated):
            index = min(len(real), len(simulated))
            side, value = ("real", real) if len(real) > len(simulated) else ("simulated", simulated)
            return f"[{index}]: only the {side} node goes on: {value[index]!r}"
        return ""
    return "" if real == simulated else f": really {real!r}, simulated {simulated!r}"


def _typed(entries: list[Any]) -> bool:
    """Whether they are conditions or the like: each of a type of its own, in no order.

    Compared by their places, a list that lacks one would differ in fields of its neighbours.
    """
    types = [one["type"] for one in entries if isinstance(one, dict) and "type" in one]
    return len(set(types)) == len(entries)


def _by_type(entries: list[Any]) -> dict[str, Any]:
    return {one["type"]: one for one in entries}
