"""Operations on the node ledger: nodes, lines, differences, the file, and replaying one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, ClassVar, Final

from django.http import Http404, StreamingHttpResponse
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from devices.dra.ledgerfile import replay
from devices.fleet.ownershipbook import moment_of
from devices.ledger.exports import export
from devices.ledger.figures import by_importance, exact, figures, kept, zones
from devices.ledger.lists import FILTERS, WHICH, chosen_lines
from devices.ledger.ours import lines_of_claim
from devices.models import Claim, LedgerDifference, LedgerLine, LedgerNode
from devices.models.ledger import STATES
from portal.errors import Invalid
from portal.keyset import Order
from tenants.api.base import PAGED, PlatformView, TenantView
from tenants.policy import Act, PlatformAct

AT = OpenApiParameter("at", str, description="A moment (RFC 3339); now if left out.")
#: A file that somebody sends to be replayed may be so long, in bytes.
LONGEST: Final = 64 * 2**20


class LedgerLineOut(serializers.ModelSerializer[LedgerLine]):
    """One line; `amount` is a quantity, null where nobody knows it."""

    amount = serializers.SerializerMethodField()
    ends = serializers.IntegerField(source="ends_id", allow_null=True)
    version = serializers.CharField()

    class Meta:
        model = LedgerLine
        fields: ClassVar = [
            "id", "look", "at", "act", "ends", "key", "node", "rule", "resource", "amount",
            "payer", "pod", "pod_uid", "claim", "claim_uid", "driver", "pool", "device", "share",
            "container", "numa", "contained", "epoch", "generation", "version", "source",
            "writer", "code",
        ]  # fmt: skip
        read_only_fields = fields

    def get_amount(self, line: LedgerLine) -> str | None:
        return None if line.nanos is None else exact(int(line.nanos), line.resource)


class FigureOut(serializers.Serializer[Any]):
    """One resource of a node: what it offers, what is charged, what is left."""

    resource = serializers.CharField()
    offered = serializers.CharField(allow_null=True)
    requests = serializers.CharField(allow_null=True)
    mapping = serializers.CharField(allow_null=True)
    overhead = serializers.CharField(allow_null=True)
    charged = serializers.CharField(allow_null=True)
    left = serializers.CharField(allow_null=True)


class LedgerNodeOut(serializers.ModelSerializer[LedgerNode]):
    """One node; amounts are quantities, null where a line of them is unknown."""

    resources = serializers.SerializerMethodField()

    class Meta:
        model = LedgerNode
        fields: ClassVar = ["node", "state", "code", "reasons", "since", "resources"]
        read_only_fields = fields

    @extend_schema_field(FigureOut(many=True))
    def get_resources(self, row: LedgerNode) -> list[dict[str, Any]]:
        return [figure_out(one) for one in by_importance(kept(row.node, row.figures))]


class LedgerDifferenceOut(serializers.ModelSerializer[LedgerDifference]):
    """An amount on which the three do not agree; empty sides cannot be told."""

    class Meta:
        model = LedgerDifference
        fields: ClassVar = [
            "id", "node", "resource", "pod", "claim", "verdict", "code", "log", "objects_say",
            "status", "line_keys", "computed", "since", "until",
        ]  # fmt: skip
        read_only_fields = fields


class ReplayedOut(serializers.Serializer[Any]):
    """What a file comes to; `fault` names its first line that is not what was exported."""

    whole = serializers.BooleanField()
    fault = serializers.CharField(allow_blank=True)
    lines = serializers.IntegerField()
    standing = serializers.IntegerField()
    doubled = serializers.IntegerField()
    older = serializers.IntegerField()
    repeated = serializers.IntegerField()
    charged = serializers.ListField(child=serializers.DictField())


class LinesParser(BaseParser):
    """JSON lines as they come."""

    media_type = "application/x-ndjson"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        return stream


def figure_out(one: Any) -> dict[str, Any]:
    """A figure of one resource as the API has it."""
    parts = ("offered", "requests", "mapping", "overhead", "charged", "left")
    return {"resource": one.resource} | {
        part: None if (nanos := getattr(one, part)) is None else exact(nanos, one.resource)
        for part in parts
    }


def asked_moment(request: Request, name: str = "at") -> Any:
    """A moment of the query, or `Invalid` by its name."""
    at, wrong = moment_of(request.query_params.get(name, ""))
    if wrong:
        raise Invalid("No such moment.", fields={name: wrong})
    return at


class LedgerNodeThenOut(serializers.Serializer[Any]):
    """One node at a moment; whether it was safe then is not kept."""

    node = serializers.CharField()
    resources = serializers.ListField(child=serializers.DictField())

    def to_representation(self, instance: Any) -> dict[str, Any]:
        blank: dict[str, Any] = {"state": None, "code": "", "reasons": [], "since": None}
        return {"node": instance["node"], **blank, "resources": instance["resources"]}


def nodes_then(lines: Sequence[LedgerLine], at: datetime) -> list[dict[str, Any]]:
    """What the nodes of these lines had at that moment; one query for all of them."""
    found: dict[str, list[dict[str, Any]]] = {line.node: [] for line in lines}
    for one in by_importance(figures(LedgerLine.objects.charges(at).filter(node__in=found))):
        found[one.node].append(figure_out(one))
    return [{"node": node, "resources": resources} for node, resources in found.items()]


class LedgerNodes(PlatformView):
    """Every node's ledger, as the last look left it or as of a moment."""

    noun = "ledger"

    @extend_schema(
        operation_id="list_ledger_nodes",
        parameters=[
            OpenApiParameter("state", str, enum=[value for value, _ in STATES]),
            AT,
            *PAGED,
        ],
        responses=LedgerNodeOut(many=True),
    )
    def get(self, request: Request) -> Response:
        """By name; with `at` the states are null, and `state` cannot be asked for."""
        self.platform().require(PlatformAct.SEE)
        at = asked_moment(request)
        if at is not None:
            if "state" in request.query_params:
                raise Invalid("States of the past are not kept.", fields={"state": "Leave it out."})
            offers = LedgerLine.objects.charges(at).filter(rule="allocatable", resource="cpu")
            return self.sorted_page(
                offers, Order("node"), LedgerNodeThenOut, read=lambda rows: nodes_then(rows, at)
            )
        rows = self.in_state(LedgerNode.objects.order_by("node"), [value for value, _ in STATES])
        return self.page(rows, LedgerNodeOut)


