"""The outbox as a Django app."""

from __future__ import annotations

from django.apps import AppConfig


class OutboxConfig(AppConfig):
    name = "portal.outbox"
    label = "outbox"
