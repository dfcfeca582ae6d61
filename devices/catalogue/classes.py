"""What people browse: counted classes with Berth's words, who may use them, and how far to rely on
them. A constant number of queries, whatever the size of the cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.utils import timezone

from devices.asks.history import Usual, usual_waits
from devices.authoring.shown import shown_to
from devices.catalogue.capabilities import served
from devices.dra.features import Capability, Stage, by_gate, weakest
from devices.dra.finding import Candidate, Finding, Found, find
from devices.dra.sought import understood
from devices.forecasts.rates import Rate, rates_by_class
from devices.models import ClassWords, Freeze, Offer, TemplateVersion
from devices.tenancy.spending import Budget, budget_of
from tenants.limits import Measure, What, bound_of, devices_of
from tenants.models import Limit, Tenant

CORE = "DynamicResourceAllocation"
SPARED = frozenset({"node amounts", "taints"})
"""Features that devices make use of and can be had without."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a tenant may have of a class: ``left`` of ``limit`` devices; both None where it is
    allowed without a limit. Where it is not allowed there is no such value.
    """

    left: int | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Offered:
    """One class as the catalogue shows it. Counts are None where nobody knows them.

    ``allowance`` is None where the class is not open to the tenant, or where nobody's limits are
    meant; ``tenants`` are then those that may use it. ``relies`` are the features that it needs.
    """

    name: str
    display_name: str
    words: str
    icon: str
    counts: dict[str, Any]
    counted_at: datetime
    seen_at: datetime | None
    templates: tuple[TemplateVersion, ...]
    usual: Usual = field(default_factory=Usual)
    """How long Pods wait for such a device, from the history."""
    rate: Rate = field(default_factory=Rate)
    """How often forecasts for it came true."""
    allowance: Allowance | None = None
    tenants: tuple[str, ...] | None = None
    freeze: Freeze | None = None
    relies: tuple[Capability, ...] = ()

    @property
    def open(self) -> bool:
        """Whether whoever looks may use it."""
        return self.allowance is not None or self.tenants is not None

    @property
    def stage(self) -> Stage:
        """How far one may rely on all that it needs."""
        if not self.counts.get("path") or self.counts["path"] == ["plugin"]:
            return Stage.STABLE
        found = weakest(one for one in self.relies if one.served or one.feature.key not in SPARED)
        if self.counts.get("configured") and found is Stage.STABLE:
            return Stage.DRIVER
        return found

    @property
    def assumed(self) -> bool:
        """Whether some of that is assumed and not read."""
        return any(one.assumed for one in self.relies)

    @property
    def free(self) -> int | None:
        """What can be had now, by whichever path."""
        plugin = self.counts.get("plugin") or {}
        if not self.counts.get("total") and plugin.get("allocatable"):
            return int(plugin["allocatable"] - (plugin.get("requested") or 0))
        return self.counts.get("free")

    @property
    def in_use(self) -> int | None:
        """Held in whole or in part."""
        whole, part = self.counts.get("allocated"), self.counts.get("shared")
        return None if whole is None or part is None else whole + part

    @property
    def total(self) -> int | None:
        plugin = self.counts.get("plugin") or {}
        return self.counts.get("total") or plugin.get("allocatable") or self.counts.get("total")


def offers_for(
    query: str = "", *, tenant: Tenant | None = None, counts_only: bool = False
) -> list[Offered]:
    """Every class, those open to the tenant first, then by display name; `query` keeps those with
    devices that fit it. With a `tenant`, only the templates that it sees lead there; without one,
    each says which tenants may use it. With `counts_only` usual waits, rates, freezes and stages
    are left out, and the queries that they take.
    """
    now = timezone.now()
    words = {row.device_class: row for row in ClassWords.objects.all()}
    leads: dict[str, list[TemplateVersion]] = {}
    versions = approved() if tenant is None else shown_to(tenant, now)
    for version in versions:
        for device_class in version.read().device_classes:
            leads.setdefault(device_class, []).append(version)
    usual = {} if counts_only else usual_waits(now)
    rates = {} if counts_only else rates_by_class(now)
    frozen = {} if counts_only else _frozen(tenant, now)
    features = {} if counts_only else by_gate(served().features)
    budget = None if tenant is None else budget_of(tenant, now)
    users = _users() if tenant is None else {}
    rows = list(Offer.objects.all())
    open_to = {} if budget is None else allowances(budget, [row.device_class for row in rows])
    offers = []
    for row in rows:
        name = row.device_class
        said = words.get(name)
        needed = [CORE, *row.counts.get("relies", ())]
        offers.append(
            Offered(
                name=name,
                display_name=said.display_name if said else name,
                words=said.words if said else "",
                icon=said.icon if said else "device",
                counts=row.counts,
                counted_at=row.counted_at,
                seen_at=row.seen_at,
                templates=tuple(leads.get(name, ())),
                usual=usual.get(name, Usual()),
                rate=rates.get(name, Rate()),
                allowance=open_to.get(name),
                tenants=None if budget is not None else users.get(name, ()) + users.get("*", ()),
                freeze=frozen.get(name) or frozen.get(""),
                relies=tuple(features[gate] for gate in needed if gate in features),
            )
        )
    offers.sort(key=lambda offer: (not offer.open, offer.display_name.lower()))
    if not query.strip():
        return offers
    fitting = {hit.offer.name for hit in search(query, offers).hits}
    return [offer for offer in offers if offer.name in fitting]


@dataclass(frozen=True, slots=True)
class Hit:
    """A group of devices that fits a search, or nearly; ``group`` is empty where the class is
    known by name alone (its devices come by a plugin, or there are none).
    """

    offer: Offered
    group: Mapping[str, Any]
    lacks: tuple[str, ...] = ()

    @property
    def free(self) -> int | None:
        return self.group.get("free") if self.group else self.offer.free

    @property
    def total(self) -> int | None:
        return self.group.get("total") if self.group else self.offer.total


@dataclass(frozen=True, slots=True)
class Hits:
    """What a search found: what was understood of it, what fits, else what is near."""

    text: str
    words: tuple[str, ...]
    hits: tuple[Hit, ...]
    near: tuple[Hit, ...]


def search(query: str, offers: Sequence[Offered]) -> Hits:
    """Groups of devices that fit what was typed, the best first; nothing is asked of anybody."""
    sought = understood(query)
    by_name = {offer.name: offer for offer in offers}
    found: Finding = find(sought, [one for offer in offers for one in _candidates(offer)])

    def hit(one: Found) -> Hit:
        name, number = one.key
        offer = by_name[name]
        groups = offer.counts.get("groups") or []
        return Hit(offer, groups[number] if number >= 0 else {}, one.lacks)

    return Hits(
        sought.text,
        sought.words,
        tuple(hit(one) for one in found.fits),
        tuple(hit(one) for one in found.near),
    )


def approved() -> list[TemplateVersion]:
    """What can be asked for now, by name."""
    versions = TemplateVersion.objects.filter(state=TemplateVersion.State.APPROVED)
    return list(versions.select_related("template").order_by("template__name"))


def free_notes(offers: list[Offered], *, old: bool) -> dict[str, str]:
    """A note per class for the cards of a form: "12 free"; no number where the figures are old."""
    notes = {}
    for offer in offers:
        free = None if old else offer.counts.get("free")
        notes[offer.name] = "free: unknown" if free is None else f"{free} free"
    return notes


def allowances(budget: Budget, classes: Iterable[str]) -> dict[str, Allowance]:
    """What a tenant may have of these classes; those that it may not use are left out."""
    taken: dict[What, Decimal] = {}
    for line in budget.lines:
        taken[line.what] = taken.get(line.what, Decimal(0)) + line.amount
    found = {}
    for name in classes:
        what = devices_of(name)
        bound = bound_of(budget.limits, what)
        if bound is not None and bound.amount is not None:
            left = bound.amount - taken.get(what, Decimal(0))
            found[name] = Allowance(int(left), int(bound.amount))
        elif bound is not None:
            found[name] = Allowance()
    return found


def _candidates(offer: Offered) -> list[Candidate]:
    texts = (offer.name, offer.display_name, offer.words, offer.icon)
    groups = offer.counts.get("groups") or []
    most = (offer.counts.get("largest") or {}).get("count")
    if not groups:
        return [Candidate((offer.name, -1), texts, free=offer.free)]
    return [
        Candidate(
            (offer.name, number),
            (*texts, group["words"], group["driver"]),
            group.get("attributes") or {},
            group.get("capacity") or {},
            group.get("make") or "",
            bool(group.get("partition")),
            bool(group.get("shareable")),
            group.get("free"),
            most,
        )
        for number, group in enumerate(groups)
    ]


def _frozen(tenant: Tenant | None, now: datetime) -> dict[str, Freeze]:
    """Freezes by class that concern whoever looks; under an empty name one that stops all."""
    rows = Freeze.objects.standing(now)
    rows = (
        rows.of_tenant(tenant.slug)
        if tenant
        else rows.of_requests().exclude(scope=Freeze.Scope.TENANT)
    )
    found: dict[str, Freeze] = {}
    for row in rows:
        found.setdefault(row.target if row.scope == Freeze.Scope.CLASS else "", row)
    return found


def _users() -> dict[str, tuple[str, ...]]:
    """By class, the tenants that may use it, by name; under * those that may use any."""
    rows = Limit.objects.filter(measure=Measure.DEVICES.value)
    rows = rows.exclude(tenant__state=Tenant.State.CLOSED).order_by("tenant__name")
    found: dict[str, tuple[str, ...]] = {}
    for name, tenant in rows.values_list("device_class", "tenant__name"):
        found[name] = (*found.get(name, ()), tenant)
    return found
