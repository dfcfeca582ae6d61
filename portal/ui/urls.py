"""Addresses of the pages that belong to no app; `/parts/` only where DEBUG is on."""

from __future__ import annotations

from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.urls import URLPattern, path

from portal.ui import views

urlpatterns: list[URLPattern] = [
    path("cluster/", login_required(views.cluster_line), name="cluster-line"),
]
if settings.DEBUG:
    urlpatterns.append(path("parts/", views.parts, name="parts"))
