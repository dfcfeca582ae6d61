"""The API's ground as a Django app (it keeps the answers of idempotent requests)."""

from __future__ import annotations

from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "portal.api"
    label = "api"
