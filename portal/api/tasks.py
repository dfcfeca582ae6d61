"""Celery's way into the API's ground."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from portal.api import idempotency


@shared_task
def forget_answers() -> None:
    """Drops kept answers that nobody will ask for again."""
    idempotency.forget(timezone.now())
