"""Operations on ownership: who gives out which devices, now or as of a moment."""

from __future__ import annotations

from typing import ClassVar

from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.dra.ownership import Owner
from devices.fleet.ownershipbook import as_of, moment_of
from devices.models import OwnershipLine
from portal.errors import Invalid
from tenants.api.base import PlatformView
from tenants.policy import PlatformAct


class OwnershipOut(serializers.ModelSerializer[OwnershipLine]):
    """One type of device on one node, for a time; null is not known."""

    before = serializers.CharField(help_text="Empty where nobody was known before.")

    class Meta:
        model = OwnershipLine
        fields: ClassVar = [
            "id", "node", "node_uid", "type", "owner", "before", "plugin", "published",
            "hardware", "since", "until", "who", "why",
        ]  # fmt: skip
        read_only_fields = fields


class Ownerships(PlatformView):
    """The book."""

    noun = "ownership"

    @extend_schema(
        operation_id="list_ownership",
        parameters=[
            OpenApiParameter("at", str, description="A moment (RFC 3339); now if left out."),
            OpenApiParameter("history", bool, description="Every line, ended ones too."),
            OpenApiParameter("node", str),
            OpenApiParameter("type", str),
            OpenApiParameter("owner", str, enum=[one.value for one in Owner]),
            OpenApiParameter("cursor", str),
            OpenApiParameter("limit", int),
        ],
        responses=OwnershipOut(many=True),
    )
    def get(self, request: Request) -> Response:
        """Newest first."""
        self.platform().require(PlatformAct.SEE)
        asked = request.query_params
        at, wrong = moment_of(asked.get("at", ""))
        if wrong:
            raise Invalid("No such moment.", fields={"at": wrong})
        if at is not None and at > timezone.now():
            raise Invalid("No such moment.", fields={"at": "Nobody knows what will be."})
        whole = asked.get("history", "").lower() in {"1", "true", "yes"}
        rows = OwnershipLine.objects.all() if whole else as_of(at)
        for name in ("node", "type", "owner"):
            if value := asked.get(name, ""):
                rows = rows.filter(**{name: value})
        return self.page(rows, OwnershipOut)
