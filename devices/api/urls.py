"""Addresses of the API of floor 2, below /api/v1/."""

from __future__ import annotations

from django.urls import path

from devices.api import forecasts, freezes, grants, limits, views

urlpatterns = [
    path("tenants/<slug:slug>/claims", views.Claims.as_view(), name="claims"),
    path("tenants/<slug:slug>/claims/<slug:public_id>", views.OneClaim.as_view(), name="claim"),
    path(
        "tenants/<slug:slug>/claims/<slug:public_id>/release",
        views.Release.as_view(),
        name="claim-release",
    ),
    path("tenants/<slug:slug>/what-if", forecasts.WhatIf.as_view(), name="what-if"),
    path("tenants/<slug:slug>/templates", views.Templates.as_view(), name="templates"),
    path("tenants/<slug:slug>/offers", views.Offers.as_view(), name="offers"),
    path("tenants/<slug:slug>/limits", limits.Limits.as_view(), name="limits"),
    path("tenants/<slug:slug>/limits/lines", limits.LimitLines.as_view(), name="limit-lines"),
    path("tenants/<slug:slug>/limits/shares", limits.LimitShares.as_view(), name="limit-shares"),
    path("tenants/<slug:slug>/limits/wishes", limits.LimitWishes.as_view(), name="limit-wishes"),
    path("tenants/<slug:slug>/grants", grants.Grants.as_view(), name="grants"),
    path("tenants/<slug:slug>/grants/<slug:public_id>", grants.OneGrant.as_view(), name="grant"),
    path(
        "tenants/<slug:slug>/grants/<slug:public_id>/accept",
        grants.Accept.as_view(),
        name="grant-accept",
    ),
    path(
        "tenants/<slug:slug>/grants/<slug:public_id>/decline",
        grants.Decline.as_view(),
        name="grant-decline",
    ),
    path(
        "tenants/<slug:slug>/grants/<slug:public_id>/revoke",
        grants.Revoke.as_view(),
        name="grant-revoke",
    ),
    path("tenants/<slug:slug>/freezes", freezes.TenantFreezes.as_view(), name="tenant-freezes"),
    path("platform/freezes", freezes.Freezes.as_view(), name="freezes"),
    path("platform/freezes/<slug:public_id>", freezes.OneFreeze.as_view(), name="freeze"),
    path("platform/freezes/<slug:public_id>/lift", freezes.Lift.as_view(), name="freeze-lift"),
    path(
        "platform/tenants/<slug:slug>/limits",
        limits.PlatformLimits.as_view(),
        name="platform-limits",
    ),
]
