"""A leader that is frozen inside a transaction does not keep its spare out."""

from __future__ import annotations

import threading
import time

import pytest
from django.db import DatabaseError, connection, transaction

from devices.mirror import leadership

TAKEN_OVER_WITHIN = 12.0


@pytest.mark.django_db(transaction=True)
def test_a_frozen_leader_is_succeeded() -> None:
    assert leadership.take("frozen")
    proven, ended = threading.Event(), threading.Event()
    errors: list[Exception] = []

    def freeze() -> None:
        try:
            with transaction.atomic():
                leadership.prove("frozen")
                proven.set()
                ended.wait(30)  # as a stopped process: its session says nothing more
                leadership.prove("frozen")
        except (DatabaseError, leadership.LeadershipLost) as error:
            errors.append(error)
        finally:
            connection.close()

    frozen = threading.Thread(target=freeze)
    frozen.start()
    assert proven.wait(10)
    began = time.monotonic()
    try:
        while not leadership.take("spare"):
            assert time.monotonic() - began < TAKEN_OVER_WITHIN
            time.sleep(0.2)
    finally:
        ended.set()
        frozen.join()
    assert errors, "who wakes up late writes nothing"
