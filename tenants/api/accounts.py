"""Operations on people's accounts, for admins of the platform."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.http import Http404
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from portal.api.bodies import Body
from portal.request_ids import request_id_of
from tenants.api.base import PAGED, PlatformView
from tenants.localaccounts import (
    NewLink,
    accounts,
    close_account,
    make_link,
    make_person,
    open_account,
    reset_second_factor,
)
from tenants.models import ApiToken, User
from tenants.policy import PlatformAct

ADMIN = ApiToken.Scope.ADMIN


class PersonOut(serializers.ModelSerializer[User]):
    """An account; `by_company` ones have their password at the company's sign-in."""

    name = serializers.CharField(source="words")
    mail = serializers.CharField(source="email")
    active = serializers.BooleanField(source="is_active")
    by_company = serializers.BooleanField()
    second_factor = serializers.BooleanField()

    class Meta:
        model = User
        fields = [
            "username", "name", "person", "mail", "active", "by_company", "second_factor",
            "last_login",
        ]  # fmt: skip
        read_only_fields = fields


class PersonIn(Body):
    """Who gets an account."""

    username = serializers.CharField()
    name = serializers.CharField(required=False, default="", allow_blank=True)
    mail = serializers.CharField(required=False, default="", allow_blank=True)


class ActiveIn(Body):
    """Whether somebody may sign in."""

    active = serializers.BooleanField()


class LinkOut(serializers.Serializer):
    """A link to a password; it is in this answer only."""

    username = serializers.CharField()
    link = serializers.CharField()
    expires_at = serializers.DateTimeField()


class People(PlatformView):
    """Everybody who has an account."""

    shows_secret = True

    @extend_schema(operation_id="list_people", parameters=PAGED, responses=PersonOut(many=True))
    def get(self, request: Request) -> Response:
        """One entry per account."""
        self.platform().require(PlatformAct.SEE)
        return self.page(accounts(timezone.now()), PersonOut)

    @extend_schema(operation_id="make_person", request=PersonIn, responses={201: LinkOut})
    def post(self, request: Request) -> Response:
        """Makes a local account and the link by which its person chooses a password.

        A key that comes again is answered with 409 SECRET_SHOWN_ONCE.
        """
        access = self.platform(scope=ADMIN)
        body = PersonIn(data=request.data)
        body.is_valid(raise_exception=True)
        made = make_person(
            access=access,
            username=body.validated_data["username"],
            display_name=body.validated_data["name"],
            email=body.validated_data["mail"],
            now=timezone.now(),
            request_id=request_id_of(request),
        )
        return Response(_link(made), status=201)


class OnePerson(PlatformView):
    """One account."""

    @extend_schema(operation_id="get_person", responses=PersonOut)
    def get(self, request: Request, username: str) -> Response:
        """Whether they may sign in, and how."""
        self.platform().require(PlatformAct.SEE)
        return Response(PersonOut(_find(username)).data)

    @extend_schema(operation_id="change_person", request=ActiveIn, responses=PersonOut)
    def patch(self, request: Request, username: str) -> Response:
        """Closes the account, or opens it again; the last admin stays (LAST_ADMIN)."""
        access = self.platform(scope=ADMIN)
        body = ActiveIn(data=request.data)
        body.is_valid(raise_exception=True)
        act = open_account if body.validated_data["active"] else close_account
        act(
            access=access,
            username=username,
            now=timezone.now(),
            request_id=request_id_of(request),
        )
        return Response(PersonOut(_find(username)).data)


class PersonLink(PlatformView):
    """The link to a new password."""

    shows_secret = True

    @extend_schema(operation_id="make_password_link", request=None, responses={201: LinkOut})
    def post(self, request: Request, username: str) -> Response:
        """Makes one, and ends those made before."""
        made = make_link(
            access=self.platform(scope=ADMIN),
            username=username,
            now=timezone.now(),
            request_id=request_id_of(request),
        )
        return Response(_link(made), status=201)


class PersonSecondFactor(PlatformView):
    """The second factor of somebody who lost it."""

    @extend_schema(operation_id="remove_second_factor", responses={204: None})
    def delete(self, request: Request, username: str) -> Response:
        """Removes it and signs them out; twice is fine."""
        reset_second_factor(
            access=self.platform(scope=ADMIN),
            username=username,
            now=timezone.now(),
            request_id=request_id_of(request),
        )
        return Response(status=204)


def _find(username: str) -> User:
    found = accounts(timezone.now()).filter(username=username).first()
    if found is None:
        raise Http404
    return found


def _link(made: NewLink) -> dict[str, Any]:
    return {
        "username": made.row.user.username,
        "link": f"{settings.PUBLIC_URL}{reverse('account-link')}#{made.text}",
        "expires_at": made.row.expires_at,
    }
