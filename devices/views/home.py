"""The way in and the tenant's home."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from devices.asks.attention import attention
from devices.authoring.shown import beyond, shown_to
from devices.models import Claim
from devices.tenancy.limit_rows import limit_rows, most_strained
from devices.tenancy.spending import budget_of
from tenants.access import closed_tenants_of, tenant_for, tenants_of
from tenants.models import User
from tenants.policy import Act

ROWS = 12
LIMITS = 6


@require_safe
@login_required
def home(request: HttpRequest) -> HttpResponse:
    """Straight to the only tenant; with several, or none, a page to choose from."""
    user = request.user
    assert isinstance(user, User)
    scopes = tenants_of(user)
    if len(scopes) == 1:
        return redirect("tenant-home", scopes[0].tenant.slug)
    return render(request, "tenants/choose.html", {"closed": closed_tenants_of(user)})


@require_safe
@login_required
def tenant_home(request: HttpRequest, slug: str) -> HttpResponse:
    """What needs somebody, and the newest claims."""
    access = tenant_for(request.user, slug)
    claims = Claim.objects.of(access.tenant).open().select_related("version__template", "namespace")
    rows = list(claims[: ROWS + 1])
    now = timezone.now()
    limits = most_strained(limit_rows(budget_of(access.tenant, now)))
    templates = shown_to(access.tenant, now)
    too_much = beyond(templates, access.tenant, now)
    templates.sort(key=lambda version: version.template.slug in too_much)
    return render(
        request,
        "tenants/home.html",
        {
            "access": access,
            "namespaces": access.tenant.namespaces.select_related("standing"),
            "members_count": access.tenant.memberships.count(),
            "attention": attention(access.tenant, now),
            "claims": rows[:ROWS],
            "more_claims": len(rows) > ROWS,
            "limits": limits[:LIMITS],
            "more_limits": len(limits) > LIMITS,
            "templates": templates,
            "beyond": too_much,
            "why_not_ask": access.why_not(Act.ASK),
        },
    )
