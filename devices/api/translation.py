"""Operations of the translator: a manifest with claims in it, and the API server's word on it."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.authoring.serveranswers import await_answer
from devices.models import Proof
from devices.routing import proofs
from devices.routing.translating import translated
from devices.translation.findings import Kind
from devices.translation.translate import LONGEST
from portal.api.bodies import Body
from portal.api.operations import rehearses
from portal.request_ids import request_id_of
from tenants.api.base import TenantView
from tenants.models import ApiToken
from tenants.policy import Act


class TranslationIn(Body):
    """A manifest. `claim` is the id of a claim to use, empty for new templates.

    With `prove` the API server is asked by a dry run, in `namespace` where the manifest names none.
    """

    text = serializers.CharField(max_length=LONGEST, trim_whitespace=False)
    claim = serializers.CharField(max_length=12, allow_blank=True, default="")
    namespace = serializers.CharField(max_length=63, allow_blank=True, default="")
    prove = serializers.BooleanField(default=False)


class TranslationFindingOut(serializers.Serializer):
    """One thing to know: `changes` in behaviour, something to `check`, or `left` as it was."""

    code = serializers.CharField()
    kind = serializers.ChoiceField(choices=[kind.value for kind in Kind])
    document = serializers.IntegerField()
    line = serializers.IntegerField()
    about = serializers.CharField()
    words = serializers.CharField()


class DiffLineOut(serializers.Serializer):
    """One line of the diff; `sign` is `+`, `-`, a space, or `…` where lines are left out."""

    sign = serializers.CharField(trim_whitespace=False)
    text = serializers.CharField()
    before = serializers.IntegerField(allow_null=True)
    after = serializers.IntegerField(allow_null=True)


class AnswerOut(serializers.Serializer):
    """What the API server says to one object; `accepted` is null where it said nothing."""

    about = serializers.CharField()
    before = serializers.BooleanField(help_text="As pasted; else as translated.")
    accepted = serializers.BooleanField(allow_null=True)
    code = serializers.CharField()
    words = serializers.CharField()


class ProofOut(serializers.Serializer):
    """A dry run; `answers` is empty until `answered_at`. Kept for an hour."""

    id = serializers.CharField(source="public_id")
    asked_at = serializers.DateTimeField()
    answered_at = serializers.DateTimeField(allow_null=True)
    answers = AnswerOut(many=True)


class TranslationOut(serializers.Serializer):
    """The manifest with claims; `text` is what was sent, to the byte, where nothing changed."""

    text = serializers.CharField(trim_whitespace=False)
    changed = serializers.BooleanField()
    documents = serializers.IntegerField()
    findings = TranslationFindingOut(many=True)
    diff = DiffLineOut(many=True)
    proof = ProofOut(allow_null=True)


class Translations(TenantView):
    """Manifests that ask by extended resource."""

    noun = "translations"
    waits_for_worker = True

    @extend_schema(
        operation_id="translate_manifest",
        request=TranslationIn,
        responses={200: TranslationOut, 202: TranslationOut},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Puts claims in the place of extended resources; keeps nothing.

        With `prove`, 202 and the address of the proof where it takes longer than eight seconds.
        """
        access = self.access(slug)
        body = TranslationIn(data=request.data)
        body.is_valid(raise_exception=True)
        asked = body.validated_data
        found = translated(access.tenant, asked["text"], asked["claim"])
        row = None
        if asked["prove"]:
            access = self.access(slug, scope=ApiToken.Scope.REQUEST)
            access.require(Act.ASK)
        if asked["prove"] and found.changed:
            first = access.tenant.namespaces.values_list("name", flat=True).first()
            row = await_answer(
                proofs.ask(
                    found.pairs,
                    tenant=access.tenant,
                    namespace=asked["namespace"] or first or "",
                    person=access.user.person,
                    request_id=request_id_of(request),
                    now=timezone.now(),
                ),
                seconds=0.0 if rehearses(request) else None,
            )
        answer: dict[str, Any] = {
            "text": found.text,
            "changed": found.changed,
            "documents": found.documents,
            "findings": [one.as_json() for one in found.findings],
            "diff": found.lines,
            "proof": row,
        }
        waits = row is not None and row.answered_at is None
        headers = {}
        if row is not None:
            headers["Location"] = reverse("api:proof", args=[slug, row.public_id])
        return Response(TranslationOut(answer).data, status=202 if waits else 200, headers=headers)


class OneProof(TenantView):
    """One's own proof."""

    noun = "translations"

    @extend_schema(operation_id="get_translation_proof", responses=ProofOut)
    def get(self, request: Request, slug: str, public_id: str) -> Response:
        """What the API server said, once it did; kept for an hour."""
        access = self.access(slug)
        row: Proof | None = proofs.find(access.tenant, public_id, access.user.person)
        if row is None:
            raise Http404
        return Response(ProofOut(row).data)
