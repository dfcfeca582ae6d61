"""The event stream of a page."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.db import connection
from django.http import HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.http import require_GET

from portal.news_stream import stream
from tenants.access import tenant_for


@require_GET
async def events(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Server-sent events: names of what changed in one tenant. 404 for everybody else.

    A stream lives for minutes; it gives its database connection back before it starts, or open
    pages would use up the pool.
    """
    user = await request.auser()
    await sync_to_async(tenant_for)(user, slug)
    await sync_to_async(lambda: connection.close())()
    response = StreamingHttpResponse(stream(slug), content_type="text/event-stream")
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    return response
