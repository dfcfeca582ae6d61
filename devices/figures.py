"""How fresh the mirror is, where asks stand and what leaks, for the metrics."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from django.db.models import Count, Min

from devices.dra.lifecycle import ENDED, State
from devices.forecasts.forecast import hit_rate
from devices.ledger.figures import totals
from devices.models import (
    Claim,
    ClusterState,
    Leadership,
    LeakRow,
    LedgerDifference,
    LedgerHead,
    LedgerNode,
    Observed,
    Offer,
    Sync,
)
from portal import metrics

#: Of the counts of a class (devices.catalogue.offers): what adds up to its total.
STATES = ("free", "allocated", "shared", "fragmented", "unavailable", "unknown")


def read(now: datetime) -> Iterator[metrics.Reading]:
    """Ten queries, and three more once the ledger was opened."""
    yield from _cluster(now)
    yield from _mirror(now)
    yield from _asks(now)
    yield from _offers(now)
    yield from _ledger(now)


def _ledger(now: datetime) -> Iterator[metrics.Reading]:
    head = LedgerHead.objects.first()
    if head is None or head.looked_at is None:
        return
    yield metrics.LEDGER_AGE.at(metrics.age(head.looked_at, now))
    yield metrics.LEDGER_REFUSED.at(head.doubled, "doubled")
    yield metrics.LEDGER_REFUSED.at(head.older, "older")
    yield metrics.LEDGER_WAITING.at(head.waiting)
    yield metrics.LEDGER_NUMA_REFUSED.at(head.numa_refused)
    rows = LedgerNode.objects.values("state").annotate(n=Count("pk"), first=Min("since"))
    age = 0.0
    for row in rows.order_by("state"):
        yield metrics.LEDGER_NODES.at(row["n"], row["state"])
        age = metrics.age(row["first"], now) if row["state"] == "rebuilding" else age
    yield metrics.LEDGER_MAPPING_AGE.at(age)
    yield from _sums()
    differ = LedgerDifference.objects.filter(until=None).values("verdict")
    for one in differ.annotate(n=Count("pk")).order_by("verdict"):
        yield metrics.LEDGER_DIFFERENCES.at(one["n"], one["verdict"])


def _sums() -> Iterator[metrics.Reading]:
    """What nodes offer and are charged, of what devices may cost; read as the last look left it."""
    for resource, offered, streams in totals(LedgerNode.objects.values_list("figures", flat=True)):
        yield metrics.LEDGER_OFFERED.at(offered, resource)
        for stream, amount in streams.items():
            yield metrics.LEDGER_CHARGED.at(amount, resource, stream)


def _cluster(now: datetime) -> Iterator[metrics.Reading]:
    state = ClusterState.objects.only("reachable", "contact_at").first()
    yield metrics.CLUSTER_REACHABLE.at(float(state is not None and state.reachable))
    if state is not None and state.contact_at is not None:
        yield metrics.CLUSTER_CONTACT_AGE.at(metrics.age(state.contact_at, now))
    leaders = Leadership.objects.exclude(holder="").filter(expires__gt=now).count()
    yield metrics.WATCH_LEADERS.at(leaders)


def _mirror(now: datetime) -> Iterator[metrics.Reading]:
    for row in Observed.objects.values("kind").annotate(n=Count("pk")).order_by("kind"):
        yield metrics.MIRROR_ROWS.at(row["n"], row["kind"])
    for sync in Sync.objects.filter(served=True).order_by("kind"):
        yield metrics.MIRROR_TROUBLED.at(float(bool(sync.error)), sync.kind)
        if sync.alive_at is not None:
            yield metrics.MIRROR_AGE.at(metrics.age(sync.alive_at, now), sync.kind)
        if sync.news_at is not None:
            yield metrics.MIRROR_EVENT_AGE.at(metrics.age(sync.news_at, now), sync.kind)


def _asks(now: datetime) -> Iterator[metrics.Reading]:
    rows = Claim.objects.exclude(state__in=ENDED).values("state", "code")
    for row in rows.annotate(n=Count("pk"), oldest=Min("since")).order_by("state", "code"):
        yield metrics.CLAIMS.at(row["n"], row["state"], row["code"])
        if row["state"] == State.HELD:
            yield metrics.HOLDS.at(row["n"], row["code"])
            yield metrics.HOLD_AGE.at(metrics.age(row["oldest"], now), row["code"])
    leaks = LeakRow.objects.filter(gone_at=None, kept_at=None).exclude(believed_at=None)
    for leak in leaks.values("code").annotate(n=Count("pk")).order_by("code"):
        yield metrics.LEAKS.at(leak["n"], leak["code"])
    rate = hit_rate(now)
    yield metrics.FORECASTS.at(rate.right, "right")
    yield metrics.FORECASTS.at(rate.compared - rate.right, "wrong")
    yield metrics.FORECASTS.at(rate.not_compared, "not compared")
    yield metrics.FORECASTS.at(rate.open, "open")
    if rate.share is not None:
        yield metrics.FORECAST_HITS.at(rate.share)


def _offers(now: datetime) -> Iterator[metrics.Reading]:
    counted = None
    for offer in Offer.objects.order_by("device_class"):
        counted = min(counted or offer.counted_at, offer.counted_at)
        for state in STATES:
            if state in offer.counts:
                yield metrics.DEVICES.at(offer.counts[state], offer.device_class, state)
    if counted is not None:
        yield metrics.OFFERS_AGE.at(metrics.age(counted, now))
