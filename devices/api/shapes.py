"""What the API takes (…In) and gives (…Out), one pair a noun."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from devices.api.forecasts import OutlookOut, PodStagesOut, explanation_json, stages_json
from devices.asks.tries import tries_of
from devices.authoring.succession import successions
from devices.models import Claim, ClaimEvent
from devices.runbooks import address_of
from portal.api.bodies import Body
from portal.api.quick import QuickOut

#: Lines of its history that a claim comes with.
NEWEST = 50


class ClaimIn(Body):
    """An ask: which template, where, under which name, with which answers."""

    template = serializers.SlugField(help_text="Slug of an approved template.")
    namespace = serializers.CharField(help_text="A namespace of this tenant.")
    name = serializers.CharField(help_text="Lower-case letters, digits and '-'.")
    values = serializers.DictField(
        child=serializers.JSONField(), default=dict, help_text="Answers by parameter name."
    )
    at_once = serializers.IntegerField(
        default=1,
        help_text="How many Pods may use a template at the same time; it counts as often.",
    )
    grant = serializers.CharField(
        default="", allow_blank=True, help_text="Id of a grant that pays for it."
    )
    days = serializers.IntegerField(
        default=None,
        allow_null=True,
        help_text="Berth releases it after so many days unless it is extended; null: after the "
        "longest time that template and tenant allow, or never.",
    )
    note = serializers.CharField(
        default="", allow_blank=True, help_text="What it is for; its tenant reads it."
    )


class PlacedOut(QuickOut, serializers.Serializer):
    """A device that a claim holds."""

    claim = serializers.CharField()
    request = serializers.CharField()
    driver = serializers.CharField()
    pool = serializers.CharField()
    device = serializers.CharField()
    node = serializers.CharField(help_text="Empty where the device is not tied to one node.")


class PodOut(QuickOut, serializers.Serializer):
    """A Pod that uses a claim."""

    name = serializers.CharField()
    phase = serializers.CharField()
    node = serializers.CharField()
    ready = serializers.BooleanField()
    message = serializers.CharField()


class ClaimOut(QuickOut, serializers.ModelSerializer[Claim]):
    """An ask and where it stands."""

    id = serializers.CharField(source="public_id")
    tenant = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)
    namespace = serializers.SlugRelatedField[Any](slug_field="name", read_only=True)
    template = serializers.SlugField(source="version.template.slug")
    template_version = serializers.IntegerField(source="version.number")
    kind = serializers.SerializerMethodField(help_text="The object in the cluster.")
    devices = PlacedOut(source="placed", many=True)
    pods = PodOut(many=True)
    runbook = serializers.SerializerMethodField(help_text="Where the code's page is, if any.")

    class Meta:
        model = Claim
        fields = [
            "id", "name", "tenant", "namespace", "template", "template_version", "values", "words",
            "at_once", "kind", "object_name", "state", "since", "code", "why", "runbook", "devices",
            "node",
            "pods", "path", "resources", "route_why", "requested_at", "expires_at", "released_at",
            "note", "request_id", "revision",
        ]  # fmt: skip
        read_only_fields = fields

    def get_runbook(self, claim: Claim) -> str:
        return address_of(claim.code)

    def get_kind(self, claim: Claim) -> str:
        return "ResourceClaim" if claim.shape == "claim" else "ResourceClaimTemplate"


class EventOut(serializers.ModelSerializer[ClaimEvent]):
    """A line of a claim's history."""

    class Meta:
        model = ClaimEvent
        fields = ["at", "state", "code", "text"]
        read_only_fields = fields


class TriesOut(serializers.Serializer):
    """Berth's own tries that did not settle it, when it tries next, and failed preparations that
    the kubelet repeats by itself.
    """

    attempts = serializers.IntegerField()
    next_at = serializers.DateTimeField(allow_null=True)
    preparations = serializers.IntegerField()


class SuccessionOut(serializers.Serializer):
    """What holders of an older or a retired version are told; what they have runs on."""

    retired = serializers.BooleanField(help_text="Whether the template is offered no more.")
    sentence = serializers.CharField()
    words = serializers.CharField(help_text="Why, or what is new, in its author's words.")
    template = serializers.CharField(
        source="version.template.slug", allow_null=True, default=None, help_text="To ask for now."
    )
    template_version = serializers.IntegerField(
        source="version.number", allow_null=True, default=None
    )


class ClaimDetailOut(ClaimOut):
    """An ask with its history (newest first), why it waits if it does, and its Pods' stages."""

    events = serializers.SerializerMethodField()
    explanation = serializers.SerializerMethodField()
    stages = serializers.SerializerMethodField()
    succession = serializers.SerializerMethodField()
    tries = serializers.SerializerMethodField()

    class Meta(ClaimOut.Meta):
        fields = [*ClaimOut.Meta.fields, "explanation", "stages", "succession", "tries", "events"]
        read_only_fields = fields

    @extend_schema_field(EventOut(many=True))
    def get_events(self, claim: Claim) -> list[dict[str, Any]]:
        """The newest ones; the operation on events has all."""
        return list(EventOut(claim.events.all()[:NEWEST], many=True).data)

    @extend_schema_field(OutlookOut(allow_null=True))
    def get_explanation(self, claim: Claim) -> dict[str, Any] | None:
        """Computed now; null for a claim that does not wait, or where nobody knows."""
        return explanation_json(claim)

    @extend_schema_field(PodStagesOut(many=True))
    def get_stages(self, claim: Claim) -> list[dict[str, Any]]:
        """The newest Pods first."""
        return stages_json(claim, timezone.now())

    @extend_schema_field(TriesOut())
    def get_tries(self, claim: Claim) -> dict[str, Any]:
        """How often it was tried, and when next."""
        return dict(TriesOut(tries_of(claim)).data)

    @extend_schema_field(SuccessionOut(allow_null=True))
    def get_succession(self, claim: Claim) -> dict[str, Any] | None:
        """What is offered in the place of its template's version; null where that is current."""
        told = successions([claim], claim.tenant, timezone.now()).get(claim.pk)
        return dict(SuccessionOut(told).data) if told else None


class OfferOut(QuickOut, serializers.Serializer):
    """A device class with its figures; a figure that nobody knows is null."""

    name = serializers.CharField()
    display_name = serializers.CharField()
    words = serializers.CharField()
    counts = serializers.JSONField()
    counted_at = serializers.DateTimeField()
    seen_at = serializers.DateTimeField(allow_null=True)
    templates = serializers.SerializerMethodField()

    def get_templates(self, offer: Any) -> list[str]:
        """Slugs of the templates that lead to this class."""
        return [version.template.slug for version in offer.templates]
