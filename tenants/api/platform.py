"""Operations on platform roles, and on what groups give."""

from __future__ import annotations

from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from portal.request_ids import request_id_of
from tenants.api.base import PAGED, PlatformView
from tenants.api.people_shapes import GroupRoleIn, GroupRoleOut, PlatformRoleOut
from tenants.grouproles import map_group, unmap_group
from tenants.models import ApiToken, GroupRole, PlatformRole
from tenants.policy import PlatformAct
from tenants.roles import give_role, take_role

ADMIN = ApiToken.Scope.ADMIN


class Roles(PlatformView):
    """Who has which role on the platform."""

    @extend_schema(
        operation_id="list_platform_roles", parameters=PAGED, responses=PlatformRoleOut(many=True)
    )
    def get(self, request: Request) -> Response:
        """One entry per person and role."""
        self.platform().require(PlatformAct.SEE)
        return self.page(PlatformRole.objects.select_related("user"), PlatformRoleOut)


class OneRole(PlatformView):
    """One person's role."""

    @extend_schema(operation_id="give_platform_role", request=None, responses={204: None})
    def put(self, request: Request, username: str, role: str) -> Response:
        """Gives it; twice is fine."""
        give_role(
            access=self.platform(scope=ADMIN),
            username=username,
            role=role,
            now=timezone.now(),
            request_id=request_id_of(request),
        )
        return Response(status=204)

    @extend_schema(operation_id="take_platform_role", responses={204: None})
    def delete(self, request: Request, username: str, role: str) -> Response:
        """Takes it; the last admin stays (LAST_ADMIN)."""
        take_role(
            access=self.platform(scope=ADMIN),
            username=username,
            role=role,
            now=timezone.now(),
            request_id=request_id_of(request),
        )
        return Response(status=204)


class Groups(PlatformView):
    """What groups of the sign-in provider give."""

    @extend_schema(operation_id="list_groups", parameters=PAGED, responses=GroupRoleOut(many=True))
    def get(self, request: Request) -> Response:
        """One entry per group, place and role."""
        self.platform().require(PlatformAct.SEE)
        return self.page(GroupRole.objects.select_related("tenant"), GroupRoleOut)

    @extend_schema(operation_id="map_group", request=GroupRoleIn, responses={201: GroupRoleOut})
    def post(self, request: Request) -> Response:
        """Lets a group give a role, from each person's next sign-in on; twice is fine."""
        access = self.platform(scope=ADMIN)
        body = GroupRoleIn(data=request.data)
        body.is_valid(raise_exception=True)
        row = map_group(
            access=access,
            group=body.validated_data["group"],
            slug=body.validated_data["tenant"],
            role=body.validated_data["role"],
            now=timezone.now(),
            request_id=request_id_of(request),
        )
        return Response(GroupRoleOut(row).data, status=201)


class OneGroup(PlatformView):
    """One entry."""

    @extend_schema(operation_id="unmap_group", responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """The group gives that role no more, from each person's next sign-in on."""
        unmap_group(
            access=self.platform(scope=ADMIN),
            pk=pk,
            now=timezone.now(),
            request_id=request_id_of(request),
        )
        return Response(status=204)
