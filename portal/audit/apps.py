"""The audit ground as a Django app."""

from __future__ import annotations

from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "portal.audit"
    label = "audit"
