"""The parts as an app, so that Django finds their template tags."""

from __future__ import annotations

from django.apps import AppConfig


class UiConfig(AppConfig):
    name = "portal.ui"
    label = "ui"
