"""Floor 3 as a Django app."""

from __future__ import annotations

from django.apps import AppConfig


class MigrationPlanConfig(AppConfig):
    name = "migrationplan"
