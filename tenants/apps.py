"""Floor 1: who may do what, and how much."""

from __future__ import annotations

from django.apps import AppConfig


class TenantsConfig(AppConfig):
    name = "tenants"

    def ready(self) -> None:
        from tenants.secondfactor import listen

        listen()
