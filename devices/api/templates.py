"""Operations on templates for those who write them: the same verbs and codes as the pages."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from devices.api.author_shapes import (
    AudienceIn,
    DraftIn,
    PlatformTemplateOut,
    RetireIn,
    SubmitIn,
    TemplateIn,
    TemplateRowOut,
    TemplateVersionOut,
)
from devices.authoring.audience import show_to
from devices.authoring.drafts import (
    begin,
    begin_version,
    change,
    discard,
    mistakes,
    read_text,
)
from devices.authoring.reviews import retire, standings, submit, withdraw
from devices.authoring.templatelist import rows
from devices.models import TemplateVersion
from portal.api.etags import check_match, etag
from portal.api.idempotency import once
from portal.errors import Invalid
from portal.request_ids import request_id_of
from tenants.access import PlatformAccess
from tenants.api.base import KEY, MATCH, PlatformView
from tenants.api.people_shapes import ApprovalOut
from tenants.models import ApiToken
from tenants.policy import PlatformAct

OPERATE = ApiToken.Scope.OPERATE


class TemplateView(PlatformView):
    """What all of them need: the right, and the version that is meant."""

    noun = "templates"

    def author(self) -> PlatformAccess:
        """The caller as one who may write templates."""
        access = self.platform(scope=OPERATE)
        access.require(PlatformAct.WRITE_TEMPLATES)
        return access

    def version(self, slug: str, number: int) -> TemplateVersion:
        rows = TemplateVersion.objects.select_related("template", "successor")
        found = rows.filter(template__slug=slug, number=number).first()
        if found is None:
            raise Http404
        return found

    def looked_at(self, request: Request, version: TemplateVersion) -> int | None:
        """The revision of If-Match; None without one. Raises `Outdated`."""
        check_match(request, version.revision, shown(version))
        wanted = request.headers.get("If-Match", "*").strip()
        return None if wanted == "*" else version.revision


class PlatformTemplates(TemplateView):
    """Every template."""

    @extend_schema(operation_id="list_platform_templates", responses=TemplateRowOut(many=True))
    def get(self, request: Request) -> Response:
        """By name: what is offered, what is being written, how much is held."""
        self.platform().require(PlatformAct.SEE)
        return Response(TemplateRowOut(rows(), many=True).data)

    @extend_schema(
        operation_id="write_template",
        request=TemplateIn,
        responses={201: TemplateVersionOut},
        parameters=[KEY],
    )
    def post(self, request: Request) -> Response:
        """A new template with a draft; nobody can ask for it before somebody else approves it."""
        access = self.author()
        body = TemplateIn(data=request.data)
        body.is_valid(raise_exception=True)
        now = timezone.now()

        def act() -> Response:
            made = begin(
                access=access,
                slug=body.validated_data["slug"],
                draft=body.draft(),
                request_id=request_id_of(request),
                now=now,
            )
            return answer(made, status=201)

        return once(request, caller=self.caller(), now=now, act=act)


class OneTemplate(TemplateView):
    """One template."""

    @extend_schema(operation_id="get_platform_template", responses=TemplateVersionOut(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """Its versions, the newest first."""
        self.platform().require(PlatformAct.SEE)
        rows = TemplateVersion.objects.filter(template__slug=slug)
        found = list(rows.select_related("template", "successor"))
        if not found:
            raise Http404
        states = standings(found)
        shapes = [TemplateVersionOut(one, context={"standing": states[one.pk]}) for one in found]
        return Response([shape.data for shape in shapes])


class Audience(TemplateView):
    """Who sees a template."""

    @extend_schema(
        operation_id="show_template_to",
        request=AudienceIn,
        responses=PlatformTemplateOut,
        parameters=[KEY],
    )
    def put(self, request: Request, slug: str) -> Response:
        """Says which tenants see it and may ask for it; holders keep what they have."""
        access, now = self.author(), timezone.now()
        body = AudienceIn(data=request.data)
        body.is_valid(raise_exception=True)

        def act() -> Response:
            found = show_to(
                access=access,
                slug=slug,
                **body.validated_data,
                request_id=request_id_of(request),
                now=now,
            )
            return Response(PlatformTemplateOut(found).data)

        return once(request, caller=self.caller(), now=now, act=act)


class Versions(TemplateView):
    """New versions."""

    @extend_schema(
        operation_id="begin_template_version",
        request=None,
        responses={201: TemplateVersionOut},
        parameters=[KEY],
    )
    def post(self, request: Request, slug: str) -> Response:
        """A draft as a copy of what is offered; there is one at a time."""
        access, now = self.author(), timezone.now()

        def act() -> Response:
            made = begin_version(
                access=access, slug=slug, request_id=request_id_of(request), now=now
            )
            return answer(made, status=201)

        return once(request, caller=self.caller(), now=now, act=act)


class OneVersion(TemplateView):
    """One version."""

    @extend_schema(operation_id="get_template_version", responses=TemplateVersionOut)
    def get(self, request: Request, slug: str, number: int) -> Response:
        """Its text and content, its state, and the ETag to change it with."""
        self.platform().require(PlatformAct.SEE)
        return answer(self.version(slug, number))

    @extend_schema(
        operation_id="change_template_version",
        request=DraftIn,
        responses=TemplateVersionOut,
        parameters=[KEY, MATCH],
    )
    def put(self, request: Request, slug: str, number: int) -> Response:
        """Writes a draft anew. One in review becomes a draft again and its approval is void."""
        access, now = self.author(), timezone.now()
        body = DraftIn(data=request.data)
        body.is_valid(raise_exception=True)

        def act() -> Response:
            before = self.version(slug, number)
            changed = change(
                access=access,
                slug=slug,
                number=number,
                draft=body.draft(before),
                revision=self.looked_at(request, before),
                request_id=request_id_of(request),
                now=now,
            )
            return answer(changed)

        return once(request, caller=self.caller(), now=now, act=act)

    @extend_schema(
        operation_id="discard_template_version",
        request=None,
        responses={204: None},
        parameters=[KEY, MATCH],
    )
    def delete(self, request: Request, slug: str, number: int) -> Response:
        """Throws a draft away, and the template with it where that was its only version."""
        access, now = self.author(), timezone.now()

        def act() -> Response:
            discard(
                access=access,
                slug=slug,
                number=number,
                revision=self.looked_at(request, self.version(slug, number)),
                request_id=request_id_of(request),
                now=now,
            )
            return Response(status=204)

        return once(request, caller=self.caller(), now=now, act=act)


class Submit(TemplateView):
    """The way into review."""

    @extend_schema(
        operation_id="submit_template_version",
        request=SubmitIn,
        responses={201: ApprovalOut},
        parameters=[KEY, MATCH],
    )
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Asks for a yes of whoever wrote nothing in it; refused while the check has errors."""
        access, now = self.author(), timezone.now()
        body = SubmitIn(data=request.data)
        body.is_valid(raise_exception=True)

        def act() -> Response:
            approval = submit(
                access=access,
                slug=slug,
                number=number,
                revision=self.looked_at(request, self.version(slug, number)),
                reason=body.validated_data["reason"],
                request_id=request_id_of(request),
                now=now,
            )
            where = reverse("tenants-api:approval", args=[approval.number])
            return Response(ApprovalOut(approval).data, status=201, headers={"Location": where})

        return once(request, caller=self.caller(), now=now, act=act)


