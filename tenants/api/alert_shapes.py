"""What operations on alerts take and give."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.alerts.models import MEDIA, SEVERITIES, Alert, Channel, Delivery, Route, Silence
from portal.alerts.rules import Match, Severity
from portal.api.bodies import Body


class AlertOut(serializers.ModelSerializer[Alert]):
    """An alert; `path` is its page in this Berth."""

    id = serializers.CharField(source="public_id")

    class Meta:
        model = Alert
        fields = [
            "id",
            "code",
            "failure_class",
            "severity",
            "tenant",
            "subject",
            "title",
            "words",
            "path",
            "evidence",
            "request_id",
            "opened_at",
            "seen_at",
            "times",
            "over_at",
            "taken_by",
            "taken_at",
        ]
        read_only_fields = fields


class ChannelOut(serializers.ModelSerializer[Channel]):
    """A channel without its secret."""

    id = serializers.CharField(source="public_id")

    class Meta:
        model = Channel
        fields = ["id", "name", "medium", "address", "made_at", "changed_at"]
        read_only_fields = fields


class NewChannelOut(ChannelOut):
    """A channel with the secret that is shown this once; empty for mail."""

    secret = serializers.SerializerMethodField()

    def get_secret(self, channel: Channel) -> str:
        return channel.secrets[0] if channel.secrets else ""

    class Meta(ChannelOut.Meta):
        fields = [*ChannelOut.Meta.fields, "secret"]
        read_only_fields = fields


class ChannelIn(Body):
    """A webhook's https address, or a mail address."""

    name = serializers.CharField(max_length=60)
    medium = serializers.ChoiceField(choices=MEDIA)
    address = serializers.CharField(max_length=500)


class DeliveryOut(serializers.ModelSerializer[Delivery]):
    """One thing told on one channel; `due_at` is when it is tried next, if at all."""

    alert = serializers.SlugRelatedField[Any](slug_field="public_id", read_only=True)

    class Meta:
        model = Delivery
        fields = [
            "message_id",
            "alert",
            "happening",
            "made_at",
            "attempts",
            "due_at",
            "arrived_at",
            "answer",
            "again",
        ]
        read_only_fields = fields


#: As the page has it: an alert that nobody took on for two days goes nowhere further.
LONGEST_MINUTES = 2 * 24 * 60


class MatchIn(Body):
    """Which alerts are meant; what is left out means any."""

    code = serializers.CharField(required=False, default="", allow_blank=True, max_length=64)
    failure_class = serializers.CharField(
        required=False, default="", allow_blank=True, max_length=16
    )
    tenant = serializers.SlugField(required=False, default="", allow_blank=True, max_length=63)
    least = serializers.ChoiceField(choices=SEVERITIES, default=Severity.NOTICE.value)

    def match(self) -> Match:
        asked = self.validated_data
        return Match(
            asked["code"], asked["failure_class"], asked["tenant"], Severity(asked["least"])
        )


class AlertRouteIn(MatchIn):
    """Where such alerts are told; `then` and `after_minutes` belong together."""

    channel = serializers.SlugRelatedField[Any](
        slug_field="public_id", queryset=Channel.objects.filter(removed_at=None)
    )
    then = serializers.SlugRelatedField[Any](
        slug_field="public_id",
        queryset=Channel.objects.filter(removed_at=None),
        required=False,
        default=None,
        allow_null=True,
    )
    after_minutes = serializers.IntegerField(
        required=False, default=None, allow_null=True, min_value=1, max_value=LONGEST_MINUTES
    )
    tells_end = serializers.BooleanField(default=True)


class AlertRouteOut(serializers.ModelSerializer[Route]):
    """A route."""

    channel = serializers.SlugRelatedField[Any](slug_field="public_id", read_only=True)
    then = serializers.SlugRelatedField[Any](
        slug_field="public_id", read_only=True, allow_null=True
    )
    after = serializers.DurationField(allow_null=True)

    class Meta:
        model = Route
        fields = [
            "id",
            "code",
            "failure_class",
            "tenant",
            "least",
            "channel",
            "then",
            "after",
            "tells_end",
            "made_at",
        ]
        read_only_fields = fields


class SilenceIn(MatchIn):
    """Why, and until when."""

    reason = serializers.CharField(max_length=200)
    until = serializers.DateTimeField()


class SilenceOut(serializers.ModelSerializer[Silence]):
    """A silence."""

    id = serializers.CharField(source="public_id")

    class Meta:
        model = Silence
        fields = [
            "id",
            "code",
            "failure_class",
            "tenant",
            "least",
            "reason",
            "made_at",
            "until",
        ]
        read_only_fields = fields
