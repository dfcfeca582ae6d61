"""Celery's way into the first floor: tasks take ids and may run twice."""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from tenants import grants, limit_setting


@shared_task
def carry_out_limit(wish_id: str) -> None:
    """Sets the limit that an approval said yes to."""
    limit_setting.carry_out(int(wish_id), now=timezone.now())


@shared_task(acks_late=False)
def expire_grants() -> None:
    """Ends offers and grants whose time is over; losing this task is harmless."""
    grants.expire_due(timezone.now())
