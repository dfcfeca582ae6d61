"""Rows of the database as a bundle shows them: JSON values, in an order that does not change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from django.db.models import Q

from devices.models import Freeze, NodePool, OwnershipLine
from migrationplan.models import Drill, Move, MoveEvent, Reading, Wave, WaveEvent
from portal.approvals.models import Approval
from portal.audit.export import as_row
from portal.audit.models import AuditLine

Row = dict[str, Any]


def of_pool(pool: NodePool) -> Row:
    return {
        "slug": pool.slug,
        "name": pool.name,
        "selector": pool.selector,
        "resource": pool.resource,
        "driver": pool.driver,
        "device_class": pool.device_class,
        "plugin_label": pool.plugin_label,
        "driver_label": pool.driver_label,
        "plugin_sets": pool.plugin_sets,
        "driver_sets": pool.driver_sets,
        "devices_per_node": pool.devices_per_node,
        "settling_seconds": pool.settling.total_seconds(),
        "revision": pool.revision,
    }


def of_move(move: Move) -> Row:
    """As it stood when this was collected; its events say how it came there."""
    return {
        "id": move.public_id,
        "node": move.node,
        "node_uid": move.node_uid,
        "direction": move.direction,
        "step": move.step,
        "since": _time(move.since),
        "begun_at": _time(move.begun_at),
        "begun_by": str(move.begun_by),
        "ended_at": _time(move.ended_at),
        "cancelled": move.cancelled,
        "called": move.called,
        "why": move.why,
        "evidence": move.evidence,
        "plugin_off": _time(move.plugin_off),
        "reports": move.reports,
        "request_id": move.request_id,
    }


def move_events(moves: Sequence[Move], until: datetime) -> Iterator[Row]:
    rows = MoveEvent.objects.filter(move__in=moves, at__lte=until).select_related("move")
    for one in rows.order_by("pk"):
        yield {
            "move": one.move.public_id,
            "at": _time(one.at),
            "step": one.step,
            "direction": one.direction,
            "code": one.code,
            "text": one.text,
            "person": _person(one.person),
        }


def of_wave(wave: Wave) -> Row:
    return {
        "id": wave.public_id,
        "plan": wave.plan.public_id,
        "plan_revision": wave.plan.revision,
        "position": wave.position,
        "name": wave.name,
        "phase": wave.phase,
        "since": _time(wave.since),
        "why": wave.why,
        "code": wave.code,
        "concurrency": wave.concurrency,
        "max_errors": wave.max_errors,
        "evict_retryable": wave.evict_retryable,
        "rehearsed_days": wave.rehearsed_days,
        "gates": wave.gates,
        "waived": wave.waived,
        "started_at": _time(wave.started_at),
    }


def wave_events(waves: Sequence[Wave], until: datetime) -> Iterator[Row]:
    rows = WaveEvent.objects.filter(wave__in=waves, at__lte=until).select_related("wave")
    for one in rows.order_by("pk"):
        yield {
            "wave": one.wave.public_id,
            "at": _time(one.at),
            "phase": one.phase,
            "code": one.code,
            "text": one.text,
            "node": one.node,
            "past_the_plan": one.loud,
            "person": _person(one.person),
        }


def of_ownership(line: OwnershipLine) -> Row:
    return {
        "node": line.node,
        "node_uid": line.node_uid,
        "type": line.type,
        "owner": line.owner,
        "before": line.before,
        "plugin": line.plugin,
        "published": line.published,
        "hardware": line.hardware,
        "since": _time(line.since),
        "until": _time(line.until),
        "who": line.who,
        "why": line.why,
    }


def approvals(pool: NodePool, waves: Sequence[Wave], until: datetime) -> Iterator[Row]:
    """Of the waves and their plans; each with what was decided."""
    keys = {wave.public_id for wave in waves} | {wave.plan.public_id for wave in waves}
    asked = [wave.approval for wave in waves if wave.approval is not None]
    wanted = Q(key__in=sorted(keys)) | Q(pk__in=asked) | Q(subject=f"node pool {pool.slug}")
    rows = Approval.objects.filter(wanted, asked_at__lte=until).prefetch_related("decisions")
    for one in rows.order_by("pk"):
        yield {
            "number": one.number,
            "kind": one.kind,
            "subject": one.subject,
            "title": one.title,
            "lines": one.lines,
            "effects": one.effects,
            "digest": one.digest,
            "needed": one.needed,
            "author": str(one.author),
            "reason": one.reason,
            "state": one.state,
            "asked_at": _time(one.asked_at),
            "ended_at": _time(one.ended_at),
            "ended_why": one.ended_why,
            "decisions": [
                {
                    "person": str(each.person),
                    "by_right_of": str(each.holder),
                    "verdict": each.verdict,
                    "comment": each.comment,
                    "at": _time(each.at),
                }
                for each in one.decisions.all()
            ],
        }


def gate_readings(
    pool: NodePool, nodes: Sequence[str], since: datetime, until: datetime
) -> Iterator[Row]:
    """What gates said of these nodes, with the samples that it stands on."""
    rows = Reading.objects.filter(pool=pool, nodes__overlap=list(nodes), at__lte=until)
    for one in rows.filter(at__gte=since).order_by("pk").iterator(chunk_size=100):
        yield {
            "id": one.public_id,
            "wave": one.wave,
            "at": _time(one.at),
            "since": _time(one.since),
            "gate": one.gate,
            "name": one.name,
            "measure": one.measure,
            "settings": one.settings,
            "trial": one.trial,
            "verdict": one.verdict,
            "sentence": one.sentence,
            "figures": one.figures,
            "moved": one.moved,
            "samples": one.content,
            "samples_sha256": one.digest,
        }


def drills(pool: NodePool, since: datetime, until: datetime) -> Iterator[Row]:
    rows = Drill.objects.filter(pool=pool, begun_at__lte=until).prefetch_related("marks")
    for one in rows.filter(Q(ended_at=None) | Q(ended_at__gte=since)).order_by("pk"):
        yield {
            "id": one.public_id,
            "kind": one.kind,
            "node": one.node,
            "begun_at": _time(one.begun_at),
            "begun_by": str(one.begun_by),
            "ended_at": _time(one.ended_at),
            "result": one.result,
            "why": one.why,
            "marks": [
                {
                    "step": each.step,
                    "at": _time(each.at),
                    "text": each.text,
                    "evidence": each.evidence,
                    "person": _person(each.person),
                }
                for each in one.marks.all()
            ],
        }


def freezes(pool: NodePool, since: datetime, until: datetime) -> Iterator[Row]:
    """Of everything, of the pool's class and driver, and of the pool and its driver changes."""
    scopes = Freeze.Scope
    wanted = Q(scope=scopes.ALL) | Q(scope=scopes.CLASS, target=pool.device_class)
    wanted |= Q(scope=scopes.DRIVER, target=pool.driver)
    wanted |= Q(scope__in=[scopes.POOL, scopes.CHANGE], target=pool.slug)
    rows = Freeze.objects.filter(wanted, frozen_at__lte=until)
    for one in rows.filter(Q(ended_at=None) | Q(ended_at__gte=since)).order_by("pk"):
        yield {
            "id": one.public_id,
            "scope": one.scope,
            "target": one.target,
            "path": one.path,
            "strict": one.strict,
            "reason": one.reason,
            "frozen_by": str(one.frozen_by),
            "frozen_at": _time(one.frozen_at),
            "until": _time(one.until),
            "ended_at": _time(one.ended_at),
            "end": one.end,
        }


def audit_lines(
    pool: NodePool,
    moves: Sequence[Move],
    waves: Iterable[Wave],
    since: datetime,
    until: datetime,
) -> Iterator[Row]:
    """Lines about the pool, its moves and waves, and what else the same requests did."""
    waves = list(waves)
    subjects = {f"node pool {pool.slug}", *(f"move {move.public_id}" for move in moves)}
    subjects |= {f"wave {wave.public_id}" for wave in waves}
    subjects |= {f"plan {wave.plan.public_id}" for wave in waves}
    requests = {move.request_id for move in moves} - {""}
    lines = AuditLine.objects.filter(
        Q(subject__in=sorted(subjects)) | Q(request_id__in=sorted(requests)),
        at__gte=since,
        at__lte=until,
    )
    for line in lines.order_by("number"):
        row = as_row(line, "")
        del row["name"]
        yield row


def _time(moment: datetime | None) -> str | None:
    return moment.isoformat() if moment else None


def _person(person: Any) -> str | None:
    return str(person) if person else None
