"""Floor 2: what is offered, what is claimed, what the cluster says."""

from __future__ import annotations

from django.apps import AppConfig


class DevicesConfig(AppConfig):
    name = "devices"
