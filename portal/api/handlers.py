"""Problems where no operation answers: addresses below /api/ that do not exist, and bugs."""

from __future__ import annotations

from http import HTTPStatus

from django.http import HttpRequest, JsonResponse

from portal.api.problems import MEDIA_TYPE, problem
from portal.request_ids import request_id_of

PREFIX = "/api/"


def is_for_programs(request: HttpRequest) -> bool:
    """Whether whoever asks reads problems, not pages."""
    return request.path.startswith(PREFIX)


def bare_problem(
    request: HttpRequest, code: str, detail: str, *, status: HTTPStatus
) -> JsonResponse:
    """The problem as an answer of Django, outside of REST framework's own handling."""
    body = problem(code, detail, status=status, request_id=request_id_of(request)).data
    return JsonResponse(body, status=status, content_type=MEDIA_TYPE)
