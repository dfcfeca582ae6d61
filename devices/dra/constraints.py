"""Conditions across the devices of one claim: an attribute equal on all, or different on all.

Each constraint remembers the devices added so far and forgets the last one again, as the search
backs out. Source: upstream's ``matchAttributeConstraint`` and ``distinctAttributeConstraint``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping

from devices.dra.claims import Constraint
from devices.dra.gates import Gates
from devices.dra.slices import LISTS, UNKNOWN, Attribute


class Tracker(ABC):
    """One constraint of one claim during a search."""

    def __init__(self, constraint: Constraint, gates: Gates) -> None:
        self.attribute = constraint.match or constraint.distinct
        self._requests = frozenset(constraint.requests)
        self._lists = gates.compared_lists

    def applies(self, request: str, alternative: str) -> bool:
        """Whether it binds this request (or alternative of a request)."""
        if not self._requests or request in self._requests:
            return True
        return bool(alternative) and f"{request}/{alternative}" in self._requests

    @abstractmethod
    def admits(self, value: Attribute | None, request: str) -> bool:
        """Whether a device with this value could be added now."""

    @abstractmethod
    def add(self, value: Attribute, request: str) -> None:
        """Remembers a device that was admitted."""

    @abstractmethod
    def remove(self, request: str) -> None:
        """Forgets the device that was added last."""

    @abstractmethod
    def state(self) -> Hashable:
        """What it remembers, as a key."""

    def _comparable(self, value: Attribute | None) -> bool:
        """Lists can be compared only with the gate; an unknown kind of value never."""
        if value is None or value.kind == UNKNOWN:
            return False
        return self._lists or value.kind not in LISTS


class Match(Tracker):
    """All devices have the attribute in common: one value, or for lists at least one element.

    ``forgetful`` is what 1.36 does: having backed out of a device, it still asks of later ones
    what that device narrowed the common elements to.
    """

    def __init__(self, constraint: Constraint, gates: Gates) -> None:
        super().__init__(constraint, gates)
        self.forgetful = self._lists and not gates.at_least("1.37")
        self._stack: list[Attribute] = []
        self._common: list[tuple[str, frozenset[object]]] = []

    def admits(self, value: Attribute | None, request: str) -> bool:
        if value is None:
            return False
        if not self._lists:
            # The first device may have any value, even one of an unknown kind.
            if not self._stack:
                return True
            return self._comparable(value) and value == self._stack[0]
        if not _set_of(value):
            return False
        if not self._stack:
            return True
        kind, elements = self._common[-1]
        return kind == value.element_kind and bool(elements & value.elements)

    def add(self, value: Attribute, request: str) -> None:
        if self._lists:
            kind, elements = value.element_kind, value.elements
            if self._stack:
                elements = self._common[-1][1] & elements
                if self.forgetful:
                    self._common = [(kind, elements)] * len(self._common)
            self._common.append((kind, elements))
        self._stack.append(value)

    def remove(self, request: str) -> None:
        self._stack.pop()
        if self._lists:
            self._common.pop()

    def state(self) -> Hashable:
        if self._lists:
            return tuple(self._common)
        return self._stack[0] if self._stack else None


class Distinct(Tracker):
    """No two devices share a value or an element.

    1.36 remembers one device per request only, so that two devices of one request are compared
    with the last of it and forgotten together.
    """

    def __init__(self, constraint: Constraint, gates: Gates) -> None:
        super().__init__(constraint, gates)
        self._by_request = not gates.at_least("1.37")
        self._values: list[Attribute] = []
        self._last: dict[str, Attribute] = {}
        self._count = 0

    def admits(self, value: Attribute | None, request: str) -> bool:
        if value is None:
            return False
        seen = tuple(self._last.values()) if self._by_request else tuple(self._values)
        if self._by_request and self._count == 0:
            return True
        if self._lists:
            return bool(_set_of(value)) and not any(_share(value, other) for other in seen)
        if not self._comparable(value):
            return not seen
        return all(value != other for other in seen)

    def add(self, value: Attribute, request: str) -> None:
        self._count += 1
        self._last[request] = value
        self._values.append(value)

    def remove(self, request: str) -> None:
        self._count -= 1
        self._last.pop(request, None)
        self._values.pop()

    def state(self) -> Hashable:
        if self._by_request:
            return (bool(self._count), tuple(self._last.items()))
        return frozenset(self._values)


def tracker(constraint: Constraint, gates: Gates) -> Tracker | None:
    """The tracker of a constraint, or None for a kind that nobody knows."""
    if constraint.match:
        return Match(constraint, gates)
    return Distinct(constraint, gates) if constraint.distinct else None


def attribute_of(attributes: Mapping[str, Attribute], name: str, driver: str) -> Attribute | None:
    """A device's attribute by its full name; unqualified ones are the driver's own."""
    found = attributes.get(name)
    if found is None:
        domain, _, short = name.partition("/")
        if short and domain == driver:
            found = attributes.get(short)
    return found


def _set_of(value: Attribute) -> frozenset[object]:
    return frozenset() if value.kind == UNKNOWN else value.elements


def _share(one: Attribute, other: Attribute) -> bool:
    return one.element_kind == other.element_kind and bool(one.elements & _set_of(other))
