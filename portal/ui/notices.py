"""Notices that say which request they are about, though they are shown by the next one."""

from __future__ import annotations

from typing import Any

from django.contrib.messages.storage.fallback import FallbackStorage


class NoticeStorage(FallbackStorage):
    """Django's messages, each with the id of the request that caused it as its extra tag."""

    def add(self, level: int, message: Any, extra_tags: str | None = "") -> None:
        about = getattr(self.request, "request_id", "")
        super().add(level, message, extra_tags or about)
