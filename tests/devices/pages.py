"""A signed-in browser without JavaScript, and what its page says."""

from __future__ import annotations

from typing import Any

from django.test import Client

from tenants.models import User


def client_of(user: User) -> Client:
    """The browser of somebody who is signed in."""
    client = Client()
    client.force_login(user)
    return client


def text(answer: Any) -> str:
    """The page's source with each run of white space as one blank."""
    return " ".join(answer.content.decode().split())
