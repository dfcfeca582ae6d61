"""Addresses of the API of floor 2, below /api/v1/."""

from __future__ import annotations

from django.urls import path

from devices.api import forecasts, views

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
]
