"""Operations for pipelines: ask for several, wait, watch, and what to paste."""

from __future__ import annotations

from typing import Any

from asgiref.sync import sync_to_async
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponseBase
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.api.shapes import ClaimIn, ClaimOut
from devices.api.versions import approved_or_invalid
from devices.asks.changes import changes
from devices.asks.claims import request_claim
from devices.asks.snippets import Snippet, joining, manifests
from devices.asks.verdict import GOALS, Verdict, waited
from devices.dra.lifecycle import State
from devices.models import Claim
from portal.api import lasting
from portal.api.bodies import Body
from portal.errors import Invalid, Refused
from portal.request_ids import request_id_of
from tenants.access import Access
from tenants.api.base import TenantView
from tenants.models import ApiToken
from tenants.policy import Act

MOST_AT_ONCE = 100


VERDICTS = [(one.value, one.value) for one in Verdict]


class ClaimsIn(Body):
    """Several asks."""

    claims = serializers.ListField(
        child=serializers.JSONField(),
        min_length=1,
        max_length=MOST_AT_ONCE,
        help_text=f"1 to {MOST_AT_ONCE} asks, each as in `ask_for_devices`.",
    )


class AskedOut(serializers.Serializer):
    """What became of one of several; `code` is empty where it was asked for."""

    index = serializers.IntegerField()
    name = serializers.CharField()
    code = serializers.CharField()
    message = serializers.CharField()
    facts = serializers.DictField()
    claim = ClaimOut(allow_null=True)


class SeveralOut(serializers.Serializer):
    """All of them, in the order they came."""

    asked = serializers.IntegerField()
    refused = serializers.IntegerField()
    results = AskedOut(many=True)


class WaitedOut(serializers.Serializer):
    """How it stands to what was waited for."""

    verdict = serializers.ChoiceField(choices=VERDICTS)
    code = serializers.CharField()
    why = serializers.CharField()
    who = serializers.CharField(help_text="Who acts next: tenant, platform or nobody.")
    retry_after = serializers.IntegerField(
        allow_null=True, help_text="Seconds; null: asking again does not help."
    )
    claim = ClaimOut()


class ChangesOut(serializers.Serializer):
    """Claims that changed; each may come twice, none is left out."""

    seen = serializers.CharField(help_text="Take it as `since` the next time.")
    whole = serializers.BooleanField(help_text="All that are not released, not only changes.")
    rows = ClaimOut(many=True)


class SnippetOut(serializers.Serializer):
    """One thing to paste."""

    key = serializers.CharField()
    title = serializers.CharField()
    words = serializers.CharField()
    text = serializers.CharField()


