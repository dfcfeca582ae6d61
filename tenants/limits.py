"""May this tenant hold so many more? Sums of lines against limits; pure.

A limit is on the devices of a class, on one consumable capacity of a class, or on the number of
claims. What counts against it is a list of lines, each with its source, counted as Kubernetes
counts (`devices/dra/quota.py`). Nothing here knows Django, a cluster, or a moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from typing import Final

ANY_CLASS: Final = "*"
ZERO: Final = Decimal(0)


class Measure(StrEnum):
    """What a limit counts."""

    DEVICES = "devices"
    CAPACITY = "capacity"
    CLAIMS = "claims"


@dataclass(frozen=True, slots=True, order=True)
class What:
    """What is limited: devices of a class, one capacity of a class (qualified name), or claims."""

    measure: Measure
    device_class: str = ""
    capacity: str = ""

    def __str__(self) -> str:
        match self.measure:
            case Measure.DEVICES:
                return f"devices of {self.device_class}"
            case Measure.CAPACITY:
                return f"{self.capacity} of {self.device_class}"
            case _:
                return "claims"


def devices_of(device_class: str) -> What:
    """The devices of one class."""
    return What(Measure.DEVICES, device_class)


CLAIMS: Final = What(Measure.CLAIMS)
ANY: Final = devices_of(ANY_CLASS)


class Kind(StrEnum):
    """Why a line counts."""

    REQUEST = "request"  # an accepted ask that has its devices, or is giving them back
    HOLD = "hold"  # an accepted ask that still waits for its devices
    GRANT = "grant"  # lent to another tenant's namespace, used there or not
    OUTSIDE = "outside"  # in the tenant's namespaces, and not made by Berth


@dataclass(frozen=True, slots=True)
class Line:
    """One entry of a budget: `amount` of `what`, in `namespace`, because of `source`."""

    kind: Kind
    what: What
    amount: Decimal
    namespace: str
    source: str


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit: `amount` for the whole tenant (None: allowed without a limit), and its shares.

    Where there are shares, a namespace without one has none of it. Where there are none, every
    namespace draws on the whole.
    """

    amount: Decimal | None
    shares: Mapping[str, Decimal] = field(default_factory=dict)


Limits = Mapping[What, Bound]


