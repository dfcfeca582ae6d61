"""Writing the ledger: one look at the mirror adds lines to the log, and judges what it comes to.

A look may run twice or die anywhere: all that it writes is one transaction, and a second look at
the same cluster adds nothing. Nothing here talks to the cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.urls import reverse

from devices.dra.codes import CODES
from devices.dra.ledgerchanges import changed_nodes, with_sharers
from devices.dra.ledgercompare import Difference, Verdict, compare
from devices.dra.ledgerentries import Entry, look
from devices.dra.ledgerlog import Act, LogLine, news
from devices.dra.ledgerpools import PoolState, follow
from devices.dra.ledgerstate import NodeState, State, states
from devices.dra.pools import PoolKey
from devices.dra.snapshot import Snapshot
from devices.ledger import rollouts, upgrades
from devices.ledger.figures import counted
from devices.ledger.objectives import numa_refused, waiting
from devices.ledger.rows import lines_of, row_of
from devices.ledger.staleness import stale_nodes
from devices.ledger.writers import writers_of
from devices.models import LedgerDifference, LedgerHead, LedgerLine, LedgerNode, LedgerPool
from portal import news as portal_news
from portal.alerts.raising import About, over, raise_alert
from portal.alerts.rules import Severity

TOPIC: Final = "ledger"
#: The mirror's kinds arrive one by one: a difference that is gone at the next look was none.
PATIENCE: Final = timedelta(seconds=5)
#: So often a look visits every node, whatever changed.
WHOLE_EVERY: Final = timedelta(minutes=10)
#: A node that rebuilds for longer than this needs somebody.
REBUILDS: Final = timedelta(minutes=3)


@dataclass(frozen=True, slots=True)
class Looked:
    """What a look did."""

    lines: int = 0
    doubled: int = 0
    older: int = 0
    differences: int = 0


@dataclass(frozen=True, slots=True)
class _Last:
    """The last look of this process: what it saw, its number, and when it was last a whole one."""

    snapshot: Snapshot
    look: int
    lines: int
    whole_at: datetime


@dataclass(slots=True)
class _Memory:
    now: _Last | None = None


_last: Final = _Memory()


def scan(snapshot: Snapshot, as_of: datetime, now: datetime) -> Looked:
    """Writes what is new since the last look; `as_of` is the moment that the snapshot shows.

    A snapshot older than the last look is passed over: another worker was ahead.
    """
    with transaction.atomic():
        LedgerHead.objects.get_or_create(name="ledger")
        head = LedgerHead.objects.select_for_update().get(name="ledger")
        if head.as_of is not None and as_of < head.as_of:
            return Looked()
        head.look, head.as_of, head.looked_at = head.look + 1, as_of, now
        before = pool_states()
        pools = follow(before, snapshot)
        nodes = _to_visit(snapshot, head, now)
        seen = look(snapshot, pools, nodes)
        rows = LedgerLine.objects.standing()
        standing = list(lines_of(rows if nodes is None else rows.filter(node__in=nodes)))
        added = news(standing, seen)
        _write(added, head.look, as_of)
        _keep_pools(before, pools, now)
        charges = _charges(standing, added)
        differences = compare(charges, seen)
        lasting = _keep_differences(differences, nodes, now)
        changed = _keep_states(
            states(
                snapshot,
                pools,
                charges,
                seen,
                lasting,
                stale_nodes(snapshot, now),
                rollouts.held_nodes(snapshot),
                nodes,
            ),
            counted(charges.values()),
            nodes,
            now,
        )
        looked = Looked(
            len(added),
            sum(line.act is Act.DOUBLED for line in added),
            sum(line.act is Act.OLDER for line in added),
            len(differences),
        )
        before_it = {line.entry.key: line.entry for line in standing if line.act is Act.CHARGE}
        head.waiting, head.numa_refused = len(waiting(snapshot)), numa_refused(snapshot)
        upgrades.note(head, before_it, charges, seen, now)
        _count(head, looked, lasting, now)
    before_this = _last.now
    whole = now if nodes is None or before_this is None else before_this.whole_at
    _last.now = _Last(snapshot, head.look, head.lines, whole)
    if added or changed:
        portal_news.publish([TOPIC], tenant=portal_news.PLATFORM)
    return looked


def _to_visit(snapshot: Snapshot, head: LedgerHead, now: datetime) -> set[str] | None:
    """Nodes of which anything changed since this process looked last, and those that are not safe;
    None for all of them: at first, every ten minutes, and where the cluster's release changed.
    """
    last = _last.now
    if (
        last is None
        or head.look - 1 < last.look
        or head.lines < last.lines
        or not timedelta(0) <= now - last.whole_at < WHOLE_EVERY
        or upgrades.under_way(head)
    ):
        return None
    nodes = changed_nodes(last.snapshot, snapshot)
    if nodes is None:
        return None
    nodes |= set(LedgerNode.objects.exclude(state="safe").values_list("node", flat=True))
    nodes |= set(LedgerDifference.objects.filter(until=None).values_list("node", flat=True))
    nodes |= stale_nodes(snapshot, now).keys() | rollouts.held_nodes(snapshot)
    return with_sharers(snapshot, nodes)


def forget() -> None:
    """Drops what this process remembers of its last look, for tests."""
    _last.now = None


def standing_charges(at: datetime | None = None) -> Mapping[str, Entry]:
    """The entries that stand, or stood at a moment, by key."""
    return {line.entry.key: line.entry for line in lines_of(LedgerLine.objects.charges(at))}


def pool_states() -> dict[PoolKey, PoolState]:
    """What is known of each slice pool."""
    return {
        (row.driver, row.pool): PoolState(
            (row.driver, row.pool), row.epoch, row.generation, frozenset(row.slices), row.complete,
            row.invalid, row.refused,
        )
        for row in LedgerPool.objects.all()
    }  # fmt: skip


def _write(added: Sequence[LogLine], number: int, as_of: datetime) -> None:
    writers = writers_of(line.entry for line in added if line.act is not Act.RELEASE)
    rows = [
        row_of(line, look=number, at=as_of, writer=writers.get(_source(line.entry), ""))
        for line in added
    ]
    LedgerLine.objects.bulk_create(rows, batch_size=2000)


def _source(entry: Entry) -> tuple[str, str]:
    return entry.source, entry.pod_uid if entry.source == "Pod status" else ""


def _charges(standing: Iterable[LogLine], added: Iterable[LogLine]) -> dict[str, Entry]:
    ended = {line.ends for line in added if line.ends}
    kept = (line for line in standing if line.id not in ended)
    return {line.entry.key: line.entry for line in (*kept, *added) if line.act is Act.CHARGE}


def _keep_pools(
    before: Mapping[PoolKey, PoolState], pools: Mapping[PoolKey, PoolState], now: datetime
) -> None:
    changed = [state for key, state in pools.items() if before.get(key) != state]
    LedgerPool.objects.bulk_create(
        [
            LedgerPool(
                driver=state.key[0], pool=state.key[1], epoch=state.epoch,
                generation=state.generation, slices=sorted(state.slices), complete=state.complete,
                invalid=state.invalid, refused=state.refused, since=now,
            )
            for state in changed
        ],
        batch_size=1000,
        update_conflicts=True,
        unique_fields=["driver", "pool"],
        update_fields=[
            "epoch", "generation", "slices", "complete", "invalid", "refused", "since",
        ],
    )  # fmt: skip


def _keep_differences(
    differences: Sequence[Difference], nodes: Collection[str] | None, now: datetime
) -> list[Difference]:
    """Begins and ends rows of these nodes (None: of all); returns the differences that lasted."""
    rows = LedgerDifference.objects.filter(until=None)
    open_rows = {row.key: row for row in (rows if nodes is None else rows.filter(node__in=nodes))}
    found = {one.key: one for one in differences}
    ended = [row.pk for key, row in open_rows.items() if _shown(row) != _told(found.get(key))]
    LedgerDifference.objects.filter(pk__in=ended).update(until=now)
    gone = set(ended)
    kept = {key: row for key, row in open_rows.items() if row.pk not in gone}
    LedgerDifference.objects.bulk_create(
        _difference_row(one, now) for key, one in found.items() if key not in kept
    )
    return [one for key, one in found.items() if key in kept and now - kept[key].since >= PATIENCE]


def _shown(row: LedgerDifference) -> tuple[str, ...]:
    return (row.verdict, row.code, row.log, row.objects_say, row.status)


def _told(one: Difference | None) -> tuple[str, ...]:
    if one is None:
        return ()
    return (one.verdict.value, one.code, *(_text(a) for a in (one.log, one.objects, one.status)))


def _text(amount: object) -> str:
    return "" if amount is None else str(amount)


def _difference_row(one: Difference, now: datetime) -> LedgerDifference:
    return LedgerDifference(
        key=one.key[:1200],
        node=one.node,
        resource=one.resource,
        pod=one.pod,
        claim=one.claim,
        verdict=one.verdict.value,
        code=one.code,
        log=_text(one.log),
        objects_say=_text(one.objects),
        status=_text(one.status),
        line_keys=list(one.keys),
        computed=[
            {
                "rule": entry.rule.value,
                "device": "/".join(entry.device or ()),
                "container": entry.container,
                "amount": _text(entry.amount),
                "source": entry.source,
                "version": str(entry.version),
            }
            for entry in one.entries
        ],
        since=now,
    )


def _keep_states(
    found: Iterable[NodeState],
    figures: Mapping[str, dict[str, list[int | None]]],
    nodes: Collection[str] | None,
    now: datetime,
) -> bool:
    """Writes the states of these nodes that changed (None: of all), rings for those that are unsafe
    and stops ringing.
    """
    held = LedgerNode.objects.select_for_update()
    rows = {row.node: row for row in (held if nodes is None else held.filter(node__in=nodes))}
    changed: list[LedgerNode] = []
    for one in found:
        row = rows.pop(one.node, None)
        reasons = [[reason.code, reason.about] for reason in one.reasons]
        code = one.reasons[0].code if one.reasons else ""
        if row is None:
            row = LedgerNode(node=one.node, since=now, state="")
        before = (row.state, row.code, row.reasons, row.told, row.figures)
        if row.state != one.state.value:
            row.since = now
        if row.told and row.code != code:
            over(row.code, subject(row.node), now=now)
            row.told = False
        row.state, row.code, row.reasons = one.state.value, code, reasons
        row.figures = figures.get(one.node, {})
        if not row.told and _rings(one, now - row.since):
            _ring(row, now)
            row.told = True
        if before != (row.state, row.code, row.reasons, row.told, row.figures):
            changed.append(row)
    for row in rows.values():  # nodes that are gone
        if row.told:
            over(row.code, subject(row.node), now=now)
    LedgerNode.objects.filter(pk__in=list(rows)).delete()
    LedgerNode.objects.bulk_create(
        changed,
        batch_size=1000,
        update_conflicts=True,
        unique_fields=["node"],
        update_fields=["state", "code", "reasons", "figures", "since", "told"],
    )
    return bool(changed or rows)


def _rings(one: NodeState, lasted: timedelta) -> bool:
    if one.state is State.UNSAFE:
        return True
    stopped = all(reason.code == "LEDGER_STOPPED" for reason in one.reasons)  # people know of that
    return one.state is State.REBUILDING and not stopped and lasted >= REBUILDS


def _ring(row: LedgerNode, now: datetime) -> None:
    told = CODES[row.code]
    raise_alert(
        About(
            code=row.code,
            subject=subject(row.node),
            title=f"The ledger of {row.node} cannot be relied on",
            severity=Severity.CRITICAL if row.state == State.UNSAFE else Severity.WARNING,
            failure_class=told.class_.value,
            words=f"{told.words} {told.next_step}",
            path=reverse("ledger-node", args=[row.node]),
            evidence=tuple((code, about) for code, about in row.reasons[:8]),
        ),
        now=now,
    )


def subject(node: str) -> str:
    """How alerts name the ledger of a node."""
    return f"ledger of node {node}"[:200]


def _count(head: LedgerHead, looked: Looked, lasting: Iterable[Difference], now: datetime) -> None:
    diverges = any(one.verdict is not Verdict.LATER for one in lasting)
    head.lines += looked.lines
    head.doubled += looked.doubled
    head.older += looked.older
    head.since_equal = None if diverges else head.since_equal or now
    head.save()
