"""What the API says of templates: questions with conditions and bounds, and what they make."""

from __future__ import annotations

from typing import Any

import msgspec
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from devices.dra.templates import Amount, Choice, Count, Parameter, Switch, Template
from devices.models import TemplateVersion

KINDS = {Choice: "choice", Count: "count", Amount: "quantity", Switch: "switch"}
WHEN = (
    "Holds where every parameter named has one of the values listed, or lies within the bounds; "
    "empty: always."
)


class OptionOut(serializers.Serializer):
    """One answer to a choice."""

    value = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    words = serializers.CharField()
    when = serializers.JSONField(help_text=f"Offered only then. {WHEN}")


class BoundsOut(serializers.Serializer):
    """Other bounds of a count or quantity while a condition holds; null: as before."""

    when = serializers.JSONField(help_text=WHEN)
    minimum = serializers.JSONField(allow_null=True)
    maximum = serializers.JSONField(allow_null=True)


class ParameterOut(serializers.Serializer):
    """One question of a template. Bounds of a count are numbers, of a quantity are quantities."""

    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=["choice", "count", "quantity", "switch"])
    label = serializers.CharField()  # type: ignore[assignment]
    help = serializers.CharField()
    default = serializers.JSONField(
        help_text="This tenant's; null where an answer is needed or may be left out."
    )
    when = serializers.JSONField(
        help_text=f"Asked only then; a value sent otherwise is refused. {WHEN}"
    )
    optional = serializers.BooleanField(help_text="Whether it may stay unanswered.")
    required_when = serializers.JSONField(help_text="Where it may not stay unanswered after all.")
    options = OptionOut(many=True)
    minimum = serializers.JSONField(allow_null=True)
    maximum = serializers.JSONField(allow_null=True)
    step = serializers.CharField(allow_null=True)
    unit = serializers.CharField(
        allow_null=True, help_text="What a bare number of a quantity counts in, such as Gi."
    )
    capacity = serializers.CharField(allow_null=True)
    bounds = BoundsOut(many=True)


class AlternativeOut(serializers.Serializer):
    """One way to satisfy a request."""

    name = serializers.CharField()
    words = serializers.CharField()


class RequestOut(serializers.Serializer):
    """A request that a template makes."""

    name = serializers.CharField()
    words = serializers.CharField()
    sharing = serializers.ChoiceField(choices=["whole", "partition", "capacity"])
    alternatives = AlternativeOut(many=True, help_text="In the order in which they are tried.")


class TemplateOut(serializers.ModelSerializer[TemplateVersion]):
    """What can be asked for. With `tenant` in its context, defaults are that tenant's."""

    slug = serializers.SlugField(source="template.slug")
    name = serializers.CharField(source="template.name")
    words = serializers.CharField(source="template.words")
    version = serializers.IntegerField(source="number")
    parameters = serializers.SerializerMethodField()
    requests = serializers.SerializerMethodField()
    shared = serializers.SerializerMethodField(help_text="One claim for all Pods that name it.")
    pods = serializers.SerializerMethodField(help_text="How many Pods may share it at once.")
    device_classes = serializers.SerializerMethodField()

    class Meta:
        model = TemplateVersion
        fields = [
            "slug", "name", "words", "version", "parameters", "requests", "shared", "pods",
            "device_classes",
        ]  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(ParameterOut(many=True))
    def get_parameters(self, version: TemplateVersion) -> list[dict[str, Any]]:
        """One entry a question, in the order of the form."""
        template = version.read()
        tenant = str(self.context.get("tenant", ""))
        return [parameter_out(parameter, template, tenant) for parameter in template.parameters]

    @extend_schema_field(RequestOut(many=True))
    def get_requests(self, version: TemplateVersion) -> list[dict[str, Any]]:
        """What devices it asks for."""
        return [
            {
                "name": request.name,
                "words": request.words,
                "sharing": request.sharing,
                "alternatives": [
                    {"name": one.name, "words": one.words} for one in request.alternatives
                ],
            }
            for request in version.read().requests
        ]

    def get_shared(self, version: TemplateVersion) -> bool:
        return version.read().shared

    def get_pods(self, version: TemplateVersion) -> int | None:
        return version.read().pods

    def get_device_classes(self, version: TemplateVersion) -> list[str]:
        """Every class that some answer can lead to."""
        return sorted(version.read().device_classes)


def parameter_out(parameter: Parameter, template: Template, tenant: str = "") -> dict[str, Any]:
    """A parameter's JSON. CEL fragments are the author's business and stay inside."""
    own = template.tenant_defaults.get(tenant, {}).get(parameter.name)
    ranged = parameter if isinstance(parameter, Count | Amount) else None
    amount = parameter if isinstance(parameter, Amount) else None
    free = parameter if isinstance(parameter, Choice | Amount) else None
    default = parameter.default if own is None else own
    return {
        "name": parameter.name,
        "kind": KINDS[type(parameter)],
        "label": parameter.label,
        "help": parameter.help,
        "default": None if default == "" else default,
        "when": msgspec.to_builtins(parameter.when),
        "optional": free.optional if free else False,
        "required_when": msgspec.to_builtins(free.required_when) if free else {},
        "options": [
            {
                "value": option.value,
                "label": option.label,
                "words": option.words,
                "when": msgspec.to_builtins(option.when),
            }
            for option in (parameter.options if isinstance(parameter, Choice) else ())
            if option.offered
        ],
        "minimum": ranged.minimum if ranged else None,
        "maximum": ranged.maximum if ranged else None,
        "step": amount.step or None if amount else None,
        "unit": amount.unit if amount else None,
        "capacity": amount.capacity if amount else None,
        "bounds": [
            {
                "when": msgspec.to_builtins(one.when),
                "minimum": one.minimum or None,
                "maximum": one.maximum or None,
            }
            for one in (ranged.bounds if ranged else ())
        ],
    }
