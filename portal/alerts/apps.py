"""Alerts as a Django app: what somebody should know, told once, to those who asked to be told."""

from __future__ import annotations

from django.apps import AppConfig


class AlertsConfig(AppConfig):
    name = "portal.alerts"
    label = "alerts"
