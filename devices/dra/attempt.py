"""One scheduling attempt: what it is made ready from, what it chooses, and how it ends in error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from devices.dra.counters import Undo
from devices.dra.quantity import Quantity
from devices.dra.requests import Answer, Failure, Want, Wish
from devices.dra.slices import Attribute
from devices.dra.visibility import Place


class Fatal(Exception):
    """The scheduling attempt ends with an error, on every node."""

    def __init__(self, text: str, code: str) -> None:
        super().__init__(text)
        self.text, self.code = text, code


class TooMany(Exception):
    """A claim would hold more than 32 devices on this branch; another alternative may not."""


@dataclass(slots=True)
class Pick:
    """One device chosen for one request."""

    want: Want
    place: Place
    taken: Mapping[str, Quantity] | None


@dataclass(slots=True)
class Ready:
    """A want on this node: answers and closed taints for every place, and how many it needs."""

    want: Want
    answers: Sequence[Answer]
    closed: Sequence[bool]
    need: int = 0
    every: tuple[int, ...] = ()


@dataclass(slots=True)
class Undoing:
    """What one chosen device changed."""

    index: int
    counters: bool = False
    groups: Undo | None = None
    marked: bool = False
    picked: bool = False
    shared: Mapping[str, Quantity] | None = None
    attributes: list[Attribute | None] = field(default_factory=list)


def fatal(wish: Wish, want: Want, failure: Failure, place: Place, device_named: bool) -> Fatal:
    """A selector's failure in upstream's words (which name the device from 1.37 on)."""
    whose = f"class {want.device_class.name}" if failure.of_class else f"claim {wish.name}"
    if failure.unmodelled:
        return Fatal(f"{whose}: selector #{failure.index}: {failure.why}", "SELECTOR_NOT_MODELLED")
    if not failure.compiles:
        text = f"{whose}: selector #{failure.index}: CEL compile error: {failure.why}"
        return Fatal(text, "SELECTOR_INVALID")
    where = f" on device {place}" if device_named else ""
    text = f"{whose}: selector #{failure.index}{where}: CEL runtime error: {failure.why}"
    if failure.why.startswith("no such key"):
        if device_named:
            text += (
                ". consider using CEL optional chaining (.? followed by orValue()) or guarding "
                "the check with has() for optional fields"
            )
        return Fatal(text, "SELECTOR_NO_SUCH_KEY")
    unsupported = "unsupported attribute value" in failure.why
    return Fatal(text, "ATTRIBUTE_UNSUPPORTED" if unsupported else "SELECTOR_FAILS")
