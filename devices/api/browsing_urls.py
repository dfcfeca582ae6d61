"""Addresses of the catalogue's operations, below /api/v1/: for a tenant, and for the platform."""

from __future__ import annotations

from django.urls import path

from devices.api import browsing

DEVICE = "devices/<str:driver>/<path:pool>/<str:device>"
ONE_POOL = "pools/<str:driver>/<path:pool>"
ROWS = (
    ("classes", browsing.Classes, "classes"),
    ("classes/<str:name>", browsing.OneClass, "class"),
    ("search", browsing.Search, "search"),
    ("pools", browsing.Pools, "pools"),
    (ONE_POOL, browsing.OnePool, "pool"),
    ("nodes", browsing.Nodes, "nodes"),
    ("nodes/<str:name>", browsing.OneNode, "node"),
    ("devices", browsing.Devices, "devices"),
    (f"history/{DEVICE}", browsing.DeviceHistory, "device-history"),
    (DEVICE, browsing.OneDevice, "device"),
    ("capabilities", browsing.Capabilities, "capabilities"),
)

urlpatterns = [
    *(
        path(f"tenants/<slug:slug>/{route}", view.as_view(), name=name)
        for route, view, name in ROWS
    ),
    *(
        path(f"platform/{route}", browsing.for_platform(view).as_view(), name=f"platform-{name}")
        for route, view, name in ROWS
    ),
    path(
        "platform/capabilities/<slug:component>/<slug:gate>",
        browsing.AssumedGate.as_view(),
        name="assumed-gate",
    ),
]
