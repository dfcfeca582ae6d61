"""The outbox: a promise is sent again until it is settled, and only what was seen is settled."""

from __future__ import annotations

from datetime import timedelta

import pytest
from celery import current_app
from django.db import transaction

from portal.outbox import lines
from portal.outbox.models import OutboxLine
from tests.factories import NOON

TASK = "portal.api.tasks.forget_answers"


@pytest.mark.django_db
def test_a_rolled_back_act_promises_nothing() -> None:
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        lines.promise(TASK, "a", request_id="r", now=NOON)
        raise ZeroDivisionError
    assert not OutboxLine.objects.exists()


@pytest.mark.django_db
def test_settling_spares_what_was_promised_after_the_look() -> None:
    lines.promise(TASK, "a", request_id="r", now=NOON)
    seen = lines.newest(TASK, "a")
    lines.promise(TASK, "a", request_id="r", now=NOON)
    lines.settle(TASK, "a", through=seen)
    assert OutboxLine.objects.count() == 1


@pytest.mark.django_db
def test_settling_one_key_spares_the_others() -> None:
    for key in ("a", "b"):
        lines.promise(TASK, key, request_id="r", now=NOON)
    lines.settle(TASK, "a", through=lines.newest(TASK, "b"))
    assert [line.key for line in OutboxLine.objects.all()] == ["b"]


@pytest.mark.parametrize(
    ("attempts", "seconds"),
    [(0, 10), (1, 20), (2, 40), (5, 300), (100, 300)],
)
def test_pauses_grow_to_five_minutes(attempts: int, seconds: int) -> None:
    assert lines.pause(attempts) == timedelta(seconds=seconds)


def test_what_failed_together_does_not_come_back_together() -> None:
    pauses = [lines.spread(lines.LONGEST_PAUSE) for _ in range(200)]
    assert lines.LONGEST_PAUSE * 0.75 <= min(pauses) < max(pauses) <= lines.LONGEST_PAUSE
    assert len(set(pauses)) > 100


@pytest.mark.django_db(transaction=True)
def test_the_sweep_sends_what_is_due_and_keeps_it() -> None:
    lines.promise(TASK, "a", request_id="r", now=NOON)
    lines.promise(TASK, "a", request_id="r", now=NOON)
    lines.promise(TASK, "later", request_id="r", now=NOON + timedelta(hours=1))
    due = NOON + lines.FIRST_PAUSE
    assert lines.sweep(due - timedelta(seconds=1)) == 0
    assert lines.sweep(due) == 1, "two lines for the same work are one message"
    assert lines.sweep(due) == 0, "sent a moment ago"
    assert OutboxLine.objects.count() == 3
    assert sorted(OutboxLine.objects.values_list("attempts", flat=True)) == [0, 1, 1]


def test_what_is_sent_last_waits_behind_everything_else(servers: None) -> None:
    with current_app.connection_for_read() as broker:
        queue = broker.SimpleQueue(current_app.conf.task_default_queue)
        queue.queue.purge()
        assert lines.hint(TASK, "swept", last=True) and lines.hint(TASK, "news")
        taken = [queue.get(timeout=10) for _ in range(2)]
        for one in taken:
            one.ack()
        queue.close()
    said = [str(one.payload) for one in taken]
    assert ["news" in said[0], "swept" in said[1]] == [True, True]
