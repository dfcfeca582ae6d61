"""Forecasts: what would come of an ask, remembered with it, and compared with what came.

Reads the warm picture of the cluster and the history; the rules are
`devices.forecasts.whatif` and its neighbours, which know no database.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import Count, F, Min, Q
from django.utils import timezone

from devices.asks.history import Usual, usual_times
from devices.cluster_link import ClusterLink, cluster_link
from devices.dra.objects import ClaimWish
from devices.dra.podverdict import waiting
from devices.dra.status import Status
from devices.dra.templates import (
    BadValue,
    Draft,
    Template,
    Value,
    answers,
    build,
    claim_wish,
)
from devices.forecasts.alternatives import Alternative, alternatives
from devices.forecasts.judging import judge
from devices.forecasts.picture import Picture
from devices.forecasts.warm import warm
from devices.forecasts.whatif import CPU, MEMORY, Fate, Outlook, of_pod, of_wishes, outlook, wish_of
from devices.models import Claim, Forecast
from devices.routing.routes import Path
from tenants.models import Tenant

#: How far back the hit rate looks.
LOOK_BACK: Final = timedelta(days=30)
#: The scheduler's word for everything that has to do with devices; the rules say which it is.
VAGUE: Final = "NO_MATCHING_DEVICE_FREE"
#: Reasons of a waiting Pod that the rules can explain further, beside those of devices.
EXPLAINED: Final = frozenset(
    {
        VAGUE,
        "CLASS_MISSING",
        "CONSTRAINT_NOT_SATISFIED",
        "NODE_CLOSED",
        "NODE_RESOURCES_SHORT",
        "NODE_TAINTED",
        "NOT_SCHEDULED_YET",
        "POOL_INCOMPLETE",
        "POOL_INVALID",
        "SELECTOR_FAILS",
        "SELECTOR_NO_SUCH_KEY",
    }
)


@dataclass(frozen=True, slots=True)
class Advice:
    """What is foretold of an ask. ``found`` is None where the cluster was never seen, or a large
    one is being read for the first time; ``as_of`` is the moment that it shows.
    """

    link: ClusterLink
    found: Outlook | None
    as_of: datetime | None
    nearest: tuple[Alternative, ...]
    usual: Usual
    asked: ClaimWish
    cpu: str
    memory: str

    @property
    def old(self) -> bool:
        """Whether the cluster is not heard now, so that this may be over."""
        return not self.link.live


def advise(
    *,
    tenant: Tenant,
    template: Template,
    values: Mapping[str, Value],
    namespace: str,
    name: str,
    now: datetime,
    mine: Collection[str] = (),
    cpu: str = CPU,
    memory: str = MEMORY,
) -> Advice:
    """What would come of an ask with these answers (from `answers`): writes nothing.

    ``mine`` are the namespaces whose claims the asker could end.
    """

    def asked(draft: Draft) -> ClaimWish:
        return claim_wish(template, draft, name=name, namespace=namespace, tenant=tenant.slug)

    wish = asked(build(template, values))
    seen, link = warm(), cluster_link()
    usual = usual_times(wish.device_classes, now)["wait"]
    if seen is None:
        return Advice(link, None, None, (), usual, wish, cpu, memory)
    found = outlook(seen, wish, cpu=cpu, memory=memory, mine=mine)
    nearest: tuple[Alternative, ...] = ()
    if not found.fits:
        nearest = alternatives(seen, template, values, asked, tenant=tenant.slug)
    return Advice(link, found, seen.as_of, nearest, usual, wish, cpu, memory)


def pending(
    claim: Claim, mine: Collection[str] = (), pods: Iterable[str] | None = None
) -> tuple[Outlook, Picture] | None:
    """Why an ask waits, as the cluster stands now; None where the cluster was never seen.

    The first of its ``pods`` (those that its row names by default) that waits is asked about with
    all its claims and its own wishes for a node; before any Pod came, the ask alone.
    """
    seen = warm()
    if seen is None:
        return None
    for name in [pod["name"] for pod in claim.pods] if pods is None else pods:
        pod = seen.now.pods.get((claim.namespace.name, name))
        if pod is not None and waiting(pod):
            return of_pod(seen, pod, mine), seen
    return of_wishes(seen, [wish_of(claim.wish())], mine), seen


def nearest_to(claim: Claim, seen: Picture) -> tuple[Alternative, ...]:
    """Other answers to the questions of the claim's own template version that fit now."""
    template = claim.version.read()
    wish = claim.wish()

    def asked(draft: Draft) -> ClaimWish:
        return replace(wish, devices=draft.devices, matches=draft.matches, configs=draft.configs)

    try:
        values = answers(template, claim.values)
    except BadValue:
        return ()  # an answer of that time is none of its options any more
    return alternatives(seen, template, values, asked, tenant=claim.tenant.slug)


