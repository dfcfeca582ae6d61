"""The roof as an app, so that Django finds its management commands."""

from __future__ import annotations

from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured


class PortalConfig(AppConfig):
    name = "portal"

    def ready(self) -> None:
        # Whoever promises work sends it through this app's broker, web processes included.
        import portal.celery  # noqa: F401
        from portal import scraping

        scraping.install()
        if settings.TRACES_ENDPOINT:
            _trace()


def _trace() -> None:
    try:
        from portal import tracing
    except ModuleNotFoundError as error:
        raise ImproperlyConfigured(
            f"A collector of traces is named, and {error.name} is not installed: install the extra "
            "`tracing`, or take OTEL_EXPORTER_OTLP_ENDPOINT away."
        ) from error
    tracing.install()
