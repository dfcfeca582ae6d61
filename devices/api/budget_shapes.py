"""What the API takes and gives about limits and grants; amounts are quantities as text."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from devices.tenancy.limit_rows import exact
from devices.tenancy.spending import Budget, read_amount
from portal.api.bodies import Body
from tenants.limits import Line, Measure, Strip, What, bound_of
from tenants.models import Grant, Limit, LimitWish


@extend_schema_field(OpenApiTypes.STR)
class AmountField(serializers.Field):
    """A quantity such as "8" or "80Gi"; null is no limit."""

    def to_internal_value(self, data: Any) -> Decimal:
        try:
            return read_amount(str(data))
        except ValueError as error:
            raise serializers.ValidationError(str(error)) from error

    def to_representation(self, value: Decimal) -> str | None:
        return exact(value)


class WhatIn(Body):
    """Which limit: devices of a class, a capacity of a class, or claims."""

    measure = serializers.ChoiceField(choices=[one.value for one in Measure])
    device_class = serializers.CharField(max_length=253, default="", allow_blank=True)
    capacity = serializers.CharField(max_length=253, default="", allow_blank=True)

    def what(self) -> What:
        """Of validated data."""
        data = self.validated_data
        return What(Measure(data["measure"]), data["device_class"], data["capacity"])


class LimitIn(WhatIn):
    """A limit as the platform sets it; null is without a limit."""

    amount = AmountField(allow_null=True)


class WishIn(LimitIn):
    """A limit as an owner asks for it."""

    reason = serializers.CharField(max_length=500)


class SharesIn(WhatIn):
    """A limit's shares by namespace; none: every namespace draws on the whole."""

    shares = serializers.DictField(child=AmountField())


class LimitOut(serializers.Serializer):
    """One limit in its four parts. Null `amount` and `free`: without a limit."""

    measure = serializers.CharField()
    device_class = serializers.CharField()
    capacity = serializers.CharField()
    amount = serializers.CharField(allow_null=True)
    used = serializers.CharField()
    reserved = serializers.CharField()
    granted = serializers.CharField()
    free = serializers.CharField(allow_null=True)
    overdrawn = serializers.CharField()
    shares = serializers.DictField(child=serializers.CharField())
    revision = serializers.IntegerField(allow_null=True, help_text="Null: there is no such row.")


class LimitsOut(serializers.Serializer):
    """A tenant's limits; `any_class` allows classes that are not listed."""

    any_class = serializers.BooleanField()
    limits = LimitOut(many=True)


class BudgetLineOut(serializers.Serializer):
    """One line behind a figure."""

    kind = serializers.ChoiceField(choices=["request", "hold", "grant", "outside"])
    amount = serializers.CharField()
    namespace = serializers.CharField()
    source = serializers.CharField(  # type: ignore[assignment]
        help_text="Id of a claim, or what else counts."
    )


class WishOut(serializers.ModelSerializer[LimitWish]):
    """A limit that was asked for; its approval says what became of it."""

    amount = AmountField(allow_null=True)
    approval = serializers.SerializerMethodField()

    class Meta:
        model = LimitWish
        fields = ["measure", "device_class", "capacity", "amount", "approval", "asked_at",
                  "done_at"]  # fmt: skip
        read_only_fields = fields

    def get_approval(self, wish: LimitWish) -> str:
        """Its number."""
        return f"A-{wish.approval}"


class GrantIn(Body):
    """An offer."""

    namespace = serializers.CharField(max_length=63)
    template = serializers.SlugField(max_length=63)
    device_class = serializers.CharField(max_length=253)
    count = serializers.IntegerField()
    pays = serializers.ChoiceField(choices=Grant.Pays.choices, default=Grant.Pays.GIVER.value)
    ends_at = serializers.DateTimeField()
    words = serializers.CharField(default="", allow_blank=True)


class GrantOut(serializers.ModelSerializer[Grant]):
    """A grant as one of its two sides sees it."""

    id = serializers.CharField(source="public_id")
    giver = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)
    taker = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True, allow_null=True)
    used = serializers.SerializerMethodField()

    class Meta:
        model = Grant
        fields = [
            "id", "giver", "taker", "namespace", "template", "device_class", "count", "used",
            "pays", "state", "words", "offered_at", "decided_at", "ends_at", "ended_at", "revision",
        ]  # fmt: skip
        read_only_fields = fields

    def get_used(self, grant: Grant) -> int:
        """Devices in use by it now."""
        return int(self.context["used"].get(grant.pk, 0))


class TouchedOut(serializers.Serializer):
    """What ending a grant leaves running."""

    asks = serializers.IntegerField()
    devices = serializers.IntegerField()
    pods = serializers.IntegerField()
    claims = serializers.ListField(
        child=serializers.CharField(), help_text="Ids; only for the side that asked for them."
    )


class GrantDetailOut(GrantOut):
    """A grant with what is in use by it."""

    touches = TouchedOut()

    class Meta(GrantOut.Meta):
        fields = [*GrantOut.Meta.fields, "touches"]
        read_only_fields = fields


def limit_out(strip: Strip, budget: Budget, rows: dict[What, Limit]) -> dict[str, Any]:
    """One limit as JSON values."""
    what = strip.what
    row, bound = rows.get(what), bound_of(budget.limits, what)
    return {
        "measure": what.measure.value,
        "device_class": what.device_class,
        "capacity": what.capacity,
        "amount": exact(strip.limit),
        "used": exact(strip.used),
        "reserved": exact(strip.reserved),
        "granted": exact(strip.granted),
        "free": exact(strip.free),
        "overdrawn": exact(strip.overdrawn),
        "shares": {name: exact(share) for name, share in bound.shares.items()} if bound else {},
        "revision": row.revision if row else None,
    }


def line_out(line: Line) -> dict[str, Any]:
    """One line as JSON values."""
    return {
        "kind": line.kind.value,
        "amount": exact(line.amount),
        "namespace": line.namespace,
        "source": line.source,
    }
