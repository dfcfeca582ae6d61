"""Cursor paging: stable while rows come and go, one page size for pages and API."""

from __future__ import annotations

from rest_framework.pagination import CursorPagination


class CursorPaging(CursorPagination):
    """`?cursor=…&limit=…`; newest first. The cursor is opaque and survives inserts."""

    ordering = "-pk"
    page_size = 50
    max_page_size = 500
    page_size_query_param = "limit"
