"""What asks cost, in words and numbers, and a tenant's budget with everything that counts.

The first floor keeps limits and what is taken; this floor knows what an ask renders to, which asks
still wait, and what others made in the tenant's namespaces.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal

from devices.dra.claims import ClaimSpec, read_claim_spec
from devices.dra.lifecycle import State
from devices.dra.objects import ClaimWish, Shape, devices_spec
from devices.dra.quantity import NANO, Format, Quantity, QuantityError, parse
from devices.dra.quota import capacity_asked, rendered_devices
from devices.models import Claim, ClassWords, Offer
from devices.tenancy.outside import outside_lines, outside_sums
from portal.approvals.rules import Effect
from portal.errors import Refused
from tenants.limits import (
    ANY,
    CLAIMS,
    Kind,
    Limits,
    Line,
    Measure,
    Refusal,
    Strip,
    What,
    devices_of,
    may_take,
    strips,
)
from tenants.models import BudgetLine, Tenant
from tenants.sums import limits_of, lines_of, sums_of

WAITING = frozenset({State.REQUESTED, State.HELD, State.APPLIED, State.PENDING})
"""States in which an ask has no devices yet: what it took is reserved."""


class AmountNeeded(Refused):
    """The tenant's limit counts a capacity, and the ask does not say how much of it."""

    code = "LIMIT_NEEDS_AMOUNT"


@dataclass(frozen=True, slots=True)
class Budget:
    """A tenant's limits and the lines that count against them, added up where that is enough."""

    limits: Limits
    lines: tuple[Line, ...]

    @property
    def strips(self) -> tuple[Strip, ...]:
        return strips(self.limits, self.lines)

    @property
    def any_class(self) -> bool:
        return ANY in self.limits

    def refusals(self, asked: Mapping[What, Decimal], namespace: str) -> tuple[Refusal, ...]:
        """Why so much more could not be had in a namespace; empty: it could."""
        return may_take(asked, limits=self.limits, lines=self.lines, namespace=namespace)


def budget_of(tenant: Tenant, now: datetime) -> Budget:
    """A constant number of queries and lines, however many asks and claims there are."""
    waiting = Claim.objects.filter(state__in=WAITING).values("public_id")
    sums = sums_of(tenant, waiting=waiting)
    return Budget(limits_of(tenant), (*sums, *outside_sums(tenant, now)))


def lines_behind(tenant: Tenant, what: What, now: datetime) -> tuple[Line, ...]:
    """Every line behind one figure of the budget, by what is behind it."""
    lines = [line for line in lines_of(tenant) if line.what == what]
    sources = {line.source for line in lines if line.kind is Kind.REQUEST}
    waiting = set(
        Claim.objects.filter(public_id__in=sources, state__in=WAITING).values_list(
            "public_id", flat=True
        )
    )
    known = (
        replace(line, kind=Kind.HOLD)
        if line.kind is Kind.REQUEST and line.source in waiting
        else line
        for line in lines
    )
    outside = (line for line in outside_lines(tenant, now) if line.what == what)
    return (*known, *outside)


def cost_of(wish: ClaimWish, at_once: int, limits: Iterable[What]) -> dict[What, Decimal]:
    """What an ask takes: devices by class as Kubernetes counts them, claims, limited capacities.

    `at_once` is how many Pods may use a template at the same time; each has a claim of its own.
    Raises `AmountNeeded` where a limited capacity is not asked for in numbers.
    """
    times = at_once if wish.shape is Shape.TEMPLATE else 1
    devices = devices_spec(wish)
    spec = read_claim_spec({"devices": devices}, "spec", [])
    cost = {
        devices_of(device_class): Decimal(count)
        for device_class, count in rendered_devices(devices, times=times).items()
    }
    cost[CLAIMS] = Decimal(times)
    for what in limits:
        if what.measure is Measure.CAPACITY and devices_of(what.device_class) in cost:
            cost[what] = _capacity(spec, what) * times
    return cost


def _capacity(spec: ClaimSpec, what: What) -> Decimal:
    amount = capacity_asked(spec, what.device_class, what.capacity)
    if amount is None:
        raise AmountNeeded(
            f"This tenant's limit counts {what}, so the ask must say how much; take a template "
            "that asks for it.",
            device_class=what.device_class,
            capacity=what.capacity,
        )
    return Decimal(amount.nanos) / NANO


@dataclass(frozen=True, slots=True)
class Taken:
    """What one ask takes of one limit, in words, and whose; `given_back` says it counts no more."""

    words: str
    payer: str
    given_back: bool


def taken_by(claim: Claim) -> list[Taken]:
    """What an ask takes of limits, claims themselves left out; two queries."""
    names = class_names()
    rows = BudgetLine.objects.filter(source=claim.public_id).exclude(measure=Measure.CLAIMS.value)
    return [
        Taken(
            f"{amount_words(row.what, row.amount)} × {words_of(row.what, names)}",
            "" if row.tenant_id == claim.tenant_id else row.tenant.name,
            row.given_back_at is not None,
        )
        for row in rows.select_related("tenant").order_by("pk")
    ]


def capacity_effects(what: What) -> list[Effect]:
    """What the cluster has of a class now, for whoever decides about a limit on it."""
    offer = Offer.objects.filter(device_class=what.device_class).first()
    if offer is None:
        return []
    known = {name: offer.counts.get(name) for name in ("total", "free")}
    plugin = offer.counts.get("plugin") or {}
    if not known["total"] and (there := plugin.get("allocatable")):  # all of them are the plugin's
        asked = plugin.get("requested")
        known = {"total": there, "free": None if asked is None else there - asked}
    return [
        Effect(
            "capacity",
            f"{name} in the cluster",
            "unknown" if amount is None else str(amount),
            f"as of {offer.seen_at:%-d %b %H:%M} UTC" if offer.seen_at else "",
        )
        for name, amount in known.items()
    ]


# --- words ----------------------------------------------------------------------------------------


def class_names() -> dict[str, str]:
    """What people call each class; a class without words of Berth's is absent."""
    return dict(ClassWords.objects.values_list("device_class", "display_name"))


def words_of(what: What, names: Mapping[str, str]) -> str:
    """ "H100, 80 GB", "memory of A100 slice", "claims"."""
    shown = names.get(what.device_class) or what.device_class
    match what.measure:
        case Measure.DEVICES:
            return shown
        case Measure.CAPACITY:
            return f"{what.capacity.rpartition('/')[2]} of {shown}"
        case _:
            return "claims"


def amount_words(what: What, amount: Decimal | None) -> str:
    """ "8", "80Gi", "no limit"."""
    if amount is None:
        return "no limit"
    if what.measure is not Measure.CAPACITY:
        return f"{int(amount):,}"
    form = Format.BINARY if amount and amount % 1024 == 0 else Format.DECIMAL
    return str(Quantity(int(amount * NANO), form))


def read_amount(text: str) -> Decimal:
    """A quantity as people write it ("8", "80Gi") → an exact number. Raises ValueError."""
    try:
        quantity = parse(text.strip())
    except QuantityError as error:
        raise ValueError(f"Give a number such as 8 or 80Gi: {error}") from error
    return Decimal(quantity.nanos) / NANO
