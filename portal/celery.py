"""Celery as Berth uses it: late acknowledgement, and nothing that only the broker knows.

A message is only a hint. What has to happen stands in the outbox and in rows; losing every message
costs time, never work.
"""

from __future__ import annotations

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")

app = Celery("berth")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
