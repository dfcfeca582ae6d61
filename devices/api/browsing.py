"""Operations on classes, pools, nodes, devices, searches and features, for tenants and platform.

Each stands twice, below a tenant and below the platform; what differs is who may know which claim.
"""

from __future__ import annotations

from typing import Any, ClassVar

from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_view
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.api import browsing_shapes as shapes
from devices.api.capability_shapes import CapabilitiesOut, capabilities_json
from devices.asks.searches import search_of
from devices.catalogue import holdings
from devices.catalogue.browsing import (
    NODE_STATES,
    POOL_STATES,
    Look,
    Viewer,
    device_of,
    look,
    node_of,
    node_rows,
    nodes_listed,
    of_platform,
    of_tenant,
    pool_of,
    pool_rows,
    pools_listed,
)
from devices.catalogue.capabilities import LONGEST_NOTE, say, served
from devices.catalogue.classes import offers_for, search
from devices.dra.features_table import Component
from devices.dra.hardwarefacts import device_at, found_devices, pool_facts
from portal.api.bodies import Body
from portal.api.listpaging import list_page
from portal.errors import Refused
from portal.request_ids import request_id_of
from tenants.api.base import PlatformView, TenantView
from tenants.models import ApiToken
from tenants.policy import PlatformAct

PAGED = [OpenApiParameter("cursor", str), OpenApiParameter("limit", int)]
Q = OpenApiParameter("q", str)


class NotSeen(Refused):
    """The cluster has not been read yet; ask again in a few seconds."""

    code = "CLUSTER_NOT_SEEN"
    http_status = 503


class Browsing(TenantView, PlatformView):
    """An operation that stands below a tenant (with a slug) and below the platform (without)."""

    noun: ClassVar[str] = "catalogue"
    operation: ClassVar[str] = ""

    def viewer(self, slug: str | None) -> Viewer:
        if slug is not None:
            return of_tenant(self.access(slug))
        platform = self.platform()
        platform.require(PlatformAct.SEE)
        return of_platform(platform)

    def here(self) -> Look:
        found = look()
        if found is None:
            raise NotSeen("The cluster has not been read yet; ask again in a few seconds.")
        return found


class Classes(Browsing):
    """Device classes."""

    operation = "list_classes"

    @extend_schema(operation_id="list_classes", parameters=[Q, *PAGED],
                   responses=shapes.ClassOut(many=True))  # fmt: skip
    def get(self, request: Request, slug: str | None = None) -> Response:
        """By name; `q` keeps those with devices that fit it, such as "80 GB NVLink"."""
        viewer = self.viewer(slug)
        offers = offers_for(search_of(request.query_params), tenant=viewer.tenant)
        offers.sort(key=lambda offer: offer.name)
        return list_page(request, offers, lambda offer: (offer.name,), shapes.class_json)


class OneClass(Browsing):
    """One device class."""

    operation = "get_class"

    @extend_schema(operation_id="get_class", responses=shapes.ClassOut)
    def get(self, request: Request, name: str, slug: str | None = None) -> Response:
        """Its figures, groups, who may use it, and what it relies on."""
        for offer in offers_for(tenant=self.viewer(slug).tenant):
            if offer.name == name:
                return Response(shapes.class_json(offer))
        raise Http404


class Search(Browsing):
    """A search over groups of equal devices."""

    operation = "search_devices"

    @extend_schema(operation_id="search_devices", parameters=[Q], responses=shapes.SearchOut)
    def get(self, request: Request, slug: str | None = None) -> Response:
        """What was understood, the groups that fit with their free counts, else what is near."""
        offers = offers_for(tenant=self.viewer(slug).tenant)
        return Response(shapes.search_json(search(search_of(request.query_params), offers)))


class Pools(Browsing):
    """Slice pools."""

    operation = "list_pools"

    @extend_schema(operation_id="list_pools", responses=shapes.PoolOut(many=True), parameters=[
        Q, OpenApiParameter("driver", str), OpenApiParameter("state", str, enum=list(POOL_STATES)),
        *PAGED])  # fmt: skip
    def get(self, request: Request, slug: str | None = None) -> Response:
        """By driver and name."""
        self.viewer(slug)
        here, asked = self.here(), request.query_params
        found = pools_listed(
            here,
            driver=asked.get("driver", ""),
            state=asked.get("state", ""),
            text=search_of(asked),
        )
        return list_page(
            request, found, lambda p: p.key, lambda p: shapes.pool_json(pool_rows(here, [p])[0])
        )


class OnePool(Browsing):
    """One slice pool."""

    operation = "get_pool"

    @extend_schema(operation_id="get_pool", responses=shapes.PoolOut)
    def get(self, request: Request, driver: str, pool: str, slug: str | None = None) -> Response:
        """Whether anything is given from it, and how its devices stand."""
        self.viewer(slug)
        here = self.here()
        found = pool_of(here, driver, pool)
        if found is None:
            raise Http404
        return Response(shapes.pool_json(pool_facts(here.snapshot, found)))


