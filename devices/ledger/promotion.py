"""What the tables know for the promotion report."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Min

from devices.cluster.capabilities import State as FactState
from devices.cluster.capabilities import facts_of
from devices.dra.charges import GATE
from devices.dra.ledgerreport import WINDOW, Objectives, Record, Upgrade
from devices.dra.ledgerrollout import Phase
from devices.dra.snapshot import Snapshot
from devices.ledger.objectives import fullest, waiting
from devices.models import (
    ClusterState,
    LedgerHead,
    LedgerLine,
    LedgerNode,
    LedgerObjectives,
    LedgerPool,
    LedgerRolloutMove,
    LedgerUpgrade,
)

#: So many changes of release are looked at.
_UPGRADES = 20


def record_of(snapshot: Snapshot, now: datetime) -> Record:
    """Ten small queries."""
    head = LedgerHead.objects.first()
    cluster = ClusterState.objects.first()
    facts = facts_of(cluster.capabilities) if cluster else {}
    fact = facts.get(GATE)
    told = fact is not None and fact.state in (FactState.ON, FactState.OFF)
    refused = LedgerLine.objects.filter(act__in=["doubled", "older"], at__gte=now - WINDOW)
    states = list(LedgerNode.objects.values_list("state", flat=True))
    resumed = LedgerRolloutMove.objects.filter(frm=Phase.REPAIRED, to=Phase.CANARY).first()
    asked = LedgerObjectives.objects.first()
    return Record(
        looks=head.look if head else 0,
        first_look=LedgerLine.objects.aggregate(first=Min("at"))["first"],
        equal_since=head.since_equal if head else None,
        safe=states.count("safe"),
        nodes=len(states),
        refused=refused.count(),
        restarts=LedgerPool.objects.filter(epoch__gt=1, complete=True, invalid="").count(),
        gate=fact.state is FactState.ON if told and fact is not None else None,
        release=cluster.release if cluster else "",
        rolled_back=resumed.at if resumed else None,
        upgrades=tuple(
            Upgrade(
                row.frm, row.to, row.at, row.settled_at is not None, row.before, row.after, row.told
            )
            for row in LedgerUpgrade.objects.all()[:_UPGRADES]
        ),
        objectives=Objectives(asked.most_charged, asked.most_pending) if asked else None,
        fullest=fullest() if asked else None,
        waiting=waiting(snapshot) if asked else (),
    )
