"""The roof as an app, so that Django finds its management commands."""

from __future__ import annotations

from django.apps import AppConfig


class PortalConfig(AppConfig):
    name = "portal"
