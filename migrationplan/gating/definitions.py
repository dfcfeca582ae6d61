"""Verbs about gates: define, change, retire, and the set that most platforms want."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction

from migrationplan.measures import ABOUT, Kind, Measure
from migrationplan.models.reading import Gate
from portal.alerts import guard
from portal.alerts.webhooks import new_secret
from portal.audit.record import record
from portal.errors import Invalid, Outdated
from tenants.access import PlatformAccess
from tenants.policy import PlatformAct

PATIENCE: Final = timedelta(minutes=10)
MOST_PATIENCE: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Wish:
    """What a gate is to be; see `models.Gate`."""

    name: str
    measure: Measure
    margin: float = 0.10
    tolerance: float = 1.25
    slack: float = 2.0
    least: int = 20
    limit: float = 0.0
    patience: timedelta = PATIENCE
    trial: bool = False
    url: str = ""
    query: str = ""

    def fields(self) -> dict[str, Any]:
        return {
            "name": self.name.strip(),
            "measure": self.measure.value,
            "margin": self.margin,
            "tolerance": self.tolerance,
            "slack": self.slack,
            "least": self.least,
            "limit": self.limit,
            "patience": self.patience,
            "trial": self.trial,
            "url": self.url.strip(),
            "query": self.query.strip(),
        }


#: Slug → gate, of the set that most platforms want; what cannot decide yet is on trial.
STANDARD: Final[Mapping[str, Wish]] = {
    "allocation": Wish("Allocation success", Measure.ALLOCATION),
    "prepared": Wish("Prepare time", Measure.PREPARED),
    "ready": Wish("Claim to Ready", Measure.READY),
    "failures": Wish("Failures that waiting does not mend", Measure.NOT_RETRYABLE),
    "cleanup": Wish("Failures that need cleanup", Measure.NEEDS_CLEANUP),
    "retries": Wish("Retried preparations", Measure.RETRIES),
    "drift": Wish("Drift", Measure.DRIFT),
    "conflicts": Wish("Conflicts", Measure.CONFLICTS),
    "devices": Wish("Devices that are seen", Measure.MISSING),
    "tenants": Wish("Tenant violations", Measure.VIOLATIONS),
    "fragmentation": Wish("Fragmentation", Measure.FRAGMENTATION, trial=True),
    "useful": Wish("Lost device time", Measure.USEFUL, trial=True),
    "restart": Wish(
        "Driver restart to first Ready", Measure.RESTART, least=3, limit=60, trial=True
    ),
}


def problems(wish: Wish) -> dict[str, str]:
    """What is wrong with a wish, by field; empty where nothing is."""
    wrong = {}
    kind = ABOUT[wish.measure].kind
    if not wish.name.strip():
        wrong["name"] = "Give it a name that people know."
    if not 0 < wish.margin < 1:
        wrong["margin"] = "Between 0 and 100 points; 10 is usual."
    if not 1 <= wish.tolerance <= 10:
        wrong["tolerance"] = "From 1 (nothing) to 10 times the baseline."
    if not 0 <= wish.slack <= 3600:
        wrong["slack"] = "From nothing to an hour, in seconds."
    if kind in (Kind.SHARE, Kind.SLOW, Kind.WITHIN) and not 1 <= wish.least <= 2000:
        wrong["least"] = "From 1 to 2,000 samples of each side."
    if kind is Kind.WITHIN and not 0 < wish.limit <= 86_400:
        wrong["limit"] = "Give the limit in seconds, up to a day."
    if not timedelta(0) < wish.patience <= MOST_PATIENCE:
        wrong["patience"] = "From a second to a day."
    if kind is Kind.OUTSIDE:
        try:
            guard.shape(wish.url.strip())
        except guard.Unfit as error:
            wrong["url"] = str(error)
        if wish.measure is Measure.PROMETHEUS and not wish.query.strip():
            wrong["query"] = "Write the query; a result above 0 passes."
    elif wish.url.strip() or wish.query.strip():
        wrong["url"] = "Only a webhook and a Prometheus query have an address."
    return wrong


@transaction.atomic
def define(
    slug: str, wish: Wish, *, access: PlatformAccess, request_id: str, now: datetime
) -> Gate:
    """Makes a gate; a webhook's secret stands in `secret`, to be shown once. Raises `Invalid`."""
    access.require(PlatformAct.RUN_POOLS)
    wrong = problems(wish)
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", slug):
        wrong["slug"] = "Lower-case letters, digits and '-'; waves name it so."
    elif Gate.objects.filter(slug=slug).exists():
        wrong["slug"] = "There is or was one of that name; take another."
    if wrong:
        raise Invalid("The gate was not made.", fields=wrong)
    gate = Gate.objects.create(
        slug=slug,
        secret=new_secret() if wish.measure is Measure.WEBHOOK else "",
        made_by=access.user.person,
        made_at=now,
        **wish.fields(),
    )
    _record("gate.defined", gate, access, request_id, now)
    return gate


@transaction.atomic
def change(
    gate: Gate,
    wish: Wish,
    *,
    revision: int,
    access: PlatformAccess,
    request_id: str,
    now: datetime,
) -> Gate:
    """Changes a gate as it was at `revision`; what it measures stays.

    Raises `Invalid`, and `Outdated` where somebody else changed it meanwhile.
    """
    access.require(PlatformAct.RUN_POOLS)
    gate = Gate.objects.select_for_update().get(pk=gate.pk)
    if gate.revision != revision or gate.retired_at is not None:
        raise Outdated(
            "Somebody changed this gate meanwhile; look at it again.", revision=gate.revision
        )
    wrong = problems(wish)
    if wish.measure != gate.measure:
        wrong["measure"] = "What a gate measures stays: define another one."
    if wrong:
        raise Invalid("The gate was not changed.", fields=wrong)
    changed = {name: value for name, value in wish.fields().items() if getattr(gate, name) != value}
    if not changed:
        return gate
    for name, value in changed.items():
        setattr(gate, name, value)
    gate.revision += 1
    gate.save(update_fields=[*changed, "revision"])
    _record("gate.changed", gate, access, request_id, now, changed=sorted(changed))
    return gate


@transaction.atomic
def retire(gate: Gate, *, access: PlatformAccess, request_id: str, now: datetime) -> Gate:
    """It is measured no more; a wave that names it finds no reading, and waits for a person."""
    access.require(PlatformAct.RUN_POOLS)
    gate = Gate.objects.select_for_update().get(pk=gate.pk)
    if gate.retired_at is None:
        gate.retired_at, gate.secret = now, ""
        gate.save(update_fields=["retired_at", "secret"])
        _record("gate.retired", gate, access, request_id, now)
    return gate


@transaction.atomic
def take_standard(*, access: PlatformAccess, request_id: str, now: datetime) -> int:
    """Defines those of the standard set that are not there; returns how many."""
    access.require(PlatformAct.RUN_POOLS)
    there = set(Gate.objects.filter(slug__in=STANDARD).values_list("slug", flat=True))
    missing = [slug for slug in STANDARD if slug not in there]
    for slug in missing:
        define(slug, STANDARD[slug], access=access, request_id=request_id, now=now)
    return len(missing)


def _record(
    action: str,
    gate: Gate,
    access: PlatformAccess,
    request_id: str,
    now: datetime,
    **facts: Any,
) -> None:
    record(
        action=action,
        subject=f"gate {gate.slug}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        facts={"measure": gate.measure, "revision": gate.revision, "trial": gate.trial, **facts},
    )
