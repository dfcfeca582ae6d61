"""One id for everything that a request causes: log lines, audit, tasks, objects in the cluster."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from typing import Any

import structlog
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django_structlog.signals import bind_extra_request_metadata

HEADER = "X-Request-ID"
TAKEN_OVER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{7,63}")


class RequestIdMiddleware:
    """Sets `request.request_id` and answers with it.

    A caller's own id is kept where it has a harmless shape, so that it can be followed across
    services; anything else is replaced, never echoed.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get(HEADER, "")
        request_id = given if TAKEN_OVER.fullmatch(given) else str(uuid.uuid4())
        request.request_id = request_id  # type: ignore[attr-defined]
        response = self.get_response(request)
        response[HEADER] = request_id
        return response


@receiver(bind_extra_request_metadata)
def _name_in_log_lines(request: HttpRequest, **more: Any) -> None:
    """django-structlog has made an id of its own; tasks take this one along."""
    structlog.contextvars.bind_contextvars(request_id=request_id_of(request))


def request_id_of(request: HttpRequest) -> str:
    """The id that the middleware gave this request."""
    return str(request.request_id)  # type: ignore[attr-defined]
