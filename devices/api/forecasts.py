"""What-if by API: what would come of an ask, and of a claim that waits; in the pages' words."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.api.routes import PATHS
from devices.api.versions import approved_or_invalid
from devices.asks.claimfacts import PodTimes, pod_times
from devices.asks.history import Usual
from devices.dra.lifecycle import State
from devices.dra.quantity import QuantityError, parse
from devices.dra.templates import BadValue, answers
from devices.forecasts.forecast import advise, hit_rate, pending
from devices.forecasts.telling import evidence, next_step, told, waiting
from devices.forecasts.whatif import CPU, MEMORY, Outlook
from devices.models import Claim
from devices.routing.paths import routed
from portal.api.bodies import Body
from portal.errors import Invalid
from tenants.api.base import TenantView
from tenants.models import Tenant


class WhatIfIn(Body):
    """An ask that nobody makes yet."""

    template = serializers.SlugField(help_text="Slug of an approved template.")
    values = serializers.DictField(
        child=serializers.JSONField(), default=dict, help_text="Answers by parameter name."
    )
    namespace = serializers.CharField(
        required=False, help_text="A namespace of this tenant; its first one by default."
    )
    cpu = serializers.CharField(default=CPU, help_text="What the Pod asks of its node beside.")
    memory = serializers.CharField(default=MEMORY)


class StepOut(serializers.Serializer):
    """One step of a funnel: what is left, and what the next step takes away."""

    left = serializers.IntegerField()
    what = serializers.CharField()
    lost = serializers.CharField()
    clause = serializers.CharField()


class FunnelOut(serializers.Serializer):
    """Where the devices of one request went."""

    request = serializers.CharField()
    device_class = serializers.CharField()
    asked = serializers.IntegerField(allow_null=True)
    steps = StepOut(many=True)


class WaitOut(serializers.Serializer):
    """Holders whose end lets it in; other tenants' are counted, never named."""

    yours = serializers.ListField(child=serializers.CharField())
    others = serializers.IntegerField()
    node = serializers.CharField()
    until = serializers.DateTimeField(allow_null=True)


class BesideOut(serializers.Serializer):
    """What keeps the Pod off nodes with free devices."""

    text = serializers.CharField()
    nodes = serializers.IntegerField()


class OutlookOut(serializers.Serializer):
    """What would come of it, why, and whose job it is."""

    fate = serializers.CharField()
    fits = serializers.BooleanField(allow_null=True, help_text="null where nobody knows")
    code = serializers.CharField()
    sentence = serializers.CharField()
    who = serializers.ChoiceField(choices=["tenant", "platform", "nobody"])
    next_step = serializers.CharField()
    nodes = serializers.ListField(child=serializers.CharField())
    funnels = FunnelOut(many=True)
    waits = WaitOut(many=True)
    beside = BesideOut(many=True)
    evidence = serializers.ListField(child=serializers.CharField())
    said = serializers.CharField(help_text="The allocator's or the scheduler's own text.")
    assumed = serializers.ListField(
        child=serializers.CharField(), help_text="Features that nobody has read from the cluster."
    )
    as_of = serializers.DateTimeField(help_text="The moment that this is about.")


class UsualOut(serializers.Serializer):
    """Seconds; null where too few Pods say."""

    samples = serializers.IntegerField()
    p50 = serializers.FloatField(allow_null=True)
    p95 = serializers.FloatField(allow_null=True)


class WhatIfAlternativeOut(serializers.Serializer):
    """Other answers with which it fits now."""

    values = serializers.DictField(child=serializers.JSONField())
    changes = serializers.ListField(child=serializers.CharField())
    words = serializers.CharField()
    nodes = serializers.ListField(child=serializers.CharField())


class RouteOut(serializers.Serializer):
    """Which path new work takes, and the extended resources that say the same."""

    path = serializers.ChoiceField(choices=PATHS)
    why = serializers.CharField()
    resources = serializers.DictField(child=serializers.IntegerField())


class WhatIfOut(serializers.Serializer):
    """Advice, not a promise; `outlook` is null where the cluster was never seen."""

    cluster = serializers.CharField()
    outlook = OutlookOut(allow_null=True)
    alternatives = WhatIfAlternativeOut(many=True)
    usual_wait = UsualOut()
    route = RouteOut()
    hit_rate = serializers.FloatField(allow_null=True)
    compared = serializers.IntegerField()


class StageOut(serializers.Serializer):
    """One stage of a Pod; `took` in seconds from the one before."""

    stage = serializers.CharField()
    at = serializers.DateTimeField(allow_null=True)
    took = serializers.FloatField(allow_null=True)
    observed = serializers.BooleanField(help_text="Timed by Berth, not by the cluster.")
    usual = UsualOut()


