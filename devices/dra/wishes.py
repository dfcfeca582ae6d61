"""A claim's wish with one thing changed: a clause or constraint less, fewer devices, another class.

Each function gives a new wish; the claim itself never changes, for its spec is immutable.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from devices.dra.claims import Ask, ClaimSpec, Request
from devices.dra.clauses import without
from devices.dra.quantity import Quantity
from devices.dra.requests import Wish
from devices.dra.taints import Toleration


def without_constraint(wish: Wish, index: int) -> Wish:
    """Without one constraint across devices."""
    kept = [c for number, c in enumerate(wish.spec.constraints) if number != index]
    return Wish(wish.name, replace(wish.spec, constraints=tuple(kept)))


def without_clause(wish: Wish, request: str, selector: int, clause: int) -> Wish:
    """Without one clause of one selector of a request; the selector goes with its last clause."""

    def change(ask: Ask) -> Ask:
        expression = ask.selectors[selector] or ""
        left = without(expression, clause)
        kept = list(ask.selectors)
        kept[selector : selector + 1] = [left] if left else []
        return replace(ask, selectors=tuple(kept))

    return _asking(wish, request, change)


def with_selector(wish: Wish, request: str, selector: int, expression: str) -> Wish:
    """With another expression in place of one selector of a request."""

    def change(ask: Ask) -> Ask:
        kept = list(ask.selectors)
        kept[selector] = expression
        return replace(ask, selectors=tuple(kept))

    return _asking(wish, request, change)


def with_count(wish: Wish, request: str, count: int) -> Wish:
    """With another number of devices."""
    return _asking(wish, request, lambda ask: replace(ask, count=count))


def with_class(wish: Wish, request: str, device_class: str) -> Wish:
    """Of another class, without conditions of its own, which name the old one's attributes."""
    return _asking(wish, request, lambda ask: replace(ask, device_class=device_class, selectors=()))


def with_toleration(wish: Wish, request: str, toleration: Toleration) -> Wish:
    """Tolerating one more taint."""
    return _asking(
        wish, request, lambda ask: replace(ask, tolerations=(*ask.tolerations, toleration))
    )


def with_capacity(wish: Wish, request: str, name: str, amount: Quantity | None) -> Wish:
    """With another amount of one capacity, or without asking for it (None)."""

    def change(ask: Ask) -> Ask:
        amounts = {key: each for key, each in (ask.capacity or {}).items() if key != name}
        return replace(ask, capacity=amounts if amount is None else {**amounts, name: amount})

    return _asking(wish, request, change)


def ask_of(wish: Wish, request: str) -> Ask:
    """The ask behind ``request`` or ``request/alternative``. Raises KeyError."""
    for each in wish.spec.requests:
        for ask in each.asks:
            if request in _names(each, ask):
                return ask
    raise KeyError(request)


def _asking(wish: Wish, request: str, change: Callable[[Ask], Ask]) -> Wish:
    """With one ask changed; other requests stay as they are."""
    requests = []
    for each in wish.spec.requests:
        if each.exactly is not None and request in _names(each, each.exactly):
            each = replace(each, exactly=change(each.exactly))
        alternatives = [
            change(ask) if request in _names(each, ask) else ask for ask in each.alternatives
        ]
        requests.append(replace(each, alternatives=tuple(alternatives)))
    return Wish(wish.name, ClaimSpec(tuple(requests), wish.spec.constraints, wish.spec.configs))


def _names(request: Request, ask: Ask) -> tuple[str, ...]:
    return (f"{request.name}/{ask.name}",) if request.alternatives else (request.name,)
