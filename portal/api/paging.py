"""Cursor paging: stable while rows come and go, one page size for pages and API."""

from __future__ import annotations

from typing import Any

from rest_framework.pagination import CursorPagination


class CursorPaging(CursorPagination):
    """`?cursor=…&limit=…`; newest first. The cursor is opaque and survives inserts."""

    ordering = "-pk"
    page_size = 50
    max_page_size = 500
    page_size_query_param = "limit"

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        """A page for the OpenAPI document: both neighbours are always said, null at the ends."""
        address = {"type": ["string", "null"], "format": "uri"}
        return {
            "type": "object",
            "required": ["next", "previous", "results"],
            "properties": {"next": address, "previous": address, "results": schema},
        }
