"""What every page's frame shows: whose page it is, and how fresh the picture of the cluster is."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from devices.cluster_link import cluster_link
from devices.models import Freeze
from devices.tenancy.freezes import standing_for
from portal.alerts import bell
from portal.alerts.bell import Viewer
from portal.approvals.lists import waiting_for
from tenants.access import PlatformAccess, decider_of, platform_of, tenants_of
from tenants.models import User


def shell(request: HttpRequest) -> dict[str, Any]:
    """Context of `base.html`: `scopes` (the person's tenants), `cluster`, what they are for the
    `platform`, how many approvals wait for them, how many alerts are new at their bell
    (`ringing`), the tenant as which an admin looks, and the `freezes` that they may know of.

    Lazy, so that fragments and error pages that use neither pay for neither.
    """
    user = request.user if hasattr(request, "user") else None
    if not isinstance(user, User):
        return {}

    @cache
    def platform() -> PlatformAccess:
        return platform_of(user)

    @cache
    def approvals_waiting() -> int:
        return waiting_for(decider_of(user, timezone.now())).count()

    @cache
    def freezes() -> list[Freeze]:
        return standing_for({one.tenant.slug for one in scopes}, platform().roles, timezone.now())

    @cache
    def ringing() -> int:
        slugs = [one.tenant.slug for one in scopes]
        viewer = Viewer(user.person, slugs, platform=bool(platform().roles))
        return bell.ringing(viewer, timezone.now())

    scopes = tenants_of(user)
    return {
        "scopes": scopes,
        "freezes": freezes,
        "cluster": cluster_link(),
        "platform": platform,
        "approvals_waiting": approvals_waiting,
        "ringing": ringing,
        "viewing": getattr(request, "viewing", None),
    }