class Nodes(Browsing):
    """Nodes."""

    operation = "list_nodes"

    @extend_schema(operation_id="list_nodes", responses=shapes.NodeOut(many=True), parameters=[
        Q, OpenApiParameter("state", str, enum=list(NODE_STATES)), *PAGED])  # fmt: skip
    def get(self, request: Request, slug: str | None = None) -> Response:
        """By name; all of them, or with `state=devices` those with devices."""
        self.viewer(slug)
        here, asked = self.here(), request.query_params
        names = nodes_listed(here, state=asked.get("state", ""), text=search_of(asked))
        return list_page(
            request, names, lambda n: (n,), lambda n: shapes.node_json(node_rows(here, [n])[0])
        )


class OneNode(Browsing):
    """One node."""

    operation = "get_node"

    @extend_schema(operation_id="get_node", responses=shapes.NodeOut)
    def get(self, request: Request, name: str, slug: str | None = None) -> Response:
        """Its taints in words, how its devices stand, what plugins offer there."""
        self.viewer(slug)
        found = node_of(self.here(), name)
        if found is None:
            raise Http404
        return Response(shapes.node_json(found))


class Devices(Browsing):
    """Published devices."""

    operation = "list_devices"

    @extend_schema(operation_id="list_devices", responses=shapes.DeviceOut(many=True), parameters=[
        OpenApiParameter("class", str), OpenApiParameter("driver", str),
        OpenApiParameter("pool", str), OpenApiParameter("node", str), *PAGED])  # fmt: skip
    def get(self, request: Request, slug: str | None = None) -> Response:
        """By driver, pool and name; narrowed to a class, a driver, a pool or a node."""
        viewer, here, asked = self.viewer(slug), self.here(), request.query_params
        found = found_devices(
            here.snapshot,
            device_class=asked.get("class", ""),
            driver=asked.get("driver", ""),
            pool=asked.get("pool", ""),
            node=asked.get("node", ""),
        )
        return list_page(
            request,
            found,
            lambda at: (at[0].driver, at[0].pool, at[0].devices[at[1]].name),
            lambda at: shapes.device_json(device_at(here.snapshot, *at), viewer),
        )


class OneDevice(Browsing):
    """One device."""

    operation = "get_device"

    @extend_schema(operation_id="get_device", responses=shapes.DeviceOut)
    def get(
        self, request: Request, driver: str, pool: str, device: str, slug: str | None = None
    ) -> Response:
        """What it is, how it stands, and who holds it as far as the caller may know."""
        viewer = self.viewer(slug)
        found = device_of(self.here(), (driver, pool, device))
        if found is None:
            raise Http404
        return Response(shapes.device_json(found, viewer))


class DeviceHistory(Browsing):
    """Who held a device when."""

    operation = "get_device_history"

    @extend_schema(operation_id="get_device_history", parameters=PAGED,
                   responses=shapes.HoldingOut(many=True))  # fmt: skip
    def get(
        self, request: Request, driver: str, pool: str, device: str, slug: str | None = None
    ) -> Response:
        """Newest first; kept for 90 days. Of others' claims only the times are told."""
        viewer = self.viewer(slug)
        tenant = viewer.tenant.slug if viewer.tenant is not None else None

        class Shape(shapes.HoldingOut):
            def to_representation(self, row: Any) -> Any:
                return super().to_representation(holdings.lines([row], tenant)[0])

        rows = holdings.of_device((driver, pool, device))
        if not rows.exists():
            here = look()
            if here is None or device_of(here, (driver, pool, device)) is None:
                raise Http404
        return self.page(rows, Shape)


class Capabilities(Browsing):
    """What the cluster serves."""

    operation = "get_capabilities"

    @extend_schema(operation_id="get_capabilities", responses=CapabilitiesOut)
    def get(self, request: Request, slug: str | None = None) -> Response:
        """Feature by feature: how far one may rely on it, and what Berth does without it."""
        viewer = self.viewer(slug)
        return Response(capabilities_json(served(), viewer))


class SayIn(Body):
    """How a gate is set; null takes back what was said."""

    on = serializers.BooleanField(allow_null=True)
    note = serializers.CharField(max_length=LONGEST_NOTE, allow_blank=True, default="")


class AssumedGate(PlatformView):
    """One gate of one component that nobody can read."""

    noun = "catalogue"

    @extend_schema(operation_id="assume_gate", request=SayIn, responses={204: None}, parameters=[
        OpenApiParameter("component", str, OpenApiParameter.PATH,
                         enum=[one.value for one in Component])])  # fmt: skip
    def put(self, request: Request, component: str, gate: str) -> Response:
        """Notes how it is set; twice is fine. It shows as assumed, and stands in the audit."""
        access = self.platform(scope=ApiToken.Scope.ADMIN)
        access.require(PlatformAct.ASSUME)
        body = SayIn(data=request.data)
        body.is_valid(raise_exception=True)
        say(
            access=access,
            component=component,
            gate=gate,
            on=body.validated_data["on"],
            note=body.validated_data["note"],
            request_id=request_id_of(request),
            now=timezone.now(),
        )
        return Response(status=204)


def for_platform(view: type[Browsing]) -> type[Browsing]:
    """The same operation under a name of its own, for the platform's address."""
    about = {"__doc__": view.__doc__, "__module__": view.__module__}
    made: type[Browsing] = type(f"Platform{view.__name__}", (view,), about)
    named = extend_schema(operation_id=f"platform_{view.operation}")
    return extend_schema_view(get=named)(made)
