"""What the API takes (…In) and gives (…Out), one pair a noun."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from devices.api.forecasts import OutlookOut, PodStagesOut, explanation_json, stages_json
from devices.dra.template import Choice, Count, Parameter, Switch
from devices.models import Claim, ClaimEvent, TemplateVersion


class ClaimIn(serializers.Serializer):
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


class PlacedOut(serializers.Serializer):
    """A device that a claim holds."""

    claim = serializers.CharField()
    request = serializers.CharField()
    driver = serializers.CharField()
    pool = serializers.CharField()
    device = serializers.CharField()
    node = serializers.CharField(help_text="Empty where the device is not tied to one node.")


class PodOut(serializers.Serializer):
    """A Pod that uses a claim."""

    name = serializers.CharField()
    phase = serializers.CharField()
    node = serializers.CharField()
    ready = serializers.BooleanField()
    message = serializers.CharField()


class ClaimOut(serializers.ModelSerializer[Claim]):
    """An ask and where it stands."""

    id = serializers.CharField(source="public_id")
    tenant = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)
    namespace = serializers.SlugRelatedField[Any](slug_field="name", read_only=True)
    template = serializers.SlugField(source="version.template.slug")
    template_version = serializers.IntegerField(source="version.number")
    kind = serializers.SerializerMethodField(help_text="The object in the cluster.")
    devices = PlacedOut(source="placed", many=True)
    pods = PodOut(many=True)

    class Meta:
        model = Claim
        fields = [
            "id", "name", "tenant", "namespace", "template", "template_version", "values", "words",
            "at_once", "kind", "object_name", "state", "since", "code", "why", "devices", "node",
            "pods", "requested_at", "released_at", "request_id", "revision",
        ]  # fmt: skip
        read_only_fields = fields

    def get_kind(self, claim: Claim) -> str:
        return "ResourceClaim" if claim.shape == "claim" else "ResourceClaimTemplate"


class EventOut(serializers.ModelSerializer[ClaimEvent]):
    """A line of a claim's history."""

    class Meta:
        model = ClaimEvent
        fields = ["at", "state", "code", "text"]
        read_only_fields = fields


class ClaimDetailOut(ClaimOut):
    """An ask with its history (newest first), why it waits if it does, and its Pods' stages."""

    events = EventOut(many=True)
    explanation = serializers.SerializerMethodField()
    stages = serializers.SerializerMethodField()

    class Meta(ClaimOut.Meta):
        fields = [*ClaimOut.Meta.fields, "explanation", "stages", "events"]
        read_only_fields = fields

    @extend_schema_field(OutlookOut(allow_null=True))
    def get_explanation(self, claim: Claim) -> dict[str, Any] | None:
        """Computed now; null for a claim that does not wait, or where nobody knows."""
        return explanation_json(claim)

    @extend_schema_field(PodStagesOut(many=True))
    def get_stages(self, claim: Claim) -> list[dict[str, Any]]:
        """The newest Pods first."""
        return stages_json(claim, timezone.now())


class OptionOut(serializers.Serializer):
    """One answer to a choice."""

    value = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    words = serializers.CharField()


class ParameterOut(serializers.Serializer):
    """One question of a template."""

    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=["choice", "count", "switch"])
    label = serializers.CharField()  # type: ignore[assignment]
    help = serializers.CharField()
    default = serializers.JSONField()
    options = OptionOut(many=True)
    minimum = serializers.IntegerField(allow_null=True)
    maximum = serializers.IntegerField(allow_null=True)


class TemplateOut(serializers.ModelSerializer[TemplateVersion]):
    """What can be asked for."""

    slug = serializers.SlugField(source="template.slug")
    name = serializers.CharField(source="template.name")
    words = serializers.CharField(source="template.words")
    version = serializers.IntegerField(source="number")
    parameters = serializers.SerializerMethodField()
    device_classes = serializers.SerializerMethodField()

    class Meta:
        model = TemplateVersion
        fields = ["slug", "name", "words", "version", "parameters", "device_classes"]
        read_only_fields = fields

    def get_parameters(self, version: TemplateVersion) -> list[dict[str, Any]]:
        """One entry a question, in the order of the form."""
        return [parameter_out(parameter) for parameter in version.read().parameters]

    def get_device_classes(self, version: TemplateVersion) -> list[str]:
        """Every class that some answer can lead to."""
        return sorted(version.read().device_classes)


def parameter_out(parameter: Parameter) -> dict[str, Any]:
    """A parameter's JSON. CEL fragments are the author's business and stay inside."""
    options = parameter.options if isinstance(parameter, Choice) else ()
    bounds = (
        (parameter.minimum, parameter.maximum) if isinstance(parameter, Count) else (None, None)
    )
    kinds = {Choice: "choice", Count: "count", Switch: "switch"}
    return {
        "name": parameter.name,
        "kind": kinds[type(parameter)],
        "label": parameter.label,
        "help": parameter.help,
        "default": parameter.default,
        "options": [
            {"value": option.value, "label": option.label, "words": option.words}
            for option in options
        ],
        "minimum": bounds[0],
        "maximum": bounds[1],
    }


class OfferOut(serializers.Serializer):
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
