"""The event streams of pages: a tenant's, and the platform's."""

from __future__ import annotations

from collections.abc import Set

from asgiref.sync import sync_to_async
from django.contrib.sessions.models import Session
from django.db import connection
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.utils import timezone
from django.views.decorators.http import require_GET

from portal.news import PLATFORM
from portal.news_stream import FANOUT, Viewer, stream
from tenants.access import platform_access, tenant_for
from tenants.models import Membership, PlatformRole, Tenant, User
from tenants.policy import PlatformAct


@require_GET
async def events(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Server-sent events: names of what changed in one tenant. 404 for everybody else.

    A stream lives for minutes; it gives its database connection back before it starts, or open
    pages would use up the pool.
    """
    user = await request.auser()
    await sync_to_async(tenant_for)(user, slug)
    return await _streaming(request, slug)


@require_GET
async def platform_events(request: HttpRequest) -> HttpResponseBase:
    """Names of what changed on the platform; 404 for whoever has no role there."""
    user = await request.auser()
    await sync_to_async(platform_access)(user)
    return await _streaming(request, PLATFORM)


@require_GET
async def platform_tenant_events(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Names of what changed in one tenant, for the platform's pages about it."""
    user = await request.auser()
    access = await sync_to_async(platform_access)(user)
    access.require(PlatformAct.SEE)
    if not await sync_to_async(Tenant.objects.filter(slug=slug).exists)():
        raise Http404
    return await _streaming(request, slug)


def still_allowed(viewers: Set[Viewer]) -> Set[Viewer]:
    """Those who may still read what they read: a session, an active account, and a membership or a
    role of the platform. Four queries, however many pages are open.
    """
    people = {one.user for one in viewers}
    now = timezone.now()
    sessions = set(
        Session.objects.filter(
            session_key__in={one.session for one in viewers}, expire_date__gt=now
        ).values_list("session_key", flat=True)
    )
    users = set(User.objects.filter(pk__in=people, is_active=True).values_list("pk", flat=True))
    members = set(
        Membership.objects.filter(user_id__in=people)
        .exclude(Q(tenant__state=Tenant.State.CLOSED))
        .values_list("user_id", "tenant__slug")
    )
    platform = set(
        PlatformRole.objects.filter(user_id__in=people).values_list("user_id", flat=True)
    )
    connection.close()
    return {
        one
        for one in viewers
        if one.user in users
        and one.session in sessions
        and ((one.user, one.of) in members or one.user in platform)
    }


async def _streaming(request: HttpRequest, of: str) -> HttpResponseBase:
    user = await request.auser()
    viewer = Viewer(user.pk or 0, request.session.session_key or "", of)
    await sync_to_async(lambda: connection.close())()
    FANOUT.allowed = sync_to_async(still_allowed)
    after = request.headers.get("Last-Event-ID", "")
    response = StreamingHttpResponse(
        stream(of, viewer=viewer, after=after), content_type="text/event-stream"
    )
    response["Cache-Control"] = "no-cache"
    response["X-Accel-Buffering"] = "no"
    return response
