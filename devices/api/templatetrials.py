"""Operations that try templates: the check before publication, and dry runs at the API server."""

from __future__ import annotations

from django.http import Http404
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from devices.api.author_shapes import ContentIn, DryRunIn, DryRunOut, TemplateCheckOut
from devices.api.templates import TemplateView, readable
from devices.authoring import dryruns
from devices.authoring.drafts import read_text
from devices.authoring.reviews import check
from devices.authoring.serveranswers import await_answer
from devices.authoring.tryout import dry_run, tenants
from devices.models import DryRun
from portal.api.operations import rehearses
from portal.request_ids import request_id_of
from tenants.api.base import PlatformView
from tenants.policy import PlatformAct


class Check(TemplateView):
    """The check before publication."""

    asks_only = True

    @extend_schema(operation_id="check_template", request=ContentIn, responses=TemplateCheckOut)
    def post(self, request: Request, slug: str, number: int) -> Response:
        """Over every device group that the mirror shows and every supported release; saves nothing.

        Without content, the version's own is checked.
        """
        self.platform().require(PlatformAct.SEE)
        version = self.version(slug, number)
        content, _ = readable(request, ContentIn)
        return Response(TemplateCheckOut(check(version, content)).data)


class TryOut(TemplateView):
    """Dry runs of what a version makes."""

    waits_for_worker = True

    @extend_schema(
        operation_id="dry_run_template",
        request=DryRunIn,
        responses={200: DryRunOut, 202: DryRunOut},
    )
    def post(self, request: Request, slug: str, number: int) -> Response:
        """What the API server says to the objects of these answers; nothing is kept.

        202 with the address of the answer where it takes longer than eight seconds.
        """
        access = self.author()
        version = self.version(slug, number)
        _, body = readable(request, DryRunIn)
        text = body.written()
        template = version.read() if text is None else read_text(text)[1]
        tenant = tenants().filter(slug=body.validated_data["tenant"]).first()
        row = dry_run(
            version,
            template=template,
            values=body.validated_data["values"],
            tenant=tenant,
            person=access.user.person,
            request_id=request_id_of(request),
            now=timezone.now(),
        )
        row = await_answer(row, seconds=0.0 if rehearses(request) else None)
        where = reverse("api:dry-run", args=[row.public_id])
        status = 200 if row.answered_at else 202
        return Response(DryRunOut(row).data, status=status, headers={"Location": where})


class OneDryRun(PlatformView):
    """One's own dry run."""

    noun = "templates"

    @extend_schema(operation_id="get_dry_run", responses=DryRunOut)
    def get(self, request: Request, public_id: str) -> Response:
        """The answer, once there is one; kept for a day."""
        access = self.platform()
        row: DryRun | None = dryruns.find(public_id, access.user.person)
        if row is None:
            raise Http404
        return Response(DryRunOut(row).data)
