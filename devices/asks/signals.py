"""What training platforms tell of their runs, stored once, in whatever order it comes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from devices.asks.history import KEPT
from devices.dra.training import Kind
from devices.models import Claim, Observed, StageTimes, TrainingSignal
from tenants.models import Tenant

#: So many signals one call may bring.
MOST: Final = 500
#: A platform's clock may be so far ahead of ours.
AHEAD: Final = timedelta(minutes=5)

UNKNOWN_CLAIM: Final = "UNKNOWN_CLAIM"
UNKNOWN_POD: Final = "UNKNOWN_POD"
EVENT_ID_REUSED: Final = "EVENT_ID_REUSED"
TIME_OUT_OF_RANGE: Final = "TIME_OUT_OF_RANGE"


@dataclass(frozen=True, slots=True)
class Told:
    """One thing that a platform says. The claim is named by its id, or by one of its Pods."""

    id: str
    kind: Kind
    at: datetime
    claim: str = ""
    namespace: str = ""
    pod: str = ""
    run: str = ""
    seconds: float | None = None
    ok: bool = True
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of one: stored, known (sent before), or refused with a code and why."""

    id: str
    result: str
    code: str = ""
    why: str = ""


def tell(
    told: Sequence[Told], *, tenant: Tenant | None, person: UUID, now: datetime
) -> list[Answer]:
    """Stores signals; answers in the order in which they came. Sending all of them again is safe.

    ``tenant`` is whose claims they may be about; None for a platform that speaks of all tenants.
    A signal about a claim or a Pod that nobody knows is refused, and the others are stored: the
    Pod may have been made a moment ago, and the platform sends it again.
    """
    claims = _claims_of(told, tenant)
    answers: dict[int, Answer] = {}
    rows: list[TrainingSignal] = []
    places: list[int] = []
    for place, one in enumerate(told):
        claim = claims.get(one.claim or f"{one.namespace}/{one.pod}")
        if claim is None:
            answers[place] = _unknown(one)
        elif not now - KEPT <= one.at <= now + AHEAD:
            why = f"It must be of the last {KEPT.days} days, and not of the future."
            answers[place] = Answer(one.id, "refused", TIME_OUT_OF_RANGE, why)
        else:
            rows.append(_row(one, claim, person, now))
            places.append(place)
    before = _known(rows)
    TrainingSignal.objects.bulk_create(
        [row for row in rows if (row.tenant_id, row.event_id) not in before], ignore_conflicts=True
    )
    stored = _known(rows)
    mine: set[tuple[int, str]] = set()
    for place, row in zip(places, rows, strict=True):
        key = (row.tenant_id, row.event_id)
        if _content(stored[key]) != _content(row):
            why = "Another signal has this id already; give each its own."
            answers[place] = Answer(row.event_id, "refused", EVENT_ID_REUSED, why)
        else:
            again = key in before or key in mine or stored[key].told_at != now
            answers[place] = Answer(row.event_id, "known" if again else "stored")
            mine.add(key)
    return [answers[place] for place in range(len(told))]


def _claims_of(told: Sequence[Told], tenant: Tenant | None) -> dict[str, Claim]:
    """By public id, or by namespace and Pod where no id was given; three queries."""
    named = {one.claim for one in told if one.claim}
    pods = {(one.namespace, one.pod) for one in told if not one.claim and one.pod}
    by_pod: dict[tuple[str, str], str] = {}
    if pods:
        names, spaces = {pod for _, pod in pods}, {space for space, _ in pods}
        seen = StageTimes.objects.filter(pod__in=names, claim__namespace__name__in=spaces)
        found = seen.order_by("pk").values_list("claim__namespace__name", "pod", "claim__public_id")
        fresh = Observed.objects.filter(kind="Pod", namespace__in=spaces, name__in=names)
        mirrored = fresh.exclude(claim="").values_list("namespace", "name", "claim")
        for space, pod, public_id in (*found, *mirrored):
            if (space, pod) in pods:
                by_pod[space, pod] = public_id
    rows = Claim.objects.filter(public_id__in=named | set(by_pod.values()))
    if tenant is not None:
        rows = rows.filter(tenant=tenant)
    claims = {row.public_id: row for row in rows.select_related("namespace")}
    # A label that points at a claim of another namespace is nobody's word.
    placed = {
        f"{space}/{pod}": claims[public_id]
        for (space, pod), public_id in by_pod.items()
        if public_id in claims and claims[public_id].namespace.name == space
    }
    return claims | placed


def _unknown(one: Told) -> Answer:
    if one.claim:
        return Answer(one.id, "refused", UNKNOWN_CLAIM, "No claim of yours has this id.")
    why = "No claim of yours has such a Pod, or nobody has seen it yet: send it again."
    return Answer(one.id, "refused", UNKNOWN_POD, why)


def _row(one: Told, claim: Claim, person: UUID, now: datetime) -> TrainingSignal:
    return TrainingSignal(
        tenant_id=claim.tenant_id,
        claim=claim,
        event_id=one.id,
        pod=one.pod,
        run=one.run,
        kind=one.kind,
        at=one.at,
        seconds=one.seconds if one.kind is Kind.USEFUL else None,
        ok=one.ok,
        step=one.step,
        told_at=now,
        told_by=person,
    )


def _known(rows: Sequence[TrainingSignal]) -> dict[tuple[int, str], TrainingSignal]:
    found = TrainingSignal.objects.filter(
        tenant_id__in={row.tenant_id for row in rows}, event_id__in={row.event_id for row in rows}
    )
    return {(row.tenant_id, row.event_id): row for row in found}


def _content(row: TrainingSignal) -> tuple[Any, ...]:
    return (row.claim_id, row.pod, row.run, str(row.kind), row.at, row.seconds, row.ok, row.step)


def forget(now: datetime) -> int:
    """Drops signals that are too old to count; returns how many."""
    return TrainingSignal.objects.filter(at__lt=now - KEPT).delete()[0]