class PodStagesOut(serializers.Serializer):
    """One Pod's way through the stages."""

    pod = serializers.CharField()
    created = serializers.DateTimeField()
    stages = StageOut(many=True)
    released = serializers.DateTimeField(allow_null=True)


class WhatIf(TenantView):
    """What would come of an ask."""

    noun = "claims"
    asks_only = True

    @extend_schema(operation_id="what_if", request=WhatIfIn, responses=WhatIfOut)
    def post(self, request: Request, slug: str) -> Response:
        """Would it fit, where, else why not and what would; asks nothing and changes nothing."""
        access = self.access(slug)
        body = WhatIfIn(data=request.data)
        body.is_valid(raise_exception=True)
        asked = body.validated_data
        version = approved_or_invalid(access.tenant, asked["template"])
        template = version.read()
        wrong: dict[str, str] = {}
        values: Mapping[str, Any] = {}
        try:
            values = answers(template, asked["values"], tenant=access.tenant.slug)
        except BadValue as bad:
            wrong |= {f"values.{name}": text for name, text in bad.fields.items()}
        names = namespaces_of(access.tenant)
        namespace = asked.get("namespace") or next(iter(names), "default")
        if asked.get("namespace") and namespace not in names:
            wrong["namespace"] = f"Choose a namespace of this tenant: {', '.join(names)}."
        for field in ("cpu", "memory"):
            try:
                parse(asked[field])
            except QuantityError as error:
                wrong[field] = f"Give a quantity such as 4 or 16Gi: {error}."
        if wrong:
            raise Invalid("Some answers are not right.", fields=wrong)
        advice = advise(
            tenant=access.tenant,
            template=template,
            values=values,
            namespace=namespace,
            name="what-if",
            mine=names,
            cpu=asked["cpu"],
            memory=asked["memory"],
            now=timezone.now(),
        )
        path = routed(advice.asked, version.template.slug, timezone.now())
        rate = hit_rate(timezone.now())
        found = advice.found
        return Response(
            {
                "cluster": advice.link.state,
                "outlook": outlook_json(found, names, advice.as_of) if found else None,
                "alternatives": [
                    {
                        "values": dict(one.values),
                        "changes": one.changes,
                        "words": one.words,
                        "nodes": one.nodes,
                    }
                    for one in advice.nearest
                ],
                "usual_wait": usual_json(advice.usual),
                "route": {
                    "path": path.path.value,
                    "why": path.why,
                    "resources": dict(path.resources or path.also),
                },
                "hit_rate": rate.share,
                "compared": rate.compared,
            }
        )


def namespaces_of(tenant: Tenant) -> list[str]:
    """The namespaces whose claims a member may know by name."""
    return list(tenant.namespaces.values_list("name", flat=True))


def explanation_json(claim: Claim) -> dict[str, Any] | None:
    """Why a claim waits, as `OutlookOut`; None for one that does not, or where nobody knows."""
    if claim.state != State.PENDING:
        return None
    mine = namespaces_of(claim.tenant)
    found = pending(claim, mine)
    return outlook_json(found[0], mine, found[1].as_of) if found else None


def outlook_json(found: Outlook, mine: Collection[str], as_of: datetime | None) -> dict[str, Any]:
    """An outlook for whoever may know these namespaces' claims by name."""
    return {
        "fate": found.fate.value,
        "fits": found.fits if found.known else None,
        "code": found.code,
        "sentence": found.sentence,
        "who": found.who.value,
        "next_step": next_step(found),
        "nodes": found.nodes,
        "funnels": [
            {
                "request": one.request,
                "device_class": one.device_class,
                "asked": one.asked,
                "steps": [
                    {"left": row.count, "what": row.what, "lost": row.lost, "clause": row.clause}
                    for row in one.rows
                ],
            }
            for one in told(found, mine)
        ],
        "waits": [
            {"yours": one.yours, "others": one.others, "node": one.node, "until": one.until}
            for one in waiting(found, mine)
        ],
        "beside": [{"text": text, "nodes": nodes} for text, nodes in found.beside],
        "evidence": evidence(found),
        "said": found.said,
        "assumed": found.assumed,
        "as_of": as_of,
    }


def stages_json(claim: Claim, now: datetime) -> list[dict[str, Any]]:
    """Each Pod's stages, newest Pod first, as `PodStagesOut`."""
    return [_pod_json(pod) for pod in pod_times(claim, now)]


def _pod_json(pod: PodTimes) -> dict[str, Any]:
    return {
        "pod": pod.pod,
        "created": pod.created,
        "stages": [
            {
                "stage": stage.word,
                "at": stage.at,
                "took": stage.took,
                "observed": stage.observed,
                "usual": usual_json(stage.usual),
            }
            for stage in pod.stages
        ],
        "released": pod.released,
    }


def usual_json(usual: Usual) -> dict[str, Any]:
    """As `UsualOut`."""
    return asdict(usual)
