"""The book of drift: where nodes show something else than they should have, and since when.

A scan reads the mirror and changes nothing in the cluster. A finding counts once it lasted
(`dra.hysteresis`); then it rings, and `drift_now` tells it to whoever must not go on over it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from django.db import transaction
from django.urls import reverse

from devices.cluster_link import stale_after
from devices.dra.codes import CODES, Class
from devices.dra.drift import Drift, drift, plugin_drift
from devices.dra.hysteresis import Step, step
from devices.dra.inventories import expected
from devices.dra.snapshot import NODE, SLICE, Snapshot
from devices.dra.wording import some_of
from devices.fleet.inventory import TOPIC, State
from devices.fleet.nodepools import heard, selected
from devices.forecasts.picture import Picture
from devices.models import DriftLine, Inventory, InventoryLine, NodePool
from portal import news
from portal.alerts.raising import About, over, raise_alert
from portal.alerts.rules import Severity

#: Nodes that an alert names.
NAMED: Final = 8


def scan(snapshot: Snapshot, now: datetime) -> int:
    """Compares what is found now with what stands in the book; returns how many findings count."""
    found = {digest(one): one for one in findings(snapshot)}
    homes = _homes(snapshot)
    changed = False
    with transaction.atomic():
        rows = {row.key: row for row in DriftLine.objects.select_for_update().filter(gone_at=None)}
        fresh = [_row(key, one, homes, now) for key, one in found.items() if key not in rows]
        # Two scans at the same time find the same: the second one's rows are left out.
        DriftLine.objects.bulk_create(fresh, ignore_conflicts=True)
        opened: list[DriftLine] = []
        for row in [*rows.values(), *fresh]:
            patience = CODES[row.code].patience
            match step(row.memory, row.key in found, patience, now):
                case Step.OPENED:
                    row.believed_at = now
                    opened.append(row)
                case Step.PASSED | Step.ENDED:
                    row.gone_at = now
            if row.key in found:
                row.seen_at = now
                row.why = found[row.key].why
                row.published = found[row.key].published
        kept = list(rows.values())
        fields = ["believed_at", "gone_at", "seen_at", "why", "published"]
        DriftLine.objects.bulk_update(kept, fields, batch_size=500)
        for row in opened:
            if row not in kept:
                DriftLine.objects.filter(key=row.key, gone_at=None).update(believed_at=now)
        changed = bool(fresh or opened) or any(row.gone_at is not None for row in kept)
        if changed:
            _ring(now)
    if changed:
        news.publish([TOPIC], tenant=news.PLATFORM)
    return DriftLine.objects.filter(gone_at=None, believed_at__isnull=False).count()


def findings(snapshot: Snapshot) -> list[Drift]:
    """Every finding that is neither information nor "nobody recorded anything"."""
    lines = InventoryLine.objects.filter(inventory__state=State.APPROVED).select_related(
        "inventory__pool"
    )
    everything = list(lines)
    plugins: dict[tuple[str, str], int] = {}
    for line in everything:
        place = (line.node, line.inventory.pool.resource)
        plugins[place] = plugins.get(place, 0) + line.count
    known = expected(line.value() for line in everything)
    found = [*drift(snapshot, known), *plugin_drift(snapshot, plugins)]
    return [one for one in found if one.code.class_ not in (Class.UNKNOWN, Class.INFORMATION)]


def digest(one: Drift) -> str:
    """The finding's key, short enough for an index."""
    return hashlib.sha256(one.key.encode()).hexdigest()


def _homes(snapshot: Snapshot) -> Mapping[tuple[str, str], NodePool]:
    """By node and by driver or resource, the node pool that it is in."""
    found: dict[tuple[str, str], NodePool] = {}
    for pool in NodePool.objects.all():
        for node in selected(pool.selector, snapshot):
            found[node, pool.driver] = found[node, pool.resource] = pool
    return found


def _row(
    key: str, one: Drift, homes: Mapping[tuple[str, str], NodePool], now: datetime
) -> DriftLine:
    return DriftLine(
        key=key,
        pool=homes.get((one.node, one.driver)),
        code=one.code.name,
        node=one.node,
        driver=one.driver,
        why=one.why,
        expected=one.expected,
        published=one.published,
        claims=list(one.claims),
        first_seen_at=now,
        seen_at=now,
    )