class AskForSeveral(TenantView):
    """Asking for several at once."""

    noun = "claims"

    @extend_schema(
        operation_id="ask_for_several",
        request=ClaimsIn,
        responses={201: SeveralOut, 207: SeveralOut},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Each by itself: those that are refused are named with code and facts, the others stay.

        201 where all were asked for, else 207.
        """
        access = self.access(slug, scope=ApiToken.Scope.REQUEST)
        access.require(Act.ASK)
        body = ClaimsIn(data=request.data)
        body.is_valid(raise_exception=True)
        results = [
            self._one(access, index, one) for index, one in enumerate(body.validated_data["claims"])
        ]
        refused = sum(bool(one["code"]) for one in results)
        answer = {"asked": len(results) - refused, "refused": refused, "results": results}
        return Response(answer, status=207 if refused else 201)

    def _one(self, access: Access, index: int, asked: Any) -> dict[str, Any]:
        name = str(asked.get("name", "")) if isinstance(asked, dict) else ""
        told: dict[str, Any] = {
            "index": index,
            "name": name,
            "code": "",
            "message": "",
            "facts": {},
        }
        body = ClaimIn(data=asked)
        try:
            with transaction.atomic():
                body.is_valid(raise_exception=True)
                data = dict(body.validated_data)
                claim = request_claim(
                    access=access,
                    version=approved_or_invalid(access.tenant, data.pop("template")),
                    request_id=request_id_of(self.request),
                    now=timezone.now(),
                    **data,
                )
        except (Refused, serializers.ValidationError) as error:
            problem: Any = self.handle_exception(error).data
            said = {"code": problem["code"], "message": problem["detail"]}
            return {**told, **said, "facts": problem["facts"], "claim": None}
        return {**told, "claim": ClaimOut(claim).data}


class Waiting(TenantView):
    """How a claim stands to what somebody waits for."""

    noun = "claims"

    @extend_schema(
        operation_id="wait_for_claim",
        parameters=[
            OpenApiParameter("until", str, enum=list(GOALS), default="usable"),
            OpenApiParameter(
                "seconds",
                int,
                default=30,
                description=f"How long to wait, 0 to {lasting.LONGEST_WAIT}.",
            ),
        ],
        responses=WaitedOut,
    )
    def get(self, request: Request, slug: str, public_id: str) -> Response:
        """Answers as soon as it is ready or will never be, else `retryable` after `seconds`.

        `usable` is true once Pods can name it; `allocated` and `running` need a Pod.
        """
        access = self.access(slug)
        goal = request.query_params.get("until", "usable")
        if goal not in GOALS:
            raise Invalid("Nothing to wait for.", fields={"until": f"One of {', '.join(GOALS)}."})
        _seconds(request.query_params.get("seconds"), 30, lasting.LONGEST_WAIT)
        claim = _claim(access, public_id)
        found = waited(State(claim.state), claim.code, goal)
        return Response(
            {
                "verdict": found.verdict.value,
                "code": claim.code,
                "why": claim.why,
                "who": found.who,
                "retry_after": found.retry_after,
                "claim": ClaimOut(claim).data,
            }
        )


class ClaimChanges(TenantView):
    """What changed among a tenant's claims."""

    noun = "claims"

    @extend_schema(
        operation_id="list_claim_changes",
        parameters=[OpenApiParameter("since", str, description="`seen` of the answer before.")],
        responses=ChangesOut,
    )
    def get(self, request: Request, slug: str) -> Response:
        """Since an earlier look; without one, everything that is not released."""
        return Response(_changed(self.access(slug), request.query_params.get("since", "")))


class Watching(TenantView):
    """What changes among a tenant's claims, as it happens."""

    noun = "claims"
    content_negotiation_class = lasting.WhateverIsAccepted

    @extend_schema(
        operation_id="watch_claims",
        parameters=[
            OpenApiParameter(
                "Last-Event-ID", str, OpenApiParameter.HEADER, description="To go on from there."
            ),
            OpenApiParameter(
                "seconds",
                int,
                default=lasting.LONGEST_WATCH,
                description=f"How long, 0 to {lasting.LONGEST_WATCH}.",
            ),
        ],
        responses={(200, "text/event-stream"): OpenApiTypes.STR},
    )
    def get(self, request: Request, slug: str) -> Response:
        """Server-sent events: `claim` with a claim as JSON, `seen` with the id to go on from,
        `end` with the problem where the caller may not look any more. The first look brings all
        that are not released.
        """
        _seconds(request.query_params.get("seconds"), lasting.LONGEST_WATCH, lasting.LONGEST_WATCH)
        return Response(_changed(self.access(slug), request.META.get(lasting.LAST_SEEN, "")))


class Snippets(TenantView):
    """What to paste to use a claim."""

    noun = "claims"

    @extend_schema(operation_id="get_snippets", responses=SnippetOut(many=True))
    def get(self, request: Request, slug: str, public_id: str) -> Response:
        """A Pod, a Job and a Deployment as YAML, and the parts for a Pod of one's own."""
        wish = _claim(self.access(slug), public_id).wish()
        parts = Snippet(
            "parts", "Parts", "What a Pod of your own has to say to use it.", joining(wish)
        )
        return Response(SnippetOut([*manifests(wish), parts], many=True).data)


_wait = Waiting.as_view()
_watch = Watching.as_view()


@csrf_exempt
async def wait(request: HttpRequest, slug: str, public_id: str) -> HttpResponseBase:
    """`Waiting`, asked until it is settled."""
    try:
        seconds = _seconds(request.GET.get("seconds"), 30, lasting.LONGEST_WAIT)
    except Invalid:
        seconds = 0  # the operation says what is wrong
    if wanted := request.GET.get("fields"):  # what it waits for is always told
        asked = request.GET.copy()
        asked["fields"] = f"{wanted},verdict"
        request.GET = asked  # type: ignore[assignment]
    return await lasting.long_poll(
        _wait,
        request,
        seconds=seconds if request.method == "GET" else 0,
        settled=lambda body: body["verdict"] != Verdict.RETRYABLE,
        slug=slug,
        public_id=public_id,
    )


@csrf_exempt
async def watch(request: HttpRequest, slug: str) -> HttpResponseBase:
    """`Watching`, asked again whenever something happened."""
    try:
        seconds = _seconds(request.GET.get("seconds"), lasting.LONGEST_WATCH, lasting.LONGEST_WATCH)
    except Invalid:
        seconds = 0
    if request.method != "GET":
        return await sync_to_async(_watch)(request, slug=slug)
    return await lasting.watching(_watch, request, seconds=seconds, slug=slug)


# Where the OpenAPI document looks for what stands at an address.
for lasts, of in ((wait, _wait), (watch, _watch)):
    vars(lasts).update(cls=of.cls, initkwargs={})


def _changed(access: Access, since: str) -> dict[str, Any]:
    access.require(Act.VIEW)
    found = changes(access.tenant, since)
    rows = ClaimOut(found.claims, many=True).data
    return {"seen": found.seen, "whole": found.whole, "rows": rows}


def _seconds(given: str | None, usual: int, longest: int) -> int:
    if given is None:
        return usual
    if not (given.isascii() and given.isdecimal() and int(given[:9]) <= longest):
        raise Invalid("How long?", fields={"seconds": f"A whole number from 0 to {longest}."})
    return int(given)


def _claim(access: Access, public_id: str) -> Claim:
    claim = Claim.objects.of(access.tenant).whole().filter(public_id=public_id).first()
    if claim is None:
        raise Http404
    return claim
