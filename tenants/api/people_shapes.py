"""What the API takes (…In) and gives (…Out) for approvals, members and platform roles."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from portal.api.bodies import Body
from portal.approvals.models import Approval, Delegation
from portal.approvals.rules import Verdict
from tenants.members import LONGEST_INVITATION
from tenants.models import GroupRole, Invitation, Membership


class AskedLineOut(serializers.Serializer):
    """One line of what is asked for; null is absence."""

    group = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    before = serializers.CharField(allow_null=True)
    after = serializers.CharField(allow_null=True)


class EffectOut(serializers.Serializer):
    """What it would do, as computed when it was asked for."""

    part = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    value = serializers.CharField()
    note = serializers.CharField()
    state = serializers.CharField()


class DecisionOut(serializers.Serializer):
    """What one person said; `holder` is whose right it used."""

    person = serializers.UUIDField()
    holder = serializers.UUIDField()
    verdict = serializers.CharField()
    comment = serializers.CharField()
    at = serializers.DateTimeField()


class ApprovalOut(serializers.ModelSerializer[Approval]):
    """A request for a yes and where it stands."""

    id = serializers.CharField(source="number")
    lines = AskedLineOut(many=True)
    effects = EffectOut(many=True)
    decisions = DecisionOut(many=True)
    decided_by = serializers.CharField(source="by.words")

    class Meta:
        model = Approval
        fields = [
            "id", "kind", "subject", "title", "tenant", "reason", "state", "needed", "decided_by",
            "lines", "effects", "effects_at", "digest", "decisions", "author", "asked_at",
            "expires_at", "ended_at", "ended_why", "request_id",
        ]  # fmt: skip
        read_only_fields = fields


class DecisionIn(Body):
    """A yes, or a no with a comment."""

    verdict = serializers.ChoiceField(choices=[(one.value, one.value) for one in Verdict])
    comment = serializers.CharField(required=False, default="", allow_blank=True)


class DelegationOut(serializers.ModelSerializer[Delegation]):
    """A right to decide that is lent for a while."""

    class Meta:
        model = Delegation
        fields = ["id", "lender", "borrower", "starts_at", "ends_at", "ended_at"]
        read_only_fields = fields


class DelegationIn(Body):
    """To whom, from when, until when."""

    borrower = serializers.CharField(help_text="User name.")
    starts_at = serializers.DateTimeField(required=False)
    ends_at = serializers.DateTimeField()


class MemberOut(serializers.ModelSerializer[Membership]):
    """A member of a tenant."""

    username = serializers.CharField(source="user.username")
    name = serializers.CharField(source="user.words")
    person = serializers.UUIDField(source="user.person")

    class Meta:
        model = Membership
        fields = ["username", "name", "person", "role"]
        read_only_fields = fields


class RoleIn(Body):
    """A role."""

    role = serializers.CharField()


class InvitationOut(serializers.ModelSerializer[Invitation]):
    """An open invitation; its text is shown once, when it is made."""

    id = serializers.CharField(source="prefix")
    made_by = serializers.SlugRelatedField[Any](slug_field="username", read_only=True)

    class Meta:
        model = Invitation
        fields = ["id", "role", "note", "made_by", "made_at", "expires_at"]
        read_only_fields = fields


class NewInvitationOut(InvitationOut):
    """An invitation with the link that is shown this once."""

    link = serializers.CharField()

    class Meta(InvitationOut.Meta):
        fields = [*InvitationOut.Meta.fields, "link"]
        read_only_fields = fields


class InvitationIn(Body):
    """For whom, and what it makes of them."""

    role = serializers.CharField()
    note = serializers.CharField(max_length=80)
    days = serializers.IntegerField(default=3, min_value=1, max_value=LONGEST_INVITATION.days)


class PlatformRoleOut(serializers.Serializer):
    """Somebody's role on the platform."""

    username = serializers.CharField(source="user.username")
    name = serializers.CharField(source="user.words")
    person = serializers.UUIDField(source="user.person")
    role = serializers.CharField()


class GroupRoleOut(serializers.ModelSerializer[GroupRole]):
    """What a group of the sign-in provider gives; without a tenant, on the platform."""

    tenant = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True, allow_null=True)

    class Meta:
        model = GroupRole
        fields = ["id", "group", "tenant", "role"]
        read_only_fields = fields


class GroupRoleIn(Body):
    """Which group gives which role, and where."""

    group = serializers.CharField(max_length=200)
    tenant = serializers.SlugField(required=False, default="", allow_blank=True, max_length=63)
    role = serializers.CharField()
