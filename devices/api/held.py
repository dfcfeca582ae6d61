"""Operations on the queue of asks that wait before they are sent."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.asks.line import Place, places
from devices.asks.verdicts import verdict
from tenants.api.base import PlatformView, TenantView
from tenants.policy import PlatformAct


class HeldOut(serializers.Serializer):
    """An ask that waits. `position` is among all asks for one of its classes, of whichever tenant;
    `job` says who has to act.
    """

    position = serializers.IntegerField()
    id = serializers.CharField()
    name = serializers.CharField()
    tenant = serializers.CharField()
    classes = serializers.ListField(child=serializers.CharField())
    code = serializers.CharField()
    words = serializers.CharField()
    why = serializers.CharField(allow_blank=True)
    job = serializers.CharField()
    next_step = serializers.CharField(allow_blank=True)
    since = serializers.DateTimeField()
    requested_at = serializers.DateTimeField()


def _out(one: Place) -> dict[str, Any]:
    claim = one.claim
    said = verdict(claim.code, claim.state, timezone.now() - claim.since)
    return {
        "position": one.position,
        "id": claim.public_id,
        "name": claim.name,
        "tenant": claim.tenant.slug,
        "classes": claim.classes,
        "code": claim.code,
        "words": said.sentence,
        "why": claim.why,
        "job": said.job.value,
        "next_step": said.step,
        "since": claim.since,
        "requested_at": claim.requested_at,
    }


class TenantHeld(TenantView):
    """What of a tenant waits."""

    noun = "claims"

    @extend_schema(operation_id="list_held_of_tenant", responses=HeldOut(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """In the order of asking; at most the first 500 of everybody's line are looked at."""
        tenant = self.access(slug).tenant
        mine = [_out(one) for one in places() if one.claim.tenant_id == tenant.pk]
        return Response(HeldOut(mine, many=True).data)


class Held(PlatformView):
    """Everything that waits."""

    noun = "claims"

    @extend_schema(operation_id="list_held", responses=HeldOut(many=True))
    def get(self, request: Request) -> Response:
        """In the order of asking, the first 500."""
        self.platform().require(PlatformAct.SEE)
        return Response(HeldOut([_out(one) for one in places()], many=True).data)
