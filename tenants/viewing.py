"""Admins look at the portal as a tenant: read-only, for half an hour, told in its audit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

from django.contrib.sessions.backends.base import SessionBase
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import reverse
from django.utils import timezone

from portal.audit.record import record
from portal.errors import Invalid, NotPermitted
from portal.ui.refusals import refusal
from tenants.access import PlatformAccess
from tenants.models import Membership, PlatformRole, Tenant, User
from tenants.policy import PlatformAct, may_on_platform

LASTS = timedelta(minutes=30)
KEY = "viewing"
READING = {"GET", "HEAD", "OPTIONS"}


@transaction.atomic
def start_viewing(
    *,
    access: PlatformAccess,
    session: SessionBase,
    slug: str,
    reason: str,
    now: datetime,
    request_id: str,
) -> Tenant:
    """From now on this session sees `slug` as a viewer does, until it stops or the time is over.

    Raises `NotPermitted`, `Invalid` (reason), and 404 for tenants that do not exist or are closed.
    """
    access.require(PlatformAct.VIEW_AS)
    tenant = Tenant.objects.filter(slug=slug).exclude(state=Tenant.State.CLOSED).first()
    if tenant is None:
        raise Http404
    if not reason.strip():
        raise Invalid("Nothing was opened.", fields={"reason": "Say why; the tenant reads it."})
    if Membership.objects.filter(tenant=tenant, user=access.user).exists():
        raise Invalid("Nothing was opened.", fields={"tenant": "You are a member there anyway."})
    session[KEY] = {"slug": slug, "name": tenant.name, "until": (now + LASTS).isoformat()}
    record(
        action="viewing.started",
        subject=f"tenant {slug}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        tenant=slug,
        facts={"reason": reason.strip()[:300], "until": (now + LASTS).isoformat()},
    )
    return tenant


@transaction.atomic
def stop_viewing(*, user: User, session: SessionBase, now: datetime, request_id: str) -> None:
    """Ends it before its time; doing it twice is fine."""
    viewing = session.pop(KEY, None)
    if viewing:
        record(
            action="viewing.ended",
            subject=f"tenant {viewing['slug']}",
            request_id=request_id,
            at=now,
            person=user.person,
            tenant=viewing["slug"],
        )


class ViewingMiddleware:
    """Tells `tenant_for` which tenant an admin looks at, and refuses everything but looking.

    The right is asked for anew on each request: an admin who is none any more sees nothing more.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        viewing = request.session.get(KEY)
        if not viewing or not isinstance(request.user, User):
            return self.get_response(request)
        if timezone.now() >= datetime.fromisoformat(viewing["until"]) or not _still_may(
            request.user
        ):
            del request.session[KEY]
            return self.get_response(request)
        request.user.viewing = viewing["slug"]
        request.viewing = viewing  # type: ignore[attr-defined]
        if request.method not in READING and not _ends_it(request):
            return refusal(
                request,
                NotPermitted(
                    f"You view the portal as {viewing['name']}; looking changes nothing. "
                    "Stop viewing first.",
                    code="VIEWING_ONLY",
                ),
            )
        return self.get_response(request)


def _still_may(user: User) -> bool:
    roles = PlatformRole.objects.filter(user=user).values_list("role", flat=True)
    return may_on_platform(list(roles), PlatformAct.VIEW_AS)


def _ends_it(request: HttpRequest) -> bool:
    return request.path in {reverse("viewing-stop"), reverse("account_logout")}
