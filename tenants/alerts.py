"""Who somebody is at the bell: their tenants, and whether they look after the platform."""

from __future__ import annotations

from portal.alerts.bell import Viewer
from tenants.access import platform_of, tenants_of
from tenants.models import User


def viewer_of(user: User) -> Viewer:
    """The person as the bell knows them. Who views the portal as a tenant sees that one's bell."""
    if user.viewing:
        return Viewer(user.person, [user.viewing], platform=False)
    slugs = [one.tenant.slug for one in tenants_of(user)]
    return Viewer(user.person, slugs, platform=bool(platform_of(user).roles))
