"""Operations on approvals: list, read, decide, and lend the right to decide."""

from __future__ import annotations

from django.db.models import QuerySet
from django.http import Http404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.idempotency import once
from portal.approvals.decisions import decide
from portal.approvals.delegations import delegate, take_back
from portal.approvals.lists import visible_to, waiting_for
from portal.approvals.models import Approval, Delegation
from portal.approvals.rules import Decider, State, Verdict
from portal.errors import Invalid, NotPermitted
from portal.request_ids import request_id_of
from tenants.access import decider_of
from tenants.api.base import KEY, CallerView
from tenants.api.people_shapes import ApprovalOut, DecisionIn, DelegationIn, DelegationOut
from tenants.models import ApiToken, User


class ApprovalView(CallerView):
    """What both lists and single approvals need: who looks, and what they may see."""

    noun = "approvals"

    def decider(self) -> Decider:
        """The person; a token needs the scope read."""
        self.demand(ApiToken.Scope.READ)
        user = self.request.user
        assert isinstance(user, User)
        return decider_of(user, timezone.now())

    def rows(self, decider: Decider, *, waiting: bool = False) -> QuerySet[Approval]:
        """Those that the caller may see; through a token of a tenant only that tenant's."""
        rows = waiting_for(decider) if waiting else visible_to(decider)
        token = self.token()
        if token is not None and token.tenant is not None:
            rows = rows.filter(tenant=token.tenant.slug)
        return rows.prefetch_related("decisions")

    def find(self, decider: Decider, number: str) -> Approval:
        digits = number.removeprefix("A-")
        rows = self.rows(decider)
        found = rows.filter(pk=int(digits)).first() if digits.isdecimal() else None
        if found is None:
            raise Http404
        return found

    def in_person(self) -> None:
        """Deciding is for people: 403 for every token."""
        if self.token() is not None:
            raise NotPermitted("No token may decide; sign in and do it yourself.")


class Approvals(ApprovalView):
    """Approvals that the caller may see."""

    @extend_schema(
        operation_id="list_approvals",
        parameters=[
            OpenApiParameter("state", str, enum=[str(state) for state in State]),
            OpenApiParameter("waiting", bool, description="Only those that you could decide now."),
            OpenApiParameter("cursor", str),
            OpenApiParameter("limit", int),
        ],
        responses=ApprovalOut(many=True),
    )
    def get(self, request: Request) -> Response:
        """Newest first, page by page."""
        waiting = request.query_params.get("waiting", "").lower() in {"1", "true", "yes"}
        rows = self.rows(self.decider(), waiting=waiting)
        rows = self.in_state(rows, State)
        return self.page(rows, ApprovalOut)


class OneApproval(ApprovalView):
    """One approval."""

    @extend_schema(operation_id="get_approval", responses=ApprovalOut)
    def get(self, request: Request, number: str) -> Response:
        """What is asked for, what it would do, who said what."""
        return Response(ApprovalOut(self.find(self.decider(), number)).data)


class Decide(ApprovalView):
    """Saying yes or no."""

    @extend_schema(
        operation_id="decide_approval",
        request=DecisionIn,
        responses={200: ApprovalOut},
        parameters=[KEY],
    )
    def post(self, request: Request, number: str) -> Response:
        """Each person once, never the author; a no needs a comment."""
        self.in_person()
        decider = self.decider()
        row = self.find(decider, number)
        body = DecisionIn(data=request.data)
        body.is_valid(raise_exception=True)
        now = timezone.now()

        def act() -> Response:
            decide(
                approval_id=row.pk,
                decider=decider,
                verdict=Verdict(body.validated_data["verdict"]),
                comment=body.validated_data["comment"],
                request_id=request_id_of(request),
                now=now,
            )
            return Response(ApprovalOut(self.find(decider, number)).data)

        return once(request, caller=self.caller(), now=now, act=act)


class Delegations(ApprovalView):
    """Rights to decide that one lends or borrows."""

    @extend_schema(operation_id="list_delegations", responses=DelegationOut(many=True))
    def get(self, request: Request) -> Response:
        """One's own, lent and borrowed, newest first; at most 100."""
        person = self.decider().person
        rows = Delegation.objects.filter(lender=person) | Delegation.objects.filter(borrower=person)
        return Response(DelegationOut(rows.order_by("-starts_at")[:100], many=True).data)

    @extend_schema(
        operation_id="lend_right",
        request=DelegationIn,
        responses={201: DelegationOut},
        parameters=[KEY],
    )
    def post(self, request: Request) -> Response:
        """Lends one's right to decide to somebody, for a while."""
        self.in_person()
        body = DelegationIn(data=request.data)
        body.is_valid(raise_exception=True)
        now = timezone.now()
        borrower = User.objects.filter(username=body.validated_data["borrower"]).first()
        if borrower is None:
            raise Invalid("Nothing was lent.", fields={"borrower": "Nobody is called that."})

        def act() -> Response:
            lent = delegate(
                lender=self.decider().person,
                borrower=borrower.person,
                starts_at=body.validated_data.get("starts_at") or now,
                ends_at=body.validated_data["ends_at"],
                request_id=request_id_of(request),
                now=now,
            )
            return Response(DelegationOut(lent).data, status=201)

        return once(request, caller=self.caller(), now=now, act=act)


class OneDelegation(ApprovalView):
    """One right that is lent."""

    @extend_schema(operation_id="take_right_back", responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Ends it at once; others' are left alone, and doing it twice is fine."""
        self.in_person()
        take_back(
            lender=self.decider().person,
            delegation_id=pk,
            request_id=request_id_of(request),
            now=timezone.now(),
        )
        return Response(status=204)
