"""Celery's way into alerts."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from portal.alerts import raising, sending


@shared_task
def deliver(key: str) -> None:
    """One attempt of a delivery; when it fails, or its worker dies, the sweep sends it again."""
    sending.deliver(int(key), timezone.now())


@shared_task(acks_late=False)
def sweep_deliveries() -> None:
    """Sends what is due; losing this task is harmless, the next one comes."""
    sending.sweep(timezone.now())


@shared_task(acks_late=False)
def forget_alerts() -> None:
    """Deletes what is over for long."""
    raising.forget(timezone.now())
