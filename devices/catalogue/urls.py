"""Addresses of the catalogue: classes, pools, nodes, devices and features, for tenants and for the
platform alike.
"""

from __future__ import annotations

from django.urls import path

from devices.views import capabilities, catalogue, hardware

TENANT = "t/<slug:slug>/"
DEVICE = "devices/<str:driver>/<path:pool>/<str:device>/"

urlpatterns = [
    path(f"{TENANT}catalogue/", catalogue.catalogue, name="catalogue"),
    path(f"{TENANT}catalogue/classes/<str:name>/", catalogue.one_class, name="class"),
    path(f"{TENANT}pools/", hardware.pools, name="pools"),
    path(f"{TENANT}pools/<str:driver>/<path:pool>/", hardware.pool, name="pool"),
    path(f"{TENANT}nodes/", hardware.nodes, name="nodes"),
    path(f"{TENANT}nodes/<str:name>/", hardware.node, name="node"),
    path(f"{TENANT}{DEVICE}", hardware.device, name="device"),
    path(f"{TENANT}capabilities/", capabilities.capabilities, name="capabilities"),
    path("platform/catalogue/", catalogue.catalogue, name="platform-catalogue"),
    path("platform/catalogue/classes/<str:name>/", catalogue.one_class, name="platform-class"),
    path("platform/pools/", hardware.pools, name="platform-pools"),
    path("platform/pools/<str:driver>/<path:pool>/", hardware.pool, name="platform-pool"),
    path("platform/nodes/", hardware.nodes, name="platform-nodes"),
    path("platform/nodes/<str:name>/", hardware.node, name="platform-node"),
    path(f"platform/{DEVICE}", hardware.device, name="platform-device"),
    path("platform/capabilities/", capabilities.capabilities, name="platform-capabilities"),
    path("platform/capabilities/assumed/", capabilities.assumed, name="capabilities-assumed"),
]
