"""Promising work inside a transaction, and keeping the promise whatever dies.

`promise` writes a line beside the rows of the act; a message to the broker only hurries it. The
sweep sends due lines again, with growing pauses, until the task settles them.
"""

from __future__ import annotations

import random
from datetime import datetime, timedelta

import structlog
from celery import current_app
from django.db import transaction
from django.db.models import Max
from kombu.exceptions import OperationalError

from portal.outbox.models import OutboxLine

FIRST_PAUSE = timedelta(seconds=10)
LONGEST_PAUSE = timedelta(minutes=5)
SWEEP_BATCH = 500
#: Priorities of the broker (Redis and Valkey take the lowest number first).
FIRST, LAST = 0, 9


def promise(task: str, key: str, *, request_id: str, now: datetime) -> None:
    """`task` will run with `key` at least once after this transaction commits."""
    OutboxLine.objects.create(
        task=task, key=key, request_id=request_id, created_at=now, due_at=now + FIRST_PAUSE
    )
    transaction.on_commit(lambda: hint(task, key), robust=True)


def hint(task: str, key: str, *, last: bool = False) -> bool:
    """Sends the task now; False where the broker is away (the sweep will send it).

    What is sent as `last` is begun once nothing else waits: a sweep over many rows keeps no news
    back.
    """
    try:
        current_app.send_task(task, args=[key], retry=False, priority=LAST if last else FIRST)
    except OperationalError:
        return False
    return True


def not_later_than(task: str, key: str, *, due: datetime) -> None:
    """The sweep sends this work again at `due` at the latest, however long its pause was to be."""
    OutboxLine.objects.filter(task=task, key=key, due_at__gt=due).update(due_at=due)


def newest(task: str, key: str) -> int:
    """The id of the newest line for this work; read it before looking at what is wanted."""
    lines = OutboxLine.objects.filter(task=task, key=key)
    return lines.aggregate(newest=Max("pk"))["newest"] or 0


def settle(task: str, key: str, *, through: int) -> None:
    """What was promised up to line `through` is done; later lines came after the look and stay."""
    OutboxLine.objects.filter(task=task, key=key, pk__lte=through).delete()


def pause(attempts: int) -> timedelta:
    """How long to wait after `attempts` sendings: 10 s, 20 s, 40 s, … at most 5 min."""
    return min(FIRST_PAUSE * 2 ** min(attempts, 16), LONGEST_PAUSE)


def spread(length: timedelta) -> timedelta:
    """Three quarters of it to all of it: what failed together does not come back together."""
    return length * random.uniform(0.75, 1.0)


def sweep(now: datetime) -> int:
    """Sends each due line's task once more; returns how many were sent."""
    with transaction.atomic():
        due = list(
            OutboxLine.objects.select_for_update(skip_locked=True)
            .filter(due_at__lte=now)
            .order_by("due_at")[:SWEEP_BATCH]
        )
        for line in due:
            line.attempts += 1
            line.due_at = now + spread(pause(line.attempts))
        OutboxLine.objects.bulk_update(due, ["attempts", "due_at"])
    sent = 0
    for (task, key), request_id in {(one.task, one.key): one.request_id for one in due}.items():
        # The task's log lines and its trace name whose promise it keeps.
        with structlog.contextvars.bound_contextvars(request_id=request_id):
            sent += hint(task, key)
    return sent
