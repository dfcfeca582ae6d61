"""Celery's way into the outbox."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from portal.outbox import lines


@shared_task(acks_late=False)
def sweep_outbox() -> None:
    """Sends due lines again; losing this task is harmless, the next one comes in seconds."""
    lines.sweep(timezone.now())
