"""Celery's way into approvals."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from portal.approvals.asks import expire_due


@shared_task(acks_late=False)
def expire_approvals() -> None:
    """Ends approvals whose time is over; losing this task is harmless, the next one comes."""
    expire_due(timezone.now())
