"""One id for a request, in its answer, its log lines and the tasks that it sends."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
import redis
from celery.signals import task_prerun
from django.test import Client
from pytest_django import Settings
from structlog.contextvars import (
    bind_contextvars,
    clear_contextvars,
    get_contextvars,
    merge_contextvars,
)
from structlog.testing import capture_logs

from portal.outbox import lines
from portal.outbox.tasks import sweep_outbox
from tests.factories import NOON

TASK = "portal.api.tasks.forget_answers"


@pytest.mark.parametrize("given", ["ci-run-4711", "no harmless shape", ""])
@pytest.mark.django_db
def test_log_lines_name_a_request_by_the_id_that_its_answer_has(client: Client, given: str) -> None:
    with capture_logs(processors=[merge_contextvars]) as said:
        answer = client.get("/account/login/", headers={"X-Request-ID": given})
    of_request = [line for line in said if line["event"].startswith("request_")]
    assert {line["event"] for line in of_request} == {"request_started", "request_finished"}
    assert {line["request_id"] for line in of_request} == {answer["X-Request-ID"]}


@pytest.fixture
def a_task_of(request: pytest.FixtureRequest) -> Iterator[None]:
    """A task as a worker has it before it runs, sent by the request of this id."""
    sweep_outbox.push_request(
        is_eager=False, __django_structlog__={"request_id": request.param, "task_id": "parent"}
    )
    yield
    sweep_outbox.pop_request()
    clear_contextvars()


@pytest.mark.parametrize("a_task_of", ["asked-once-0002"], indirect=True)
def test_log_lines_of_a_task_name_the_request_that_sent_it_and_nothing_before(a_task_of: None):
    bind_contextvars(left="of the task before")
    task_prerun.send(sender=sweep_outbox, task_id="t-1", task=sweep_outbox)
    assert get_contextvars() == {"request_id": "asked-once-0002", "task_id": "t-1"}


@pytest.mark.django_db(transaction=True)
def test_what_is_sent_again_names_the_request_that_promised_it(settings: Settings) -> None:
    with redis.Redis.from_url(settings.VALKEY_URL) as valkey:
        lines.promise(TASK, "a", request_id="asked-once-0001", now=NOON)
        valkey.delete("celery")  # the message of the promise itself was lost
        assert lines.sweep(NOON + lines.FIRST_PAUSE) == 1
        (message,) = valkey.lrange("celery", 0, -1)
        valkey.delete("celery")
    told = json.loads(message)["headers"]["__django_structlog__"]
    assert told["request_id"] == "asked-once-0001"
