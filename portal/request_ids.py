"""One id for everything that a request causes: log lines, audit, tasks, objects in the cluster."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

from django.http import HttpRequest, HttpResponse

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
        request.META["HTTP_X_REQUEST_ID"] = request_id  # what django-structlog binds to log lines
        response = self.get_response(request)
        response[HEADER] = request_id
        return response


def request_id_of(request: HttpRequest) -> str:
    """The id that the middleware gave this request."""
    return str(request.request_id)  # type: ignore[attr-defined]
