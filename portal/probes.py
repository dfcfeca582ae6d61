"""Answers for whoever runs Berth: is the process alive, and can it work.

Before everything else: a kubelet asks by the Pod's address, which is no host name of ours, over
plain HTTP, and a redirect would count as healthy.
"""

from __future__ import annotations

from collections.abc import Callable

from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse, JsonResponse


class ProbeMiddleware:
    """`/livez` and `/readyz`, whatever the host and the scheme."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        match request.path:
            case "/livez":
                return livez()
            case "/readyz":
                return readyz()
            case _:
                return self.get_response(request)


def livez() -> JsonResponse:
    """The process answers. Touches nothing else, so a broken database restarts nobody."""
    return JsonResponse({"status": "ok"})


def readyz() -> JsonResponse:
    """The process can work: PostgreSQL answers. 503 otherwise."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except DatabaseError:
        return JsonResponse({"status": "no database"}, status=503)
    return JsonResponse({"status": "ok"})
