"""Operations of training platforms: tell what a run does, read what became of devices' time."""

from __future__ import annotations

from typing import Any

from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.api.stagehistory import ASKED
from devices.asks.signals import MOST, Told, tell
from devices.asks.stagehistory import question_from
from devices.asks.training import ClaimAccount, claim_account, useful_time
from devices.dra.training import Kind, Sums
from devices.models import Claim
from portal.api.bodies import Body
from portal.errors import Invalid
from tenants.api.base import KEY, PlatformView, TenantView
from tenants.models import ApiToken, User
from tenants.policy import Act, PlatformAct

SIGNAL = ApiToken.Scope.SIGNAL


class SignalIn(Body):
    """One thing about a run. The claim is named by `claim` (its id), or by `namespace` and `pod`;
    with `claim`, `pod` says which of its Pods it is about (none: all of them).

    `id` is yours: the same id is stored once. `seconds` belong to `useful`: useful ones since your
    last such report. `ok` belongs to `finished`. `at` is by your clock.
    """

    id = serializers.CharField(max_length=100)
    kind = serializers.ChoiceField(choices=[kind.value for kind in Kind])
    at = serializers.DateTimeField()
    claim = serializers.CharField(max_length=12, required=False, default="")
    namespace = serializers.CharField(max_length=63, required=False, default="")
    pod = serializers.CharField(max_length=253, required=False, default="")
    run = serializers.CharField(max_length=120, required=False, default="", allow_blank=True)
    seconds = serializers.FloatField(required=False, default=None, allow_null=True, min_value=0)
    ok = serializers.BooleanField(required=False, default=True)
    step = serializers.IntegerField(required=False, default=None, allow_null=True, min_value=0)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if not attrs["claim"] and not (attrs["namespace"] and attrs["pod"]):
            raise serializers.ValidationError(
                {"claim": "Name the claim by its id, or by namespace and Pod."}
            )
        if attrs["kind"] == Kind.USEFUL and attrs["seconds"] is None:
            raise serializers.ValidationError({"seconds": "How many seconds were useful."})
        if attrs["step"] is not None and attrs["step"] >= 2**63:
            raise serializers.ValidationError({"step": "Too large."})
        return attrs


class SignalsIn(Body):
    """Up to 500 at once, in any order."""

    signals = serializers.ListField(child=SignalIn(), min_length=1, max_length=MOST)


class SignalAnswerOut(serializers.Serializer):
    """`stored`, `known` (you sent it before), or `refused` with a code and why."""

    id = serializers.CharField()
    result = serializers.ChoiceField(choices=["stored", "known", "refused"])
    code = serializers.CharField()
    why = serializers.CharField()


class SignalsOut(serializers.Serializer):
    """What became of each, in the order in which they were sent."""

    results = SignalAnswerOut(many=True)


class SumsOut(serializers.Serializer):
    """Seconds. `share` is useful out of what is known (0 to 1), null where nothing is known;
    `lost_by` and `unknown_by` say why.
    """

    held = serializers.FloatField()
    useful = serializers.FloatField()
    lost = serializers.FloatField()
    unknown = serializers.FloatField()
    share = serializers.FloatField(allow_null=True)
    lost_by = serializers.DictField(child=serializers.FloatField())
    unknown_by = serializers.DictField(child=serializers.FloatField())

    def to_representation(self, instance: Sums) -> dict[str, Any]:
        said: dict[str, Any] = super().to_representation(instance)
        for name in ("lost_by", "unknown_by"):
            said[name] = {str(why): seconds for why, seconds in getattr(instance, name).items()}
        return said


class PodAccountOut(serializers.Serializer):
    """One Pod's account; `timed` is false where nobody knows when it got its devices."""

    pod = serializers.CharField()
    path = serializers.CharField()
    since = serializers.DateTimeField(source="hold.start", allow_null=True)
    until = serializers.DateTimeField(source="hold.end", allow_null=True)
    ended = serializers.CharField()
    timed = serializers.BooleanField()
    unhealthy_at = serializers.DateTimeField(allow_null=True)
    checkpoints = serializers.IntegerField(source="account.checkpoints")
    restores = serializers.IntegerField(source="account.restores")
    retries = serializers.IntegerField(source="account.retries")
    finished_ok = serializers.BooleanField(source="account.finished", allow_null=True)
    seconds = SumsOut(source="sums")