@dataclass(frozen=True, slots=True)
class Strip:
    """Four parts of one limit, for the bar and for programs. Outside use is part of `used`.

    used + reserved + granted + free = limit, unless overdrawn; then free is 0 and `overdrawn` says
    by how much the parts exceed the limit. Without a limit (None) free is None: nobody can say.
    """

    what: What
    limit: Decimal | None
    used: Decimal = ZERO
    reserved: Decimal = ZERO
    granted: Decimal = ZERO

    @property
    def taken(self) -> Decimal:
        return self.used + self.reserved + self.granted

    @property
    def free(self) -> Decimal | None:
        return None if self.limit is None else max(self.limit - self.taken, ZERO)

    @property
    def overdrawn(self) -> Decimal:
        return ZERO if self.limit is None else max(self.taken - self.limit, ZERO)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why not: `code`, the limit, the numbers, and what would help.

    `namespace` is set where the namespace's share refuses and not the tenant's limit. `left` is
    None where the class is not allowed at all.
    """

    code: str
    what: What
    asked: Decimal
    left: Decimal | None
    limit: Decimal | None
    namespace: str
    remedy: str

    @property
    def over(self) -> Decimal | None:
        """By how much it is too many."""
        return None if self.left is None else self.asked - self.left


LIMIT_REACHED: Final = "LIMIT_REACHED"
CLASS_NOT_ALLOWED: Final = "CLASS_NOT_ALLOWED"


def bound_of(limits: Limits, what: What) -> Bound | None:
    """The limit that holds for `what`; None where nothing allows it.

    Claims and capacities are free where no row limits them; a class is allowed by its own row or by
    the row for any class.
    """
    found = limits.get(what)
    if found is not None:
        return found
    if what.measure is Measure.DEVICES:
        return limits.get(ANY)
    return Bound(None)


def strip(what: What, limit: Decimal | None, lines: Iterable[Line]) -> Strip:
    """The parts of one limit, from the lines of its tenant (others' measures are passed over).

    Worked example: limit 8, a request of 4, a hold of 2, outside 1 → used 5, reserved 2, free 1.
    """
    parts: Counter[Kind] = Counter()
    for line in lines:
        if line.what == what:
            parts[line.kind] += line.amount  # type: ignore[assignment]
    return Strip(
        what,
        limit,
        used=ZERO + parts[Kind.REQUEST] + parts[Kind.OUTSIDE],
        reserved=ZERO + parts[Kind.HOLD],
        granted=ZERO + parts[Kind.GRANT],
    )


def strips(limits: Limits, lines: Iterable[Line]) -> tuple[Strip, ...]:
    """One strip for every limit, and for every class in use that no row names; sorted.

    A class that is used although no row allows it has the limit 0, so that it shows as overdrawn.
    """
    lines = tuple(lines)
    wanted = {what for what in limits if what != ANY} | {line.what for line in lines}
    wanted.discard(ANY)
    found = []
    for what in sorted(wanted):
        bound = bound_of(limits, what)
        if bound is None:
            found.append(strip(what, ZERO, lines))
        elif bound.amount is not None or what in limits:
            found.append(strip(what, bound.amount, lines))
        elif what.measure is Measure.DEVICES:
            found.append(strip(what, None, lines))
    return tuple(found)


def share_free(bound: Bound, what: What, namespace: str, lines: Iterable[Line]) -> Decimal | None:
    """What is left of a namespace's share, negative where it is overdrawn; None: not shared out.

    What the tenant lends to others is in their namespaces and so in none of its own shares.
    """
    if not bound.shares:
        return None
    held = sum(
        (
            line.amount
            for line in lines
            if line.what == what and line.namespace == namespace and line.kind is not Kind.GRANT
        ),
        ZERO,
    )
    return bound.shares.get(namespace, ZERO) - held


def may_take(
    asked: Mapping[What, Decimal],
    *,
    limits: Limits,
    lines: Iterable[Line],
    namespace: str,
) -> tuple[Refusal, ...]:
    """Every limit that would be broken by `asked` more in `namespace`; empty: it may be taken.

    What asks for nothing of a measure is never refused by it, so an overdrawn limit stops only what
    would overdraw it further. An empty `namespace` is judged by the tenant's limit alone.
    """
    lines = tuple(lines)
    refusals = []
    for what, amount in sorted(asked.items()):
        if amount <= 0:
            continue
        bound = bound_of(limits, what)
        if bound is None:
            refusals.append(
                Refusal(
                    CLASS_NOT_ALLOWED,
                    what,
                    amount,
                    None,
                    None,
                    "",
                    "An owner of the tenant can ask for a limit on this class.",
                )
            )
            continue
        if bound.amount is None:
            continue
        left = bound.amount - strip(what, bound.amount, lines).taken
        if amount > left:
            refusals.append(
                Refusal(
                    LIMIT_REACHED,
                    what,
                    amount,
                    left,
                    bound.amount,
                    "",
                    "Release something, ask for fewer, or let an owner ask for a higher limit.",
                )
            )
            continue
        share = share_free(bound, what, namespace, lines) if namespace else None
        if share is not None and amount > share:
            refusals.append(
                Refusal(
                    LIMIT_REACHED,
                    what,
                    amount,
                    share,
                    bound.shares.get(namespace, ZERO),
                    namespace,
                    "Ask in another namespace, or let an owner share the limit out differently.",
                )
            )
    return tuple(refusals)


def may_lend(
    what: What, amount: Decimal, *, limits: Limits, lines: Iterable[Line]
) -> Refusal | None:
    """Whether so much may be lent to another tenant: it comes from what no share has."""
    lines = tuple(lines)
    refusals = may_take({what: amount}, limits=limits, lines=lines, namespace="")
    if refusals:
        return refusals[0]
    bound = bound_of(limits, what)
    if bound is None or bound.amount is None or not bound.shares:
        return None
    lent = strip(what, bound.amount, lines).granted
    left = bound.amount - sum(bound.shares.values(), ZERO) - lent
    if amount <= left:
        return None
    return Refusal(
        LIMIT_REACHED,
        what,
        amount,
        left,
        bound.amount,
        "",
        "The rest is shared out to namespaces; take some of it back from a share first.",
    )


def hard(bound: Bound, what: What, namespace: str, lines: Iterable[Line]) -> Decimal | None:
    """What a ResourceQuota of one of the tenant's own namespaces allows; None: no quota.

    A share where the limit is shared out, else what the namespace holds and what is free of the
    whole: the sum over namespaces is right again after each turn. Never less than what Berth has
    accepted there, so that lowering a limit stops no Pod of running work from being replaced.
    Worked example: limit 8, accepted in a 4, outside in b 3 → a: 4 + 1 = 5, b: 3 + 1 = 4.
    """
    if bound.amount is None:
        return None
    lines = tuple(line for line in lines if line.what == what)
    here = [line for line in lines if line.namespace == namespace and line.kind is not Kind.GRANT]
    accepted = sum((line.amount for line in here if line.kind is not Kind.OUTSIDE), ZERO)
    if bound.shares:
        return max(bound.shares.get(namespace, ZERO), accepted)
    free = strip(what, bound.amount, lines).free or ZERO
    return sum((line.amount for line in here), ZERO) + free


def too_much_shared(amount: Decimal | None, shares: Mapping[str, Decimal], lent: Decimal) -> str:
    """A sentence where shares do not add up to what there is; empty where they do."""
    if not shares:
        return ""
    if amount is None:
        return "There is no limit to share out; give it a number first."
    if any(share < 0 for share in shares.values()):
        return "A share cannot be less than nothing."
    total = sum(shares.values(), ZERO)
    if total <= max(amount - lent, ZERO):
        return ""
    less = f", {lent:f} of it lent to others" if lent else ""
    return f"The shares add up to {total:f}, and the limit is {amount:f}{less}."
