"""Limits as pages show them: a bar in four parts with its words, in a unit that people read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from urllib.parse import urlencode

from devices.dra.quantity import NANO, Format, Quantity
from devices.models import Claim
from devices.tenancy.spending import Budget, amount_words, class_names, words_of
from tenants.limits import ANY, CLAIMS, ZERO, Kind, Line, Measure, Strip, What, bound_of, share_free
from tenants.models import Tenant

KIND_WORDS = {
    Kind.REQUEST: "in use",
    Kind.HOLD: "reserved, waits for devices",
    Kind.GRANT: "lent by a grant",
    Kind.OUTSIDE: "not made by Berth",
}
GIBI = Decimal(2**30)


@dataclass(frozen=True, slots=True)
class ShareRow:
    """One namespace's part of a limit that is shared out; `left` is negative where overdrawn."""

    namespace: str
    amount: str
    left: str


@dataclass(frozen=True, slots=True)
class LimitRow:
    """One limit. Numbers are in `unit`; None is no limit, never zero."""

    strip: Strip
    title: str
    unit: str
    limit: float | None
    used: float
    reserved: float
    granted: float
    free: float | None
    overdrawn: float
    address: str
    shares: tuple[ShareRow, ...] = ()

    @property
    def what(self) -> What:
        return self.strip.what

    @property
    def not_allowed(self) -> bool:
        """It is in use, and nothing allows it."""
        return self.limit == 0 and self.overdrawn > 0

    @property
    def nothing(self) -> bool:
        return not self.strip.taken


@dataclass(frozen=True, slots=True)
class LineRow:
    """One line behind a figure."""

    kind: Kind
    amount: str
    namespace: str
    source: str
    claim: str = ""

    @property
    def words(self) -> str:
        return KIND_WORDS[self.kind]


def limit_rows(budget: Budget, names: Mapping[str, str] | None = None) -> list[LimitRow]:
    """Every limit of a tenant: devices by class first, then capacities, then claims."""
    shown = class_names() if names is None else names
    order = [Measure.DEVICES, Measure.CAPACITY, Measure.CLAIMS]
    rows = [_row(budget, strip, shown) for strip in budget.strips]
    return sorted(rows, key=lambda row: (order.index(row.what.measure), row.title.lower()))


def most_strained(rows: Iterable[LimitRow]) -> list[LimitRow]:
    """What is nearest to its end first: overdrawn, then by the part that is taken."""

    def strain(row: LimitRow) -> tuple[bool, float]:
        limit = row.strip.limit
        return row.overdrawn > 0, float(row.strip.taken / limit) if limit else 0.0

    return sorted(rows, key=strain, reverse=True)


def limit_row(budget: Budget, what: What, names: Mapping[str, str]) -> LimitRow | None:
    """One of them; None where it is neither limited nor used."""
    return next((_row(budget, one, names) for one in budget.strips if one.what == what), None)


def query_of(what: What) -> str:
    """What of a limit stands in addresses: class and capacity names hold dots and slashes."""
    said = {"measure": what.measure.value, "class": what.device_class, "capacity": what.capacity}
    return urlencode({name: value for name, value in said.items() if value})


def what_of(given: Mapping[str, str]) -> What | None:
    """The way back from `query_of`; None for what makes no sense."""
    measure = given.get("measure", "")
    if measure not in list(Measure):
        return None
    what = What(Measure(measure), given.get("class", ""), given.get("capacity", ""))
    if what == ANY:
        return None
    fits = {
        Measure.CLAIMS: what == CLAIMS,
        Measure.DEVICES: bool(what.device_class) and not what.capacity,
        Measure.CAPACITY: bool(what.device_class and what.capacity),
    }
    return what if fits[what.measure] else None