class ClaimLedger(TenantView):
    """What a claim and the Pods that use it are charged on their node."""

    noun = "claim"

    @extend_schema(
        operation_id="read_claim_ledger",
        parameters=[AT, OpenApiParameter("all", bool, description="With what ended."), *PAGED],
        responses=LedgerLineOut(many=True),
    )
    def get(self, request: Request, slug: str, public_id: str) -> Response:
        """Its own lines, newest first: what stands, now or at a moment."""
        access = self.access(slug)
        access.require(Act.VIEW)
        row = Claim.objects.of(access.tenant).whole().filter(public_id=public_id).first()
        if row is None:
            raise Http404
        every = request.query_params.get("all", "").lower() in {"1", "true", "yes"}
        rows = lines_of_claim(row, asked_moment(request), all_=every)
        return self.page(rows.order_by("-pk"), LedgerLineOut)


class OneLedgerNode(PlatformView):
    """One node, now or as of a moment."""

    noun = "ledger"

    @extend_schema(operation_id="read_ledger_node", parameters=[AT], responses=dict)
    def get(self, request: Request, node: str) -> Response:
        """Its resources and its NUMA zones, from the log."""
        self.platform().require(PlatformAct.SEE)
        at = asked_moment(request)
        found = by_importance(figures(LedgerLine.objects.charges(at).filter(node=node)))
        row = LedgerNode.objects.filter(node=node).first()
        if not found and row is None:
            raise Http404
        return Response(
            {
                "node": node,
                "state": row.state if row and at is None else None,
                "reasons": row.reasons if row and at is None else [],
                "resources": [figure_out(one) for one in found],
                "zones": [
                    {
                        "numa": zone.numa,
                        "devices": list(zone.devices),
                        "charged": {
                            resource: None if nanos is None else exact(nanos, resource)
                            for resource, nanos in zone.amounts.items()
                        },
                    }
                    for zone in zones(node, at)
                ],
            }
        )


