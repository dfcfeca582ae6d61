"""Samples of lost device time, from what training platforms told of runs.

Of most Pods nobody tells anything, and then nothing is known: they are no samples.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime

from devices.asks.training import hold_of
from devices.dra.training import Kind, Signal, account, sums
from devices.models import StageTimes, TrainingSignal
from migrationplan.gates import Sample, Samples
from migrationplan.gating.ways import Way, Ways


def samples_of(ways: Ways, now: datetime) -> Samples:
    """Of each Pod of which a platform told, the share of its known device time that was lost, in
    per cent; two queries.
    """
    uids = [way.pod for way in (*ways.moved, *ways.others)]
    signals: dict[int, list[TrainingSignal]] = defaultdict(list)
    asks = {way.ask for way in (*ways.moved, *ways.others)}
    for one in TrainingSignal.objects.filter(claim__in=asks).order_by("at", "pk"):
        signals[one.claim_id].append(one)
    rows = StageTimes.objects.filter(pod_uid__in=uids, claim__in=signals)
    lost = {row.pod_uid: _lost(row, signals[row.claim_id], now) for row in rows}

    def side(found: Iterable[Way]) -> tuple[Sample, ...]:
        return tuple(
            Sample(way.pod, way.node, value)
            for way in found
            if (value := lost.get(way.pod)) is not None
        )

    if all(value is None for value in lost.values()):
        return Samples(unknown="no training platform has told of a Pod here")
    return Samples(side(ways.moved), side(ways.others))


def _lost(row: StageTimes, signals: Iterable[TrainingSignal], now: datetime) -> float | None:
    hold = hold_of(row)
    if hold is None or hold.start is None:
        return None
    own = [
        Signal(Kind(one.kind), one.at, one.event_id, one.seconds, one.ok)
        for one in signals
        if one.pod in ("", row.pod)
    ]
    share = sums(account(hold, own, now).stretches, hold.start, hold.end or now).share
    return None if share is None else 100 * (1 - share)
