"""Celery's way onto the roof: work that concerns every floor."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from portal import retention


@shared_task(acks_late=False)
def forget_old() -> None:
    """Deletes what the settings let go; losing this task costs a day."""
    retention.forget(timezone.now())
