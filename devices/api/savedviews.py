"""Operations on saved views of claim lists: one's own, and those shared with everybody."""

from __future__ import annotations

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.asks.savedviews import Viewer, forget_view, save_view, visible
from devices.models import SavedView
from portal.api.bodies import Body
from portal.api.idempotency import once
from portal.request_ids import request_id_of
from tenants.api.base import KEY, CallerView, PlatformView, TenantView
from tenants.models import ApiToken

SHARED = OpenApiParameter("shared", bool, description="true: the shared one of that name.")


class ViewOut(serializers.ModelSerializer[SavedView]):
    """Filters and order under a name, for `view=` of the list."""

    class Meta:
        model = SavedView
        fields = ["slug", "name", "query", "shared", "opens_first", "made_at"]
        read_only_fields = fields


class ViewIn(Body):
    """What to keep: parameters of the list, by name."""

    name = serializers.CharField()
    query = serializers.DictField(child=serializers.CharField(allow_blank=True))
    shared = serializers.BooleanField(default=False)
    opens_first = serializers.BooleanField(
        default=False, help_text="The portal shows it where nothing is asked for."
    )


class Views(TenantView):
    """The saved views of a tenant's list."""

    noun = "claims"

    @extend_schema(operation_id="list_views", responses=ViewOut(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """One's own first, then those that are shared."""
        return Response(ViewOut(visible(self.access(slug)), many=True).data)

    @extend_schema(
        operation_id="save_view", request=ViewIn, responses={201: ViewOut}, parameters=[KEY]
    )
    def post(self, request: Request, slug: str) -> Response:
        """Keeps a view; the same name again replaces it."""
        return _saved(self, self.access(slug, scope=ApiToken.Scope.REQUEST))


class OneView(TenantView):
    """One saved view of a tenant's list."""

    noun = "claims"

    @extend_schema(operation_id="remove_view", responses={204: None}, parameters=[SHARED])
    def delete(self, request: Request, slug: str, view: str) -> Response:
        """Removes it; twice is fine."""
        return _forgotten(self, self.access(slug, scope=ApiToken.Scope.REQUEST), view)


class PlatformViews(PlatformView):
    """The saved views of the platform's list."""

    noun = "platform"

    @extend_schema(operation_id="list_platform_views", responses=ViewOut(many=True))
    def get(self, request: Request) -> Response:
        """One's own first, then those that are shared."""
        return Response(ViewOut(visible(self.platform()), many=True).data)

    @extend_schema(
        operation_id="save_platform_view",
        request=ViewIn,
        responses={201: ViewOut},
        parameters=[KEY],
    )
    def post(self, request: Request) -> Response:
        """Keeps a view; the same name again replaces it."""
        return _saved(self, self.platform(scope=ApiToken.Scope.OPERATE))


class OnePlatformView(PlatformView):
    """One saved view of the platform's list."""

    noun = "platform"

    @extend_schema(operation_id="remove_platform_view", responses={204: None}, parameters=[SHARED])
    def delete(self, request: Request, view: str) -> Response:
        """Removes it; twice is fine."""
        return _forgotten(self, self.platform(scope=ApiToken.Scope.OPERATE), view)


def _saved(view: CallerView, access: Viewer) -> Response:
    request, now = view.request, timezone.now()
    body = ViewIn(data=request.data)
    body.is_valid(raise_exception=True)

    def act() -> Response:
        saved = save_view(
            access=access, **body.validated_data, request_id=request_id_of(request), now=now
        )
        return Response(ViewOut(saved).data, status=201)

    return once(request, caller=view.caller(), now=now, act=act)


def _forgotten(view: CallerView, access: Viewer, slug: str) -> Response:
    shared = view.request.query_params.get("shared", "") == "true"
    forget_view(
        access=access,
        slug=slug,
        shared=shared,
        request_id=request_id_of(view.request),
        now=timezone.now(),
    )
    return Response(status=204)
