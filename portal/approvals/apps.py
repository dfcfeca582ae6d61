"""Approvals as a Django app: the ground that templates, waves, grants and limits stand on."""

from __future__ import annotations

from django.apps import AppConfig


class ApprovalsConfig(AppConfig):
    name = "portal.approvals"
    label = "approvals"