class LedgerLines(PlatformView):
    """Lines of the log."""

    noun = "ledger"

    @extend_schema(
        operation_id="list_ledger_lines",
        parameters=[
            AT,
            OpenApiParameter("which", str, enum=list(WHICH)),
            *(OpenApiParameter(name, str) for name in FILTERS),
            *PAGED,
        ],
        responses=LedgerLineOut(many=True),
    )
    def get(self, request: Request) -> Response:
        """Newest first; what stands, unless `which` says otherwise."""
        self.platform().require(PlatformAct.SEE)
        rows, _, _ = chosen_lines(request.query_params, asked_moment(request))
        return self.page(rows, LedgerLineOut)


class LedgerDifferences(PlatformView):
    """Where log, objects and Pod status do not agree."""

    noun = "ledger"

    @extend_schema(
        operation_id="list_ledger_differences",
        parameters=[
            OpenApiParameter("past", bool, description="Those that are over, too."),
            OpenApiParameter("node", str),
            *PAGED,
        ],
        responses=LedgerDifferenceOut(many=True),
    )
    def get(self, request: Request) -> Response:
        """Newest first."""
        self.platform().require(PlatformAct.SEE)
        rows = LedgerDifference.objects.all()
        if request.query_params.get("past", "").lower() not in {"1", "true", "yes"}:
            rows = rows.filter(until=None)
        if node := request.query_params.get("node", ""):
            rows = rows.filter(node=node)
        return self.page(rows, LedgerDifferenceOut)


class LedgerFile(PlatformView):
    """The log as JSON lines."""

    noun = "ledger"

    @extend_schema(
        operation_id="export_ledger",
        parameters=[OpenApiParameter("from", str), OpenApiParameter("to", str)],
        responses={(200, "application/x-ndjson"): str},
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """A header with the digest, then every line; `manage.py replayledger` reads it."""
        self.platform().require(PlatformAct.SEE)
        lines = export(asked_moment(request, "from"), asked_moment(request, "to"))
        return StreamingHttpResponse(lines, content_type="application/x-ndjson")


class ReplayLedger(PlatformView):
    """Folding a file that somebody sends."""

    noun = "ledger"
    parser_classes = [LinesParser]

    @extend_schema(
        operation_id="replay_ledger",
        request={"application/x-ndjson": str},
        responses=ReplayedOut,
    )
    def post(self, request: Request) -> Response:
        """For analysis: nothing of it is kept, and nothing here is changed by it."""
        self.platform().require(PlatformAct.SEE)
        body = request.data
        raw = body.read(LONGEST + 1) if hasattr(body, "read") else b""
        if len(raw) > LONGEST:
            raise Invalid(
                "The file is too long to be replayed here.",
                fields={"file": "Use manage.py replayledger, which reads files of any length."},
            )
        done = replay(raw.splitlines())
        return Response(
            {
                "whole": done.fault is None,
                "fault": str(done.fault or ""),
                "lines": done.lines,
                "standing": done.standing,
                "doubled": done.doubled,
                "older": done.older,
                "repeated": done.repeated,
                "charged": [
                    {
                        "node": node,
                        "resource": resource,
                        "amount": None if amount is None else exact(amount.nanos, resource),
                    }
                    for (node, resource), amount in done.charged().items()
                ],
            }
        )
