"""Celery as Berth uses it: late acknowledgement, and nothing that only the broker knows.

A message is only a hint. What has to happen stands in the outbox and in rows; losing every message
costs time, never work.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import structlog
from celery import Celery, signals

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

app = Celery("berth")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@signals.task_prerun.connect
def name_in_log_lines(task_id: str = "", task: Any = None, **more: Any) -> None:
    """Log lines of a task, and what it sends, carry the id of the request that sent it.

    django-structlog puts that into messages; what it would do here tells each failure twice.
    """
    if task.request.is_eager:
        return  # in the middle of whatever called it
    structlog.contextvars.clear_contextvars()
    structlog.contextvars.bind_contextvars(**{**told_by_sender(task), "task_id": task_id})


def told_by_sender(task: Any) -> Mapping[str, Any]:
    """What django-structlog put into the message of a task that runs; `request_id` among it."""
    return getattr(task.request, "__django_structlog__", None) or {}