def _ring(now: datetime) -> None:
    """One alert for each code and node pool while any of its nodes shows it."""
    standing: dict[tuple[str, str], list[DriftLine]] = {}
    rows = DriftLine.objects.filter(believed_at__isnull=False).select_related("pool")
    for row in rows.filter(gone_at=None):
        standing.setdefault((row.code, _subject(row.pool)), []).append(row)
    gone = rows.filter(gone_at=now)
    for code, subject in {(row.code, _subject(row.pool)) for row in gone} - set(standing):
        over(code, subject, now=now)
    for (code, subject), lines in standing.items():
        pool = lines[0].pool
        names = sorted({line.node for line in lines if line.node})
        raise_alert(
            About(
                code=code,
                subject=subject,
                title=f"{CODES[code].words} {_where(pool)}"[:200],
                severity=Severity.WARNING,
                failure_class=CODES[code].class_.value,
                words=CODES[code].next_step,
                path=reverse("drift") if pool is None else reverse("inventory", args=[pool.slug]),
                evidence=(
                    ("Nodes", some_of(names, NAMED) or "none"),
                    ("First of them", lines[0].why),
                ),
            ),
            now=now,
        )


def _subject(pool: NodePool | None) -> str:
    return f"drift of node pool {pool.slug}" if pool is not None else "drift outside node pools"


def _where(pool: NodePool | None) -> str:
    return f"({pool.name})" if pool is not None else ""


class Drifts(StrEnum):
    """Whether a node pool is as it should be."""

    NONE = "none"
    DRIFT = "drift"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class DriftNow:
    """How a node pool stands against its inventory; a wave goes on over `NONE` only.

    ``counts`` are findings that lasted and stop a wave, ``watched`` those too young to count.
    """

    verdict: Drifts
    why: str
    inventory: Inventory | None = None
    counts: tuple[DriftLine, ...] = ()
    watched: tuple[DriftLine, ...] = ()
    unrecorded: tuple[str, ...] = ()

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of the nodes that drift."""
        return tuple(sorted({line.node for line in self.counts}))


def drift_now(pool: NodePool, picture: Picture | None, now: datetime) -> DriftNow:
    """How a node pool stands now, for pages and for waves; a constant number of queries.

    Unknown where no inventory is approved, where nodes have no line in it, or where the mirror is
    not known to show the present. What counts already counts in spite of that.
    """
    return overview(picture, now, [pool])[pool.pk]


def overview(
    picture: Picture | None, now: datetime, pools: Sequence[NodePool]
) -> dict[int, DriftNow]:
    """The same for several node pools, by primary key; four queries for all of them."""
    blind = _blind(picture, now)
    approved = Inventory.objects.filter(pool__in=pools, state=State.APPROVED)
    inventories = {one.pool_id: one for one in approved}
    recorded: dict[int, set[str]] = {}
    named = InventoryLine.objects.filter(inventory__in=inventories.values())
    for number, node in named.values_list("inventory__pool_id", "node"):
        recorded.setdefault(number, set()).add(node)
    lines: dict[int | None, list[DriftLine]] = {}
    for line in DriftLine.objects.filter(pool__in=pools, gone_at=None):
        lines.setdefault(line.pool_id, []).append(line)
    found = {}
    for pool in pools:
        nodes = set(selected(pool.selector, picture.now)) if picture is not None else set()
        found[pool.pk] = _told(
            inventories.get(pool.pk),
            nodes - recorded.get(pool.pk, set()),
            lines.get(pool.pk, []),
            blind,
        )
    return found


def _told(
    inventory: Inventory | None, missing: Collection[str], lines: Sequence[DriftLine], blind: str
) -> DriftNow:
    counts = tuple(line for line in lines if line.believed_at is not None)
    watched = tuple(line for line in lines if line.believed_at is None)
    unrecorded = tuple(sorted(missing)) if inventory is not None else ()
    verdict, why = Drifts.NONE, "Every node shows what it should have."
    if counts:
        number = len({line.node for line in counts})
        nodes = "1 node shows" if number == 1 else f"{number} nodes show"
        verdict, why = Drifts.DRIFT, f"{nodes} something else than recorded."
    elif blind or inventory is None:
        verdict, why = Drifts.UNKNOWN, blind or "Nobody recorded what its nodes should have."
    elif unrecorded:
        verb = "is" if len(unrecorded) == 1 else "are"
        verdict = Drifts.UNKNOWN
        why = f"{some_of(unrecorded, NAMED)} {verb} not recorded."
    return DriftNow(verdict, why, inventory, counts, watched, unrecorded)


def _blind(picture: Picture | None, now: datetime) -> str:
    """Why the mirror says nothing about now; empty where it does."""
    if picture is None:
        return "The cluster has not been seen yet."
    ages = heard()
    for kind in (NODE, SLICE):
        alive = ages.get(kind)
        if alive is None or now - alive > stale_after():
            return "The cluster is not heard now, so what nodes show may be over."
    return ""
