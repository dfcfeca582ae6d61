"""Inventories: what a node pool's nodes should have, recorded or brought as a file, and approved.

A version is in force once somebody else approved it; the one before stays to be read.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from django.db import transaction
from django.urls import reverse

from devices.dra.inventories import Line, read_file, recorded
from devices.dra.snapshot import Snapshot
from devices.dra.wording import some_of
from devices.fleet.nodepools import selected
from devices.models import Inventory, InventoryLine, NodePool
from portal import news
from portal.approvals import asks
from portal.approvals.models import Approval
from portal.approvals.rules import DecidedBy, Effect
from portal.approvals.rules import Line as ApprovalLine
from portal.approvals.rules import State as ApprovalState
from portal.audit.record import record
from portal.errors import Invalid, Refused
from portal.outbox import lines as outbox
from tenants.access import PlatformAccess
from tenants.policy import PlatformAct

KIND: Final = "inventory"
ADOPT: Final = "devices.tasks.adopt_inventory"
DECIDERS: Final = frozenset({"approver", "admin"})
TOPIC: Final = "drift"
LONGEST_NOTE: Final = 240
#: Lines that an approver reads one by one; beyond that they are counted.
SHOWN: Final = 200

State, Source = Inventory.State, Inventory.Source


class NothingSeen(Refused):
    """The cluster was not seen, or the pool's nodes show nothing that could be recorded."""

    code = "NOTHING_TO_RECORD"
    http_status = 409


def in_force(pool: NodePool) -> Inventory | None:
    """The approved version; None where there is none."""
    return pool.inventories.filter(state=State.APPROVED).first()


@transaction.atomic
def record_now(
    pool: NodePool,
    *,
    access: PlatformAccess,
    snapshot: Snapshot | None,
    note: str,
    request_id: str,
    now: datetime,
) -> Inventory:
    """Puts what the mirror shows now to review as the pool's inventory.

    Raises `NotPermitted`, `NothingSeen`, `AlreadyAsked`, `Invalid` (note; lines: nothing changes).
    """
    access.require(PlatformAct.RUN_POOLS)
    if snapshot is None:
        raise NothingSeen("The cluster has not been seen yet; nothing can be recorded.")
    names = selected(pool.selector, snapshot)
    found = recorded(snapshot, names, pool.driver, pool.resource)
    if not found.lines:
        raise NothingSeen("None of its nodes shows a device now, so there is nothing to record.")
    return _submit(
        pool, found.lines, found.left_out, Source.RECORDED, access, note, request_id, now
    )


@transaction.atomic
def bring(
    pool: NodePool,
    text: str,
    *,
    access: PlatformAccess,
    snapshot: Snapshot | None,
    note: str,
    request_id: str,
    now: datetime,
) -> Inventory:
    """Puts a file of comma-separated values to review as the pool's inventory.

    Raises `NotPermitted`, `NothingSeen`, `AlreadyAsked`, `Invalid` (file, note, lines).
    """
    access.require(PlatformAct.RUN_POOLS)
    if snapshot is None:
        raise NothingSeen("The cluster has not been seen yet; nobody knows the pool's nodes.")
    names = set(selected(pool.selector, snapshot))
    lines, wrong = read_file(text, names, pool.driver)
    if wrong:
        more = f" And {len(wrong) - 5} more." if len(wrong) > 5 else ""
        raise Invalid("Nothing was put to review.", fields={"file": " ".join(wrong[:5]) + more})
    left_out = tuple(sorted(names - {line.node for line in lines}))
    return _submit(pool, lines, left_out, Source.IMPORTED, access, note, request_id, now)


