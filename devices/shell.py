"""What every page's frame shows: whose page it is, and how fresh the picture of the cluster is."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from devices.cluster_link import cluster_link
from tenants.access import tenants_of
from tenants.models import User


def shell(request: HttpRequest) -> dict[str, Any]:
    """Context of `base.html`: `scopes` (the person's tenants) and `cluster`.

    Lazy, so that fragments and error pages that use neither pay for neither.
    """
    user = request.user if hasattr(request, "user") else None
    if not isinstance(user, User):
        return {}
    return {"scopes": tenants_of(user), "cluster": cluster_link()}
