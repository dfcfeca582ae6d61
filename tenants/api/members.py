"""Operations on members and invitations of a tenant."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.http import Http404
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.request_ids import request_id_of
from tenants.api.base import PAGED, TenantView
from tenants.api.people_shapes import (
    InvitationIn,
    InvitationOut,
    MemberOut,
    NewInvitationOut,
    RoleIn,
)
from tenants.members import change_role, invite, remove, revoke_invitation
from tenants.models import ApiToken
from tenants.policy import Act

ADMIN = ApiToken.Scope.ADMIN


class Members(TenantView):
    """The members of a tenant."""

    noun = "members"

    @extend_schema(operation_id="list_members", parameters=PAGED, responses=MemberOut(many=True))
    def get(self, request: Request, slug: str) -> Response:
        """Everybody with their role."""
        rows = self.access(slug).tenant.memberships.select_related("user")
        return self.page(rows, MemberOut)


class OneMember(TenantView):
    """One member."""

    noun = "members"

    @extend_schema(operation_id="get_member", responses=MemberOut)
    def get(self, request: Request, slug: str, username: str) -> Response:
        """Their role."""
        rows = self.access(slug).tenant.memberships.select_related("user")
        found = rows.filter(user__username=username).first()
        if found is None:
            raise Http404
        return Response(MemberOut(found).data)

    @extend_schema(operation_id="change_member", request=RoleIn, responses=MemberOut)
    def patch(self, request: Request, slug: str, username: str) -> Response:
        """Gives them another role; the last owner stays owner (LAST_OWNER)."""
        access = self.access(slug, scope=ADMIN)
        body = RoleIn(data=request.data)
        body.is_valid(raise_exception=True)
        membership = change_role(
            access=access,
            username=username,
            role=body.validated_data["role"],
            now=timezone.now(),
            request_id=request_id_of(request),
        )
        return Response(MemberOut(membership).data)

    @extend_schema(operation_id="remove_member", responses={204: None})
    def delete(self, request: Request, slug: str, username: str) -> Response:
        """Removes them, or oneself; the last owner stays (LAST_OWNER)."""
        remove(
            access=self.access(slug, scope=ADMIN),
            username=username,
            now=timezone.now(),
            request_id=request_id_of(request),
        )
        return Response(status=204)


class Invitations(TenantView):
    """Open invitations of a tenant, for its owners."""

    noun = "members"
    shows_secret = True

    @extend_schema(
        operation_id="list_invitations", parameters=PAGED, responses=InvitationOut(many=True)
    )
    def get(self, request: Request, slug: str) -> Response:
        """Those that can still be used."""
        access = self.access(slug, scope=ADMIN)
        access.require(Act.MANAGE_MEMBERS)
        rows = access.tenant.invitations.filter(
            accepted_at=None, revoked_at=None, expires_at__gt=timezone.now()
        ).select_related("made_by")
        return self.page(rows, InvitationOut)

    @extend_schema(
        operation_id="invite",
        request=InvitationIn,
        responses={201: NewInvitationOut},
    )
    def post(self, request: Request, slug: str) -> Response:
        """Makes an invitation; its link is in this answer only, and never kept.

        A key that comes again is answered with 409 SECRET_SHOWN_ONCE.
        """
        access = self.access(slug, scope=ADMIN)
        body = InvitationIn(data=request.data)
        body.is_valid(raise_exception=True)
        made = invite(
            access=access,
            role=body.validated_data["role"],
            note=body.validated_data["note"],
            lasts=timedelta(days=body.validated_data["days"]),
            now=timezone.now(),
            request_id=request_id_of(request),
        )
        link = f"{settings.PUBLIC_URL}{reverse('join')}#{made.text}"
        return Response({**InvitationOut(made.row).data, "link": link}, status=201)


class OneInvitation(TenantView):
    """One open invitation."""

    noun = "members"

    @extend_schema(operation_id="revoke_invitation", responses={204: None})
    def delete(self, request: Request, slug: str, prefix: str) -> Response:
        """Takes it back; doing it twice is fine."""
        revoke_invitation(
            access=self.access(slug, scope=ADMIN),
            prefix=prefix,
            now=timezone.now(),
            request_id=request_id_of(request),
        )
        return Response(status=204)
