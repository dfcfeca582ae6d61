"""Rows of the log ↔ lines of the rules."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from devices.dra.charges import Rule
from devices.dra.ledgerentries import Entry
from devices.dra.ledgerlog import Act, LogLine
from devices.dra.ledgerpools import Version
from devices.dra.quantity import Format, Quantity
from devices.models import LedgerLine
from devices.models.ledger import LedgerLines

#: Columns of a line, in the order in which `line_of` takes them.
COLUMNS: Final = (
    "id", "look", "act", "ends_id", "node", "rule", "resource", "nanos", "unit", "payer", "pod",
    "pod_uid", "claim", "claim_uid", "driver", "pool", "device", "share", "container", "numa",
    "contained", "epoch", "generation", "version", "source", "code",
)  # fmt: skip


def lines_of(rows: LedgerLines) -> Iterator[LogLine]:
    """The lines of these rows, in their order, a few thousand in memory at a time."""
    for row in rows.values_list(*COLUMNS).iterator(chunk_size=5000):
        yield line_of(row)


def line_of(row: tuple[Any, ...]) -> LogLine:
    """A row's columns as a line."""
    (
        pk, look, act, ends, node, rule, resource, nanos, unit, payer, pod, pod_uid, claim,
        claim_uid, driver, pool, device, share, container, numa, contained, epoch, generation,
        version, source, code,
    ) = row  # fmt: skip
    entry = Entry(
        node, Rule(rule), resource, amount_of(nanos, unit), payer, pod, pod_uid, claim, claim_uid,
        (driver, pool, device) if device else None, share, container, numa, contained,
        Version(epoch, generation, int(version)), source, code,
    )  # fmt: skip
    return LogLine(Act(act), entry, look, pk, ends or 0)


def row_of(line: LogLine, *, look: int, at: datetime, writer: str) -> LedgerLine:
    """A line as a row to be written."""
    entry = line.entry
    driver, pool, device = entry.device or ("", "", "")
    return LedgerLine(
        look=look,
        at=at,
        act=line.act.value,
        ends_id=line.ends or None,
        key=entry.key,
        node=entry.node,
        rule=entry.rule.value,
        resource=entry.resource,
        nanos=None if entry.amount is None else Decimal(entry.amount.nanos),
        unit="" if entry.amount is None else entry.amount.format.value,
        payer=entry.payer,
        pod=entry.pod,
        pod_uid=entry.pod_uid,
        claim=entry.claim,
        claim_uid=entry.claim_uid,
        driver=driver,
        pool=pool,
        device=device,
        share=entry.share,
        container=entry.container,
        numa=entry.numa,
        contained=entry.contained,
        epoch=entry.version.epoch,
        generation=entry.version.generation,
        version=Decimal(entry.version.resource_version),
        source=entry.source,
        writer=writer,
        code=entry.code,
    )


def amount_of(nanos: Decimal | int | None, unit: str) -> Quantity | None:
    """An amount out of the columns that hold it."""
    if nanos is None:
        return None
    return Quantity(int(nanos), Format(unit) if unit else Format.DECIMAL, None)