class Withdraw(TemplateView):
    """The way back."""

    @extend_schema(
        operation_id="withdraw_template_version",
        request=None,
        responses=TemplateVersionOut,
        parameters=[KEY],
    )
    def post(self, request: Request, slug: str, number: int) -> Response:
        """It is a draft again and its approval is void; twice is fine."""
        access, now = self.author(), timezone.now()

        def act() -> Response:
            found = withdraw(
                access=access, slug=slug, number=number, request_id=request_id_of(request), now=now
            )
            return answer(found)

        return once(request, caller=self.caller(), now=now, act=act)


class Retire(TemplateView):
    """The end of a template."""

    @extend_schema(
        operation_id="retire_template",
        request=RetireIn,
        responses=TemplateVersionOut,
        parameters=[KEY],
    )
    def post(self, request: Request, slug: str) -> Response:
        """It is offered no more. Holders keep what they have and read why, and what replaces it."""
        access, now = self.author(), timezone.now()
        body = RetireIn(data=request.data)
        body.is_valid(raise_exception=True)

        def act() -> Response:
            found = retire(
                access=access,
                slug=slug,
                **body.validated_data,
                request_id=request_id_of(request),
                now=now,
            )
            return answer(found)

        return once(request, caller=self.caller(), now=now, act=act)


def answer(version: TemplateVersion, *, status: int = 200) -> Response:
    """A version with its ETag, and where it is."""
    where = reverse("api:template-version", args=[version.template.slug, version.number])
    headers = {"ETag": etag(version.revision), "Location": where}
    return Response(shown(version), status=status, headers=headers)


def shown(version: TemplateVersion) -> dict[str, Any]:
    standing = standings([version])[version.pk]
    return dict(TemplateVersionOut(version, context={"standing": standing}).data)


def readable(request: Request, shape: type[Any]) -> tuple[dict[str, Any] | None, Any]:
    """The content that was sent (None: none) and the checked body; `Invalid` by path."""
    body = shape(data=request.data)
    body.is_valid(raise_exception=True)
    text = body.written()
    if text is None:
        return None, body
    if wrong := mistakes(text):
        fields = {
            f"content.{one.path}" if one.path else "text": f"Line {one.line}: {one.text}"
            for one in reversed(wrong)
        }
        raise Invalid("It does not read as a template.", fields=fields)
    return read_text(text)[0], body