class TrainingOut(serializers.Serializer):
    """What became of the time of a claim's devices. `retries` were told, `job_retries` are Pods
    that failed and that their Job made anew; `overstated`: more useful seconds were told than there
    were.
    """

    devices = serializers.DictField(child=serializers.IntegerField())
    signals = serializers.IntegerField()
    retries = serializers.IntegerField()
    job_retries = serializers.IntegerField()
    overstated = serializers.BooleanField()
    seconds = SumsOut(source="sums")
    pods = serializers.SerializerMethodField()

    @extend_schema_field(PodAccountOut(many=True))
    def get_pods(self, found: ClaimAccount) -> Any:
        return PodAccountOut(found.pods[:MOST], many=True).data


class UsefulTimeOut(serializers.Serializer):
    """One class by one path, in device seconds. Of `told` of the `pods` a platform said anything;
    `untimed` Pods are in no sum.
    """

    device_class = serializers.CharField()
    path = serializers.CharField()
    pods = serializers.IntegerField()
    told = serializers.IntegerField()
    untimed = serializers.IntegerField()
    retries = serializers.IntegerField()
    job_retries = serializers.IntegerField()
    unhealthy = serializers.IntegerField()
    device_seconds = SumsOut(source="sums")


class TenantSignals(TenantView):
    """What a tenant's platform tells."""

    noun = "training"

    @extend_schema(
        operation_id="tell_training_signals",
        request=SignalsIn,
        responses=SignalsOut,
        parameters=[KEY],
    )
    def post(self, request: Request, slug: str) -> Response:
        """Stores what runs did. Sending all of them again is safe: each id counts once."""
        access = self.access(slug, scope=SIGNAL)
        access.require(Act.SIGNAL)
        return Response(_told(request, access.tenant))


class PlatformSignals(PlatformView):
    """What a platform that serves several tenants tells."""

    noun = "training"

    @extend_schema(
        operation_id="tell_platform_training_signals",
        request=SignalsIn,
        responses=SignalsOut,
        parameters=[KEY],
    )
    def post(self, request: Request) -> Response:
        """The same, of claims of any tenant."""
        self.platform(scope=SIGNAL).require(PlatformAct.SIGNAL)
        return Response(_told(request, None))


class ClaimTraining(TenantView):
    """What became of the time of one claim."""

    noun = "training"

    @extend_schema(operation_id="get_claim_training", responses=TrainingOut)
    def get(self, request: Request, slug: str, public_id: str) -> Response:
        """Seconds that were useful, lost or unknown, together and by Pod, newest first."""
        access = self.access(slug)
        row = Claim.objects.of(access.tenant).filter(public_id=public_id).first()
        if row is None:
            raise Http404
        return Response(TrainingOut(claim_account(row, timezone.now())).data)


class TenantUsefulTime(TenantView):
    """What became of a tenant's device time."""

    noun = "training"

    @extend_schema(
        operation_id="get_useful_time", parameters=ASKED, responses=UsefulTimeOut(many=True)
    )
    def get(self, request: Request, slug: str) -> Response:
        """Useful, lost and unknown device seconds of the tenant by class and path."""
        access = self.access(slug)
        access.require(Act.VIEW)
        return Response(_useful(request, access.tenant.slug))


class PlatformUsefulTime(PlatformView):
    """What became of all device time."""

    noun = "training"

    @extend_schema(
        operation_id="get_platform_useful_time",
        parameters=[*ASKED, OpenApiParameter("tenant", str)],
        responses=UsefulTimeOut(many=True),
    )
    def get(self, request: Request) -> Response:
        """The same of all tenants, or of one."""
        self.platform().require(PlatformAct.SEE)
        return Response(_useful(request, ""))


def _told(request: Request, tenant: Any) -> Any:
    asked = SignalsIn(data=request.data)
    asked.is_valid(raise_exception=True)
    told = [Told(**{**one, "kind": Kind(one["kind"])}) for one in asked.validated_data["signals"]]
    if len({one.id for one in told}) < len(told):
        raise Invalid("Two signals have one id.", fields={"signals": "Give each its own id."})
    assert isinstance(request.user, User)
    answers = tell(told, tenant=tenant, person=request.user.person, now=timezone.now())
    return SignalsOut({"results": answers}).data


def _useful(request: Request, tenant: str) -> Any:
    now = timezone.now()
    asked = question_from(request.query_params.dict(), now, tenant=tenant)
    found = useful_time(
        since=asked.since,
        until=min(asked.until, now),
        now=now,
        device_class=asked.device_class,
        path=asked.path,
        pool=asked.pool,
        tenant=asked.tenant,
    )
    return UsefulTimeOut(found, many=True).data
