"""Addresses of the pages of floor 2 about limits and grants."""

from __future__ import annotations

from django.urls import path

from devices.views import freezes, grants, limits, tenant_limits

urlpatterns = [
    path("t/<slug:slug>/limits/", limits.limits, name="limits"),
    path("t/<slug:slug>/limits/one/", limits.limit, name="limit"),
    path("t/<slug:slug>/limits/one/wish/", limits.limit_wish, name="limit-wish"),
    path("t/<slug:slug>/limits/one/shares/", limits.limit_shares, name="limit-shares"),
    path("t/<slug:slug>/grants/", grants.grants, name="grants"),
    path("t/<slug:slug>/grants/offer/", grants.grant_offer, name="grant-offer"),
    path("t/<slug:slug>/grants/<slug:public_id>/", grants.grant, name="grant"),
    path("t/<slug:slug>/grants/<slug:public_id>/answer/", grants.grant_answer, name="grant-answer"),
    path("t/<slug:slug>/freezes/", freezes.banner, name="freeze-banner"),
    path("platform/freezes/", freezes.freezes, name="freezes"),
    path("platform/freezes/<slug:public_id>/lift/", freezes.lift_freeze, name="freeze-lift"),
    path("platform/limits/", tenant_limits.tenants, name="platform-limits"),
    path("platform/limits/<slug:slug>/", tenant_limits.tenant, name="platform-limit"),
]
