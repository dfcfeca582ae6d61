"""Who calls in the matrix: a browser that is signed in, a program with a token."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from http.cookies import SimpleCookie

from django.test import Client
from django.utils import timezone

from tenants.access import Access
from tenants.models import PlatformRole, User
from tenants.tokens import make_token
from tests.factories import make_person
from tests.matrix.things import REQUEST


def on_platform(role: str) -> User:
    user = make_person(role)
    PlatformRole.objects.create(user=user, role=role)
    return user


def browser(user: User) -> Callable[[], Client]:
    first = Client()
    first.force_login(user)

    def signed_in() -> Client:
        client = Client()
        client.cookies = SimpleCookie(first.cookies.output(header="", sep=";"))
        return client

    return signed_in


def program(access: Access, *scopes: str, late: bool = False) -> Callable[[], Client]:
    made = timezone.now() - timedelta(hours=2 if late else 0)
    token = make_token(
        access=access,
        name="program",
        scopes=scopes,
        expires_at=made + timedelta(hours=1),
        now=made,
        request_id=REQUEST,
    )
    return lambda: Client(headers={"Authorization": f"Bearer {token.text}"})
