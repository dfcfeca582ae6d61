"""Shapes of tenants, their namespaces, surveys and closings in the API."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from devices.models import Closure
from devices.tenancy.closures import LONGEST_REASON
from portal.api.bodies import Body
from tenants.founding import LONGEST_NAME
from tenants.models import Tenant, TenantNamespace


class TenantIn(Body):
    """A new tenant; `owner` is the user name of its first owner."""

    slug = serializers.CharField(max_length=63)
    name = serializers.CharField(max_length=LONGEST_NAME)
    owner = serializers.CharField(max_length=150)
    priority = serializers.ChoiceField(
        choices=Tenant.Priority.choices, default=Tenant.Priority.CONTINUITY
    )


class TenantChange(serializers.Serializer):
    """What to change; what is left out stays."""

    name = serializers.CharField(max_length=LONGEST_NAME, required=False)
    priority = serializers.ChoiceField(choices=Tenant.Priority.choices, required=False)


class TenantOut(serializers.ModelSerializer[Tenant]):
    """One tenant."""

    class Meta:
        model = Tenant
        fields = ("slug", "name", "state", "priority", "created_at")


class NamespaceIn(Body):
    """A namespace for a tenant: a new one, or one that the cluster has already."""

    name = serializers.CharField(max_length=63)
    adopt = serializers.BooleanField(default=False)


class PlaceOut(serializers.ModelSerializer[TenantNamespace]):
    """One namespace. `state`, `code` and `why` say how far the cluster agrees."""

    state = serializers.SerializerMethodField()
    code = serializers.SerializerMethodField()
    why = serializers.SerializerMethodField()

    class Meta:
        model = TenantNamespace
        fields = ("name", "adopted", "leaving_at", "state", "code", "why")

    def get_state(self, place: TenantNamespace) -> str:
        return str(self._of(place, "state") or "waiting")

    def get_code(self, place: TenantNamespace) -> str:
        return str(self._of(place, "code"))

    def get_why(self, place: TenantNamespace) -> str:
        return str(self._of(place, "why"))

    @staticmethod
    def _of(place: TenantNamespace, field: str) -> object:
        return getattr(getattr(place, "standing", None), field, "")


class FoundOut(serializers.Serializer):
    """One thing in a namespace; `made_by` is empty where nothing says by whom it was made."""

    kind = serializers.CharField()
    name = serializers.CharField()
    what = serializers.CharField()
    made_by = serializers.CharField()


class ClashOut(serializers.Serializer):
    """What would be refused from then on, or what stands in the way."""

    code = serializers.CharField()
    subject = serializers.CharField()
    why = serializers.CharField()


class SurveyOut(serializers.Serializer):
    """What is in a namespace; `stops` say why it cannot be adopted, if so."""

    name = serializers.CharField()
    things = FoundOut(many=True)
    clashes = ClashOut(many=True)
    stops = ClashOut(many=True)
    devices = serializers.DictField(child=serializers.IntegerField())
    claims = serializers.IntegerField()


class ClosingAskIn(Body):
    """Why, and the tenant's short name once more."""

    reason = serializers.CharField(max_length=LONGEST_REASON)
    typed = serializers.CharField(max_length=63)


class ClosingIn(ClosingAskIn):
    """As an admin begins it; `deadline` only alerts."""

    deadline = serializers.DateTimeField(allow_null=True, default=None)


class BlockerOut(serializers.Serializer):
    """What a closing waits for."""

    code = serializers.CharField()
    subject = serializers.CharField()
    why = serializers.CharField()
    ends_at = serializers.DateTimeField(allow_null=True)


class ClosureOut(serializers.ModelSerializer[Closure]):
    """One closing. `phase` is asked, stopping, waiting, reclaiming, letting go, closed, cancelled.

    `revocable` says whether it can still be cancelled.
    """

    id = serializers.CharField(source="public_id")
    blockers = serializers.SerializerMethodField()
    revocable = serializers.BooleanField()

    class Meta:
        model = Closure
        fields = (
            "id",
            "phase",
            "reason",
            "deadline",
            "late_at",
            "asked_at",
            "began_at",
            "shut_at",
            "empty_at",
            "reclaimed_at",
            "ended_at",
            "looked_at",
            "revocable",
            "blockers",
            "digest",
        )

    @extend_schema_field(BlockerOut(many=True))
    def get_blockers(self, closure: Closure) -> list[dict[str, object]]:
        found: list[dict[str, object]] = closure.blockers
        return found
