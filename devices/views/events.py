"""The event stream of a page, and the one line that says how fresh the cluster's picture is."""

from __future__ import annotations

from asgiref.sync import sync_to_async
from django.contrib.auth.decorators import login_required
from django.db import connection
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET, require_safe

from portal.news_stream import stream
from tenants.access import tenant_for


@require_GET
async def events(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Server-sent events: names of what changed in one tenant. 404 for everybody else.

    A stream lives for minutes; it gives its database connection back before it starts, or open pages
    would use up the pool.
    """
    user = await request.auser()  # type: ignore[attr-defined]
    await sync_to_async(tenant_for)(user, slug)
    await sync_to_async(lambda: connection.close())()
    response = StreamingHttpResponse(stream(slug), content_type="text/event-stream")
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    return response


@require_safe
@login_required
def cluster_line(request: HttpRequest) -> HttpResponse:
    """The cluster's name and age in the top bar, fetched again when that changes."""
    return render(request, "portal/_cluster.html", {})
