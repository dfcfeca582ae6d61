"""What the API takes and gives about templates on the platform's side."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from devices.authoring.drafts import LONGEST_NAME, LONGEST_WORDS, Draft, draft_of
from devices.authoring.reviews import Standing
from devices.dra.templates.findings import Report
from devices.dra.written import LONGEST, write
from devices.models import ClaimTemplate, DryRun, TemplateVersion
from portal.api.bodies import Body

STATES = ["draft", "in review", "denied", "approved", "retired"]


class ContentIn(Body):
    """A template's content: as `text` (YAML, comments are kept) or as `content` (JSON)."""

    text = serializers.CharField(
        required=False, max_length=LONGEST, trim_whitespace=False, help_text="YAML or JSON."
    )
    content = serializers.JSONField(required=False)

    def written(self) -> str | None:
        """The text that is meant; None where neither was sent."""
        sent = self.validated_data
        if "text" in sent:
            return str(sent["text"])
        return write(sent["content"]) if "content" in sent else None


class DraftIn(ContentIn):
    """A version as its author gives it. What is left out stays as it is."""

    name = serializers.CharField(required=False, max_length=LONGEST_NAME)
    words = serializers.CharField(required=False, max_length=LONGEST_WORDS)
    icon = serializers.CharField(required=False, max_length=24)
    note = serializers.CharField(
        required=False,
        max_length=LONGEST_WORDS,
        allow_blank=True,
        help_text="What is new, for those who hold an earlier version.",
    )

    def draft(self, before: TemplateVersion | None = None) -> Draft:
        """What was sent, over what the version holds already."""
        old = draft_of(before) if before else Draft("", "", "device", "")
        sent, text = self.validated_data, self.written()
        named = {key: sent.get(key, getattr(old, key)) for key in ("name", "words", "icon", "note")}
        return Draft(**named, text=old.text if text is None else text)


class TemplateIn(DraftIn):
    """A new template with its first draft."""

    slug = serializers.CharField(max_length=63, help_text="Stands in addresses; never changes.")


class AudienceIn(Body):
    """Which tenants see a template."""

    audience = serializers.ChoiceField(choices=ClaimTemplate.Audience.choices)
    tenants = serializers.ListField(
        child=serializers.SlugField(), default=list, help_text="Slugs, for `named`."
    )


class SubmitIn(Body):
    """What the approver should know."""

    reason = serializers.CharField(default="", allow_blank=True, max_length=2000)


class RetireIn(Body):
    """What to ask for instead, and why."""

    successor = serializers.CharField(
        allow_blank=True, help_text="Slug of the template to ask for; empty: nothing replaces it."
    )
    words = serializers.CharField(max_length=LONGEST_WORDS, help_text="Why; every holder reads it.")


class DryRunIn(ContentIn):
    """As whom, and with which answers; without content, the version's own."""

    tenant = serializers.SlugField()
    values = serializers.DictField(child=serializers.JSONField(), default=dict)


class HeldTemplateOut(serializers.Serializer):
    """How much is held: open claims, and of how many tenants."""

    claims = serializers.IntegerField()
    tenants = serializers.IntegerField()


class PlatformTemplateOut(serializers.ModelSerializer[ClaimTemplate]):
    """A template as the platform sees it."""

    tenants = serializers.SlugRelatedField[Any](slug_field="slug", many=True, read_only=True)

    class Meta:
        model = ClaimTemplate
        fields = ["slug", "name", "words", "icon", "audience", "tenants", "created_at"]
        read_only_fields = fields


class TemplateRowOut(serializers.Serializer):
    """A template in the list: what is offered, what is being written, who holds it."""

    template = PlatformTemplateOut()
    offered = serializers.IntegerField(
        source="offered.number", allow_null=True, help_text="Version that tenants ask for now."
    )
    newest = serializers.IntegerField(source="newest.number")
    state = serializers.ChoiceField(choices=STATES, source="standing.state")
    held = HeldTemplateOut()


class TemplateVersionOut(serializers.ModelSerializer[TemplateVersion]):
    """A version with its content. `state` denied: sent back, it can be changed and put again."""

    template = serializers.SlugField(source="template.slug")
    version = serializers.IntegerField(source="number")
    state = serializers.SerializerMethodField()
    approval = serializers.SerializerMethodField(help_text="Number of the newest one.")
    text = serializers.SerializerMethodField(help_text="As its author wrote it.")
    successor = serializers.SerializerMethodField(help_text="Slug of what to ask for instead.")

    class Meta:
        model = TemplateVersion
        fields = [
            "template", "version", "state", "name", "words", "icon", "note", "text", "content",
            "approval", "approved_at", "retired_at", "retired_words", "successor", "changed_at",
            "revision",
        ]  # fmt: skip
        read_only_fields = fields

    @extend_schema_field(serializers.ChoiceField(choices=STATES))
    def get_state(self, version: TemplateVersion) -> str:
        standing: Standing | None = self.context.get("standing")
        return standing.state if standing else version.state

    def get_approval(self, version: TemplateVersion) -> str:
        return f"A-{version.approval}" if version.approval else ""

    def get_text(self, version: TemplateVersion) -> str:
        return draft_of(version).text

    def get_successor(self, version: TemplateVersion) -> str:
        return version.successor.slug if version.successor else ""


class TemplateFindingOut(serializers.Serializer):
    """One thing that the check before publication found."""

    code = serializers.CharField()
    severity = serializers.ChoiceField(choices=["error", "warning", "note"])
    sentence = serializers.CharField()
    remedy = serializers.CharField()
    path = serializers.CharField(help_text="Where in the content; empty for the whole.")
    release = serializers.CharField(help_text="Of Kubernetes, where it is about one.")


class TemplateCheckOut(serializers.Serializer[Report]):
    """The check before publication, the worst first."""

    may_publish = serializers.BooleanField()
    findings = TemplateFindingOut(many=True)
    tried = serializers.IntegerField(help_text="Sets of answers looked at.")
    complete = serializers.BooleanField(help_text="Whether there are no others.")
    fits = serializers.ListField(
        child=serializers.CharField(),
        allow_null=True,
        help_text="Nodes where its usual answers fit now; null where no cluster was seen.",
    )


class DryRunOut(serializers.ModelSerializer[DryRun]):
    """A dry run. `accepted` is null until there is an answer, and where nobody could get one."""

    id = serializers.CharField(source="public_id")
    objects = serializers.JSONField(source="objects_json")

    class Meta:
        model = DryRun
        fields = [
            "id", "about", "objects", "asked_at", "answered_at", "accepted", "code", "said",
            "refused",
        ]  # fmt: skip
        read_only_fields = fields
