"""Finding anything by its name, by API: what the portal's palette finds for the same person."""

from __future__ import annotations

from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.asks.searches import search_of
from devices.catalogue.finding import KINDS, Finder, asked_for, find
from devices.views.find import finder_for
from portal.errors import Invalid
from tenants.access import PlatformAccess
from tenants.api.base import CallerView
from tenants.models import ApiToken, User


class ThingFoundOut(serializers.Serializer):
    """One thing found; `address` is its page in the portal."""

    kind = serializers.ChoiceField(choices=KINDS)
    title = serializers.CharField()
    sub = serializers.CharField()
    address = serializers.CharField()


class Find(CallerView):
    """One search over everything that the caller may see."""

    noun = "find"

    @extend_schema(
        operation_id="find",
        parameters=[
            OpenApiParameter("q", str, description="Words; `in:claim` looks in one kind alone."),
            OpenApiParameter("tenant", str, description="Whose templates and grants are meant."),
        ],
        responses=ThingFoundOut(many=True),
    )
    def get(self, request: Request) -> Response:
        """At most a few of each kind, 50 of the one that is asked for alone."""
        self.demand(ApiToken.Scope.READ)
        asked = asked_for(search_of(request.query_params))
        if asked.strange:
            raise Invalid("Nothing was looked for.", fields={"q": f"in: {', '.join(KINDS)}."})
        groups = find(self._finder(request.query_params.get("tenant", "")), asked)
        return Response(ThingFoundOut([hit for one in groups for hit in one.hits], many=True).data)

    def _finder(self, slug: str) -> Finder:
        """The person as far as their token goes: into its tenant alone, or the platform alone."""
        user, token = self.request.user, self.token()
        if not isinstance(user, User):
            raise Http404
        if token is None:
            return finder_for(user, slug)
        if token.tenant is None:
            whole = finder_for(user, "")
            return Finder(user, [], whole.platform, None, timezone.now())
        if slug not in {"", token.tenant.slug}:
            raise Http404
        finder = finder_for(user, token.tenant.slug)
        mine = [one for one in finder.scopes if one.tenant == token.tenant]
        nothing = PlatformAccess(user, frozenset())
        return Finder(user, mine, nothing, finder.here, finder.now)