def line_rows(lines: Iterable[Line], tenant: Tenant) -> list[LineRow]:
    """The lines behind one figure with the names of the tenant's own asks; one query."""
    found = list(lines)
    own = Claim.objects.of(tenant).filter(public_id__in={line.source for line in found})
    names = dict(own.values_list("public_id", "name"))
    rows = [
        LineRow(
            line.kind,
            amount_words(line.what, line.amount),
            line.namespace,
            names.get(line.source) or _source(line),
            line.source if line.source in names else "",
        )
        for line in found
    ]
    order = [Kind.HOLD, Kind.REQUEST, Kind.GRANT, Kind.OUTSIDE]
    return sorted(rows, key=lambda row: (order.index(row.kind), row.namespace, row.source))


def _source(line: Line) -> str:
    """Who is behind a line that is no ask of this tenant: another tenant's asks have no names."""
    if line.kind is Kind.GRANT:
        return "not used yet" if line.source.startswith("grant ") else "in use by the taker"
    return line.source


def _row(budget: Budget, strip: Strip, names: Mapping[str, str]) -> LimitRow:
    what = strip.what
    bound = bound_of(budget.limits, what)
    unit, scale = "", Decimal(1)
    if what.measure is Measure.CAPACITY and (strip.limit or strip.taken) >= GIBI:
        unit, scale = "Gi", GIBI
    shares = []
    for namespace in sorted(bound.shares) if bound else ():
        left = share_free(bound, what, namespace, budget.lines) if bound else None
        shares.append(
            ShareRow(
                namespace,
                amount_words(what, bound.shares[namespace] if bound else ZERO),
                _signed(what, left or ZERO),
            )
        )

    def scaled(amount: Decimal) -> float:
        """For drawing and reading; the exact amount stays in the strip."""
        found = amount / scale
        return int(found) if found % 1 == 0 else round(float(found), 2)

    return LimitRow(
        strip,
        title=words_of(what, names).capitalize() if what == CLAIMS else words_of(what, names),
        unit=unit,
        limit=None if strip.limit is None else scaled(strip.limit),
        used=scaled(strip.used),
        reserved=scaled(strip.reserved),
        granted=scaled(strip.granted),
        free=None if strip.free is None else scaled(strip.free),
        overdrawn=scaled(strip.overdrawn),
        address=query_of(what),
        shares=tuple(shares),
    )


def _signed(what: What, amount: Decimal) -> str:
    return f"−{amount_words(what, -amount)}" if amount < 0 else amount_words(what, amount)


def exact(amount: Decimal | None) -> str | None:
    """A quantity for programs: "8", "80Gi"; None stays None (no limit)."""
    if amount is None:
        return None
    form = Format.BINARY if amount and amount % 1024 == 0 and amount >= GIBI else Format.DECIMAL
    return str(Quantity(int(amount * NANO), form))


@dataclass(frozen=True, slots=True)
class CostRow:
    """What an ask takes of one limit: `asked` and what would be left, in words."""

    title: str
    asked: str
    left: str
    limit: str
    over: str
    code: str = ""
    remedy: str = ""


def cost_rows(
    budget: Budget, asked: Mapping[What, Decimal], namespace: str, names: Mapping[str, str]
) -> list[CostRow]:
    """For each limit that an ask touches: what it takes, and what is left after it or why not."""
    refused = {one.what: one for one in budget.refusals(asked, namespace)}
    found = {one.what: one for one in budget.strips}
    rows = []
    for what, amount in sorted(asked.items()):
        strip, no = found.get(what), refused.get(what)
        bound = bound_of(budget.limits, what)
        if no is None and (bound is None or bound.amount is None or strip is None):
            if what.measure is Measure.DEVICES:
                title, said = words_of(what, names), amount_words(what, amount)
                rows.append(CostRow(title, said, "", "no limit", ""))
            continue
        limit = no.limit if no else strip.limit if strip else None
        left = no.left if no else (strip.free or ZERO) - amount if strip else ZERO
        rows.append(
            CostRow(
                words_of(what, names),
                amount_words(what, amount),
                _signed(what, left or ZERO),
                "not allowed" if no and no.limit is None else amount_words(what, limit),
                amount_words(what, no.over) if no and no.over is not None else "",
                no.code if no else "",
                no.remedy if no else "",
            )
        )
    return rows
