"""Refusals as people meet them: a page that explains, or a notice beside what they were doing.

The API has its own door for the same refusals (`portal.api`); where no operation answers, the
handlers below speak for it. Nothing here is logged as an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

from django.core.exceptions import PermissionDenied
from django.db import DataError, InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.template.loader import get_template
from django.views.defaults import server_error

from portal.api.handlers import bare_problem, is_for_programs
from portal.api.texts import WORDS, keepable
from portal.errors import Invalid, NotPermitted, Refused
from portal.ui.htmx import wants_partial

#: After so many seconds it is worth asking a database again that did not answer.
RETRY_SECONDS: Final = 5
#: What a refusal of that status is called, above its message.
_TITLES = {
    HTTPStatus.BAD_REQUEST: "That request makes no sense here",
    HTTPStatus.FORBIDDEN: "You may not do this here",
    HTTPStatus.NOT_FOUND: "There is nothing here",
    HTTPStatus.CONFLICT: "Something else happened first",
    HTTPStatus.PRECONDITION_FAILED: "It changed while you looked",
    HTTPStatus.UNPROCESSABLE_ENTITY: "That cannot be done",
    HTTPStatus.TOO_MANY_REQUESTS: "That was too often",
}


def refusal(request: HttpRequest, refused: Refused) -> HttpResponse:
    """The refusal as a page, or for htmx as a notice that joins the page's notices.

    The status is the refusal's own, so that scripts and tests see what people see.
    """
    context = {
        "code": refused.code,
        "title": _TITLES.get(HTTPStatus(refused.http_status), "That was refused"),
        "message": refused.message,
        "facts": refused.facts,
    }
    if not wants_partial(request):
        return render(request, "portal/refused.html", context, status=refused.http_status)
    answer = render(request, "portal/_refused.html", context, status=refused.http_status)
    answer["HX-Retarget"] = "#notices"
    answer["HX-Reswap"] = "beforeend"
    return answer


class RefusalMiddleware:
    """Turns a `Refused` that a page's view lets through into its page or notice, and refuses what
    nothing can keep: names in an address and what is sent before any view, what is only looked for
    where a view did not think of it. Operations of the API refuse the same by themselves.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: object, args: object, kwargs: Mapping[str, object]
    ) -> HttpResponse | None:
        """None where the view may go on."""
        if is_for_programs(request):
            return None
        if not all(keepable(part) for part in kwargs.values() if isinstance(part, str)):
            raise Http404  # nothing has such a name
        return None if _kept(request.POST) else refusal(request, Invalid(WORDS, fields={}))

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, Refused):
            return refusal(request, error)
        if isinstance(error, DataError | ValueError) and not _kept(request.GET):
            return refusal(request, Invalid(WORDS, fields={}))
        return None


def _database_away(request: HttpRequest) -> HttpResponse:
    """503: PostgreSQL restarts, cannot be reached, or has no room left (its class 53)."""
    said = "Berth's database does not answer; trying again in a moment is safe."
    status = HTTPStatus.SERVICE_UNAVAILABLE
    if is_for_programs(request):
        answer: HttpResponse = bare_problem(request, "DATABASE_AWAY", said, status=status)
    else:
        answer = HttpResponse(get_template("503.html").render(), status=status)
    answer["Retry-After"] = str(RETRY_SECONDS)
    return answer


def _kept(given: QueryDict) -> bool:
    """Whether all of it, names and values, can be kept."""
    return all(keepable(text) for name, texts in given.lists() for text in (name, *texts))


def forbidden(request: HttpRequest, exception: PermissionDenied) -> HttpResponse:
    """handler403: says which right is missing when the view said so."""
    said = str(exception) or "Your role here does not allow this. An owner of the tenant can help."
    if is_for_programs(request):
        return bare_problem(request, NotPermitted.code, said, status=HTTPStatus.FORBIDDEN)
    return refusal(request, NotPermitted(said))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """handler404: the same words for what does not exist and for what is not yours."""
    if is_for_programs(request):
        said = "There is nothing here that you may see."
        return bare_problem(request, "NOT_FOUND", said, status=HTTPStatus.NOT_FOUND)
    missing = Refused(
        "It does not exist, or it is not yours to see; both look the same from here.",
        code="NOT_FOUND",
    )
    missing.http_status = HTTPStatus.NOT_FOUND
    return refusal(request, missing)


def broken(request: HttpRequest) -> HttpResponse:
    """handler500: a bug, or a database that is away. Django has logged it already; the answer says
    nothing of its insides.
    """
    if isinstance(sys.exception(), OperationalError | InterfaceError):
        return _database_away(request)
    if is_for_programs(request):
        said = "Something broke on our side; trying again in a moment is safe."
        return bare_problem(request, "INTERNAL", said, status=HTTPStatus.INTERNAL_SERVER_ERROR)
    return server_error(request)
