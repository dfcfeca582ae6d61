"""Operations on the rollout of the accounting, the promotion report, and drivers' rights."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.http import Http404
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.dra.ledgerreport import Met, report
from devices.dra.ledgerrollout import Phase
from devices.dra.snapshot import Snapshot
from devices.forecasts.warm import warm
from devices.ledger.closures import set_policy
from devices.ledger.objectives import LONGEST, set_objectives
from devices.ledger.promotion import record_of
from devices.ledger.rollouts import LONGEST_WHY, act, start
from devices.models import DriverRights, LedgerPolicy, LedgerRollout, LedgerRolloutMove
from portal.api.bodies import Body
from portal.request_ids import request_id_of
from tenants.api.base import PAGED, PlatformView
from tenants.models import ApiToken
from tenants.policy import PlatformAct

OPERATE: Final = ApiToken.Scope.OPERATE
#: Which phase each act leads to, by its word in the address.
ACTS: Final = {"stop": Phase.STOPPED, "resume": Phase.CANARY, "end": Phase.ENDED}


class RolloutMoveOut(serializers.ModelSerializer[LedgerRolloutMove]):
    """One move; `person` is null where Berth made it."""

    class Meta:
        model = LedgerRolloutMove
        fields: ClassVar = ["frm", "to", "at", "why", "person"]
        read_only_fields = fields


class RolloutOut(serializers.ModelSerializer[LedgerRollout]):
    """A rollout; `waits` is what people have to do, `digest` that of the log up to the stop."""

    id = serializers.CharField(source="public_id")
    moves = RolloutMoveOut(many=True)

    class Meta:
        model = LedgerRollout
        fields: ClassVar = [
            "id", "phase", "since", "why", "waits", "canaries", "soak", "wide", "started_at",
            "stopped_at", "digest", "lines", "moves",
        ]  # fmt: skip
        read_only_fields = fields


class RolloutIn(Body):
    """Which nodes come first, and the soak as ISO 8601 or seconds."""

    canaries = serializers.ListField(
        child=serializers.CharField(max_length=253), min_length=1, max_length=100
    )
    soak = serializers.DurationField()


class RolloutActIn(Body):
    """Why, for the audit."""

    why = serializers.CharField(max_length=LONGEST_WHY)


class CriterionOut(serializers.Serializer):
    """One criterion, and the evidence behind how it stands."""

    name = serializers.CharField()
    met = serializers.ChoiceField(choices=[one.value for one in Met])
    evidence = serializers.CharField()


class PromotionOut(serializers.Serializer):
    """The report."""

    promote = serializers.BooleanField(help_text="Every criterion is met.")
    criteria = CriterionOut(many=True)


class ObjectivesIn(Body):
    """Per cent of what a node offers that may be charged, and minutes a Pod may wait for it."""

    most_charged = serializers.IntegerField(min_value=1, max_value=100)
    most_pending = serializers.IntegerField(min_value=1, max_value=LONGEST)


class LedgerPolicyIn(Body):
    """Whether every Pod waits while a ledger cannot be relied on."""

    closes = serializers.BooleanField()


class LedgerClosedOut(serializers.Serializer):
    """A slice pool that takes nothing new, because of which node, and since when."""

    driver = serializers.CharField()
    pool = serializers.CharField()
    node = serializers.CharField()
    code = serializers.CharField()
    since = serializers.DateTimeField()


class LedgerPolicyOut(serializers.ModelSerializer[LedgerPolicy]):
    """The policy and what it closes now; `answer` is what stood in its way."""

    closed = LedgerClosedOut(many=True)

    class Meta:
        model = LedgerPolicy
        fields: ClassVar = ["closes", "said_at", "closed", "answer"]
        read_only_fields = fields


class DriverRightsOut(serializers.ModelSerializer[DriverRights]):
    """What `manage.py checkrights` found when it was last run."""

    class Meta:
        model = DriverRights
        fields: ClassVar = ["at", "drivers", "findings"]
        read_only_fields = fields


class Rollouts(PlatformView):
    """Rollouts of the accounting; at most one is open."""

    noun = "ledger"

    @extend_schema(
        operation_id="list_ledger_rollouts", parameters=PAGED, responses=RolloutOut(many=True)
    )
    def get(self, request: Request) -> Response:
        """Newest first."""
        self.platform().require(PlatformAct.SEE)
        return self.page(LedgerRollout.objects.prefetch_related("moves"), RolloutOut)

    @extend_schema(
        operation_id="start_ledger_rollout", request=RolloutIn, responses={201: RolloutOut}
    )
    def post(self, request: Request) -> Response:
        """Changes nothing in the cluster: it says which nodes come first, and watches them."""
        access = self.platform(scope=OPERATE)
        access.require(PlatformAct.FREEZE)
        body = RolloutIn(data=request.data)
        body.is_valid(raise_exception=True)
        row = start(
            access=access, **body.validated_data, request_id=request_id_of(request),
            now=timezone.now(),
        )  # fmt: skip
        return Response(RolloutOut(row).data, status=201)


class OneRollout(PlatformView):
    """One rollout."""

    noun = "ledger"

    @extend_schema(operation_id="get_ledger_rollout", responses=RolloutOut)
    def get(self, request: Request, public_id: str) -> Response:
        """Where it stands, what it waits for, and its moves."""
        self.platform().require(PlatformAct.SEE)
        return Response(RolloutOut(get_object_or_404(LedgerRollout, public_id=public_id)).data)


class ActOnRollout(PlatformView):
    """Stopping, resuming or ending a rollout."""

    noun = "ledger"

    @extend_schema(
        operation_id="act_on_ledger_rollout",
        request=RolloutActIn,
        responses=RolloutOut,
        parameters=[OpenApiParameter("what", str, OpenApiParameter.PATH, enum=list(ACTS))],
    )
    def post(self, request: Request, public_id: str, what: str) -> Response:
        """The same twice is once. Resuming needs newer mappings than it was stopped at."""
        access = self.platform(scope=OPERATE)
        access.require(PlatformAct.FREEZE)
        row = get_object_or_404(LedgerRollout, public_id=public_id)
        if what not in ACTS:
            raise Http404
        body = RolloutActIn(data=request.data)
        body.is_valid(raise_exception=True)
        done = act(
            row, ACTS[what], access=access, why=body.validated_data["why"],
            request_id=request_id_of(request), now=timezone.now(),
        )  # fmt: skip
        return Response(RolloutOut(done).data)


class Promotion(PlatformView):
    """Whether the accounting may be promoted."""

    noun = "ledger"

    @extend_schema(operation_id="get_ledger_promotion", responses=PromotionOut)
    def get(self, request: Request) -> Response:
        """Each criterion: met, not met, or unknown, with the evidence behind it."""
        self.platform().require(PlatformAct.SEE)
        seen, now = warm(), timezone.now()
        snapshot = seen.now if seen is not None else Snapshot()
        criteria = report(snapshot, record_of(snapshot, now), now)
        told: dict[str, Any] = {
            "promote": all(one.met is Met.MET for one in criteria),
            "criteria": criteria,
        }
        return Response(PromotionOut(told).data)

    @extend_schema(
        operation_id="set_ledger_objectives", request=ObjectivesIn, responses={204: None}
    )
    def put(self, request: Request) -> Response:
        """Sets what capacity and pending Pods are held to."""
        access = self.platform(scope=OPERATE)
        access.require(PlatformAct.ASSUME)
        body = ObjectivesIn(data=request.data)
        body.is_valid(raise_exception=True)
        set_objectives(
            access=access, **body.validated_data, request_id=request_id_of(request),
            now=timezone.now(),
        )  # fmt: skip
        return Response(status=204)


class Policy(PlatformView):
    """Whether Pods that nobody asked Berth for wait for a safe ledger as well."""

    noun = "ledger"

    @extend_schema(operation_id="get_ledger_policy", responses=LedgerPolicyOut)
    def get(self, request: Request) -> Response:
        """Off until an admin switches it on."""
        self.platform().require(PlatformAct.SEE)
        return Response(LedgerPolicyOut(LedgerPolicy.current()).data)

    @extend_schema(
        operation_id="set_ledger_policy", request=LedgerPolicyIn, responses=LedgerPolicyOut
    )
    def put(self, request: Request) -> Response:
        """While it is on, slice pools of nodes that are not safe get a DeviceTaintRule of effect
        NoSchedule; what runs keeps its devices.
        """
        access = self.platform(scope=OPERATE)
        access.require(PlatformAct.ASSUME)
        body = LedgerPolicyIn(data=request.data)
        body.is_valid(raise_exception=True)
        row = set_policy(
            access=access, **body.validated_data, request_id=request_id_of(request),
            now=timezone.now(),
        )  # fmt: skip
        return Response(LedgerPolicyOut(row).data)


class Rights(PlatformView):
    """What drivers may do."""

    noun = "ledger"

    @extend_schema(operation_id="get_driver_rights", responses=DriverRightsOut)
    def get(self, request: Request) -> Response:
        """The findings of the last look; 404 while nobody has looked."""
        self.platform().require(PlatformAct.SEE)
        return Response(DriverRightsOut(get_object_or_404(DriverRights)).data)