def _submit(
    pool: NodePool,
    lines: Sequence[Line],
    left_out: Sequence[str],
    source: str,
    access: PlatformAccess,
    note: str,
    request_id: str,
    now: datetime,
) -> Inventory:
    if not 0 < len(note.strip()) <= LONGEST_NOTE:
        limit = f"Say what this version is, in at most {LONGEST_NOTE} characters."
        raise Invalid("Nothing was put to review.", fields={"note": limit})
    pool = NodePool.objects.select_for_update().get(pk=pool.pk)
    _end_undecided(pool, now)
    open_one = pool.inventories.filter(state=State.IN_REVIEW).first()
    if open_one is not None:
        approval = Approval.objects.get(pk=open_one.approval or 0)
        raise asks.AlreadyAsked(
            f"{approval.number} asks about version {open_one.number} already; decide or withdraw "
            "it first.",
            approval=approval.number,
        )
    last = pool.inventories.first()
    before = in_force(pool)
    number = last.number + 1 if last is not None else 1
    made = Inventory.objects.create(
        pool=pool,
        number=number,
        source=source,
        note=note.strip(),
        left_out=list(left_out),
        made_by=access.user.person,
        made_at=now,
        request_id=request_id,
    )
    approval = asks.ask(
        kind=KIND,
        subject=f"inventory of node pool {pool.slug}",
        title=f"Inventory {number} of {pool.name}",
        lines=_diff(before, lines),
        effects=_effects(lines, left_out),
        by=DecidedBy(platform=DECIDERS),
        author=access.user.person,
        task=ADOPT,
        key=str(made.pk),
        reason=note,
        request_id=request_id,
        now=now,
        address=reverse("inventory", args=[pool.slug]),
    )
    made.approval = approval.pk
    made.save(update_fields=["approval"])
    InventoryLine.objects.bulk_create(
        [
            InventoryLine(
                inventory=made,
                node=line.node,
                driver=line.driver,
                model=line.model[:120],
                count=line.count,
                devices={name: list(marks) for name, marks in line.devices.items()},
            )
            for line in lines
        ],
        batch_size=1000,
    )
    _write("inventory.proposed", made, now, access.user.person, source=source, lines=len(lines))
    return made


def _end_undecided(pool: NodePool, now: datetime) -> None:
    """A version whose approval ended without a yes is no longer in review."""
    for one in pool.inventories.filter(state=State.IN_REVIEW):
        approval = Approval.objects.filter(pk=one.approval or 0).first()
        if approval is None or approval.state not in (ApprovalState.OPEN, ApprovalState.APPROVED):
            one.state, one.decided_at = State.REFUSED, now
            one.save(update_fields=["state", "decided_at"])


def adopt(inventory_id: int, *, now: datetime) -> bool:
    """Puts an approved version into force, once; returns whether it did so now."""
    key = str(inventory_id)
    through = outbox.newest(ADOPT, key)
    with transaction.atomic():
        row = Inventory.objects.select_related("pool").filter(pk=inventory_id).first()
        done = False
        if row is not None:
            NodePool.objects.select_for_update().get(pk=row.pool_id)
            row.refresh_from_db()
            approved = Approval.objects.filter(
                pk=row.approval or 0, state=ApprovalState.APPROVED
            ).exists()
            done = approved and row.state == State.IN_REVIEW
            if done:
                old = Inventory.objects.filter(pool=row.pool_id, state=State.APPROVED)
                old.update(state=State.REPLACED)
                row.state, row.decided_at = State.APPROVED, now
                row.save(update_fields=["state", "decided_at"])
                _write("inventory.adopted", row, now, None)
        outbox.settle(ADOPT, key, through=through)
    if done:
        news.publish([TOPIC], tenant=news.PLATFORM)
    return done


def _diff(before: Inventory | None, lines: Sequence[Line]) -> list[ApprovalLine]:
    """What changes node by node; of many changes the rest is counted."""
    old = _by_node(line.value() for line in before.lines.all()) if before is not None else {}
    new = _by_node(lines)
    found = [
        ApprovalLine(node, old.get(node), new.get(node), "Devices by node")
        for node in sorted({*old, *new})
        if old.get(node) != new.get(node)
    ]
    if len(found) > SHOWN:
        rest = len(found) - SHOWN
        found = [*found[:SHOWN], ApprovalLine(f"{rest} more nodes", None, "changed", "And more")]
    return found


def _by_node(lines: Any) -> dict[str, str]:
    words: dict[str, list[str]] = {}
    for line in lines:
        words.setdefault(line.node, []).append(line.words)
    return {node: ", ".join(parts) for node, parts in words.items()}


def _effects(lines: Sequence[Line], left_out: Sequence[str]) -> list[Effect]:
    nodes = len({line.node for line in lines})
    devices = sum(line.count for line in lines)
    found = [
        Effect("capacity", "Nodes", str(nodes)),
        Effect("capacity", "Devices that they should have", str(devices)),
    ]
    if left_out:
        note = some_of(left_out, 6)
        found.append(Effect("check", "Nodes without a line", str(len(left_out)), note, "unknown"))
    return found


def _write(action: str, row: Inventory, now: datetime, person: Any, **facts: Any) -> None:
    record(
        action=action,
        subject=f"node pool {row.pool.slug}",
        request_id=row.request_id,
        at=now,
        person=person,
        facts={"version": row.number, "approval": row.approval, **facts},
    )
