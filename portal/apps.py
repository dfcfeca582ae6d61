"""The roof as an app, so that Django finds its management commands."""

from __future__ import annotations

from django.apps import AppConfig


class PortalConfig(AppConfig):
    name = "portal"

    def ready(self) -> None:
        # Whoever promises work sends it through this app's broker, web processes included.
        import portal.celery  # noqa: F401