def refined(claim: Claim, status: Status) -> str:
    """The code that a turn records: where the scheduler only says that no node would do, what the
    rules find; the scheduler's own where they find that it would fit by now.
    """
    if status.code != VAGUE:
        return status.code
    found = pending(claim, pods=[pod.name for pod in status.pods])
    return found[0].code if found is not None and found[0].code else status.code


def remember_soon(claim: Claim) -> None:
    """Makes the forecast of an ask once its transaction is through: no lock waits for it."""
    moment = timezone.now()
    transaction.on_commit(lambda: remember(claim, moment), robust=True)


def remember(claim: Claim, now: datetime) -> Forecast:
    """Stores what is foretold of an ask now. Doing it twice keeps the first."""
    seen, link = warm(), cluster_link()
    if seen is None or not link.live or claim.path == Path.PLUGIN:
        # What a plugin's nodes will do is the scheduler's count alone: nothing is foretold of it.
        told: dict[str, Any] = {"fate": Fate.UNKNOWN.value, "seen_at": seen.as_of if seen else None}
    else:
        found = outlook(seen, claim.wish())
        told = {
            "fate": found.fate.value,
            "code": found.code,
            "nodes": len(found.nodes),
            "release": found.release,
            "seen_at": seen.as_of,
        }
    return Forecast.objects.get_or_create(claim=claim, defaults={"made_at": now, **told})[0]


def judge_open(now: datetime, at_most: int = 500) -> int:
    """Compares open forecasts with what came; returns how many were decided."""
    rows = (
        Forecast.objects.filter(outcome=Forecast.Outcome.OPEN)
        .select_related("claim")
        .annotate(
            pod=Min("claim__stage_times__created_at"),
            allocated=Min(
                "claim__stage_times__allocated_at",
                filter=Q(
                    claim__stage_times__allocated_at__gte=F("claim__stage_times__created_at")
                    - timedelta(seconds=1)
                ),
            ),
        )
        .order_by("made_at")
    )
    decided = 0
    for row in rows[:at_most]:
        found = judge(
            fate=row.fate,
            made=row.made_at,
            pod=row.pod,
            allocated=row.allocated,
            wanted=row.claim.wanted,
            now=now,
        )
        if found is not None:
            decided += Forecast.objects.filter(pk=row.pk, outcome=Forecast.Outcome.OPEN).update(
                outcome=found.verdict.value,
                outcome_at=now,
                outcome_code=row.claim.code if found.took is None else "",
                took=found.took,
                why=found.why,
            )
    return decided


@dataclass(frozen=True, slots=True)
class HitRate:
    """How often forecasts were right: of those that said "fits", and of those that said "waits".

    ``same_code`` are those of the waiting ones that named the reason which it turned out to be.
    """

    fits_right: int
    fits_wrong: int
    waits_right: int
    waits_wrong: int
    same_code: int
    not_compared: int
    open: int

    @property
    def right(self) -> int:
        return self.fits_right + self.waits_right

    @property
    def fits_compared(self) -> int:
        return self.fits_right + self.fits_wrong

    @property
    def waits_compared(self) -> int:
        return self.waits_right + self.waits_wrong

    @property
    def compared(self) -> int:
        return self.fits_compared + self.waits_compared

    @property
    def share(self) -> float | None:
        """Between 0 and 1; None where nothing was compared yet."""
        return self.right / self.compared if self.compared else None

    @property
    def percent(self) -> str:
        """One digit behind the point; never rounded up to 100."""
        share = self.share
        return "" if share is None else f"{int(share * 1000) / 10:g}"


def hit_rate(now: datetime) -> HitRate:
    """Over the last 30 days, all tenants together; one query."""
    right, wrong = Q(outcome="right"), Q(outcome="wrong")
    fits = Q(fate=Fate.NOW.value)
    counts = Forecast.objects.filter(made_at__gt=now - LOOK_BACK).aggregate(
        fits_right=Count("pk", filter=right & fits),
        fits_wrong=Count("pk", filter=wrong & fits),
        waits_right=Count("pk", filter=right & ~fits),
        waits_wrong=Count("pk", filter=wrong & ~fits),
        same_code=Count("pk", filter=right & ~fits & Q(outcome_code=F("code"))),
        not_compared=Count("pk", filter=Q(outcome="not compared")),
        open=Count("pk", filter=Q(outcome="open")),
    )
    return HitRate(**counts)
