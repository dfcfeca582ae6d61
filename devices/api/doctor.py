"""The doctor's last report, and asking it to look again."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from devices.doctor.findings import Area, Severity
from devices.doctor.runs import Last, ask, last
from portal.request_ids import request_id_of
from tenants.api.base import PlatformView
from tenants.models import ApiToken
from tenants.policy import PlatformAct


class FindingOut(serializers.Serializer):
    """One thing that is not as it should be, and what to do about it."""

    code = serializers.CharField()
    severity = serializers.ChoiceField(choices=[one.value for one in Severity])
    subject = serializers.CharField()
    sentence = serializers.CharField()
    remedy = serializers.CharField()


class SectionOut(serializers.Serializer):
    """One area: what was seen there, and what is wrong with it."""

    area = serializers.ChoiceField(choices=[one.value for one in Area])
    seen = serializers.CharField()
    findings = FindingOut(many=True)


class DoctorOut(serializers.Serializer):
    """The last look. `exit_code` is the command's: 0 well, 1 warnings, 2 errors; null before the
    first look. `waiting_since` is set while somebody waits for a newer one.
    """

    looked_at = serializers.DateTimeField(allow_null=True)
    waiting_since = serializers.DateTimeField(allow_null=True)
    exit_code = serializers.IntegerField(allow_null=True)
    sections = SectionOut(many=True)


class Doctor(PlatformView):
    """The doctor."""

    noun = "doctor"

    @extend_schema(operation_id="get_doctor", responses=DoctorOut)
    def get(self, request: Request) -> Response:
        """Its last report."""
        self.platform().require(PlatformAct.SEE)
        return Response(doctor_json(last(timezone.now())))

    @extend_schema(operation_id="ask_doctor", request=None, responses={202: DoctorOut})
    def post(self, request: Request) -> Response:
        """Asks a worker to look; asking again before it did is the same look."""
        access = self.platform(scope=ApiToken.Scope.OPERATE)
        now = timezone.now()
        ask(access=access, request_id=request_id_of(request._request), now=now)
        return Response(doctor_json(last(now)), status=202)


def doctor_json(found: Last) -> dict[str, Any]:
    report = found.report
    return {
        "looked_at": found.looked_at,
        "waiting_since": found.waiting_since,
        "exit_code": report.exit_code if report else None,
        "sections": report.as_json() if report else [],
    }
