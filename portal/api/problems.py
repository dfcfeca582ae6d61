"""Every error of the API is one shape: application/problem+json (RFC 9457) with a stable code."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response

from portal import metrics
from portal.errors import Invalid, Refused

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:berth:problem:"

CODES: dict[type[Exception], tuple[str, int]] = {
    exceptions.NotAuthenticated: ("NOT_SIGNED_IN", HTTPStatus.UNAUTHORIZED),
    exceptions.AuthenticationFailed: ("TOKEN_INVALID", HTTPStatus.UNAUTHORIZED),
    exceptions.PermissionDenied: ("NOT_PERMITTED", HTTPStatus.FORBIDDEN),
    PermissionDenied: ("NOT_PERMITTED", HTTPStatus.FORBIDDEN),
    exceptions.NotFound: ("NOT_FOUND", HTTPStatus.NOT_FOUND),
    Http404: ("NOT_FOUND", HTTPStatus.NOT_FOUND),
    exceptions.MethodNotAllowed: ("METHOD_NOT_ALLOWED", HTTPStatus.METHOD_NOT_ALLOWED),
    exceptions.NotAcceptable: ("NOT_ACCEPTABLE", HTTPStatus.NOT_ACCEPTABLE),
    exceptions.UnsupportedMediaType: (
        "UNSUPPORTED_MEDIA_TYPE",
        HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    ),
    exceptions.ParseError: ("NOT_JSON", HTTPStatus.BAD_REQUEST),
    RequestDataTooBig: ("TOO_LARGE", HTTPStatus.REQUEST_ENTITY_TOO_LARGE),
    exceptions.Throttled: ("TOO_MANY_REQUESTS", HTTPStatus.TOO_MANY_REQUESTS),
}

_TITLES: Final = {413: "Request Entity Too Large", 422: "Unprocessable Entity"}


def title_of(status: int) -> str:
    """What the status is called; the same on every Python, of which 3.13 names two anew."""
    return _TITLES.get(status) or HTTPStatus(status).phrase


def problem(
    code: str,
    detail: str,
    *,
    status: int,
    request_id: str,
    facts: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """One problem document. `detail` is a sentence for people, `code` and `facts` for programs."""
    metrics.API_PROBLEMS.labels(code).inc()
    body = {
        "type": TYPE_PREFIX + code.lower().replace("_", "-"),
        "title": title_of(status),
        "status": int(status),
        "detail": detail,
        "code": code,
        "facts": dict(facts or {}),
        "request_id": request_id,
    }
    return Response(body, status=status, content_type=MEDIA_TYPE, headers=dict(headers or {}))


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """Turns refusals and what DRF knows into problems; everything else is a bug and stays one."""
    request_id = getattr(context["request"], "request_id", "")
    if isinstance(error, Invalid):
        return problem(
            error.code,
            error.message,
            status=error.http_status,
            request_id=request_id,
            facts={"fields": error.fields},
        )
    if isinstance(error, Refused):
        return problem(
            error.code,
            error.message,
            status=error.http_status,
            request_id=request_id,
            facts=error.facts,
        )
    if isinstance(error, exceptions.ValidationError):
        return problem(
            "INVALID",
            "Some fields are not right; facts.fields names each and what would be right.",
            status=HTTPStatus.UNPROCESSABLE_ENTITY,
            request_id=request_id,
            facts={"fields": flat(error.get_full_details())},
        )
    for kind, (code, status) in CODES.items():
        if isinstance(error, kind):
            headers = {}
            if status == HTTPStatus.UNAUTHORIZED:
                headers["WWW-Authenticate"] = 'Bearer realm="berth"'
            wait = getattr(error, "wait", None)
            if wait is not None:
                headers["Retry-After"] = str(int(wait) + 1)
            return problem(
                code, sentence(error), status=status, request_id=request_id, headers=headers
            )
    return None


def sentence(error: Exception) -> str:
    """What to tell people. A 404 never says more than that there is nothing here for the caller."""
    if isinstance(error, Http404 | exceptions.NotFound):
        return "There is nothing here that you may see."
    return str(error) or "You may not do this."


def flat(details: Any, path: str = "") -> dict[str, str]:
    """DRF's nested error details as {dotted path: message}."""
    if isinstance(details, dict) and "message" in details and "code" in details:
        return {path or "body": str(details["message"])}
    if isinstance(details, dict):
        found: dict[str, str] = {}
        for key, value in details.items():
            name = path if key == "non_field_errors" else f"{path}.{key}" if path else str(key)
            found.update(flat(value, name))
        return found
    if isinstance(details, list):
        found = {}
        for index, value in enumerate(details):
            leaf = isinstance(value, dict) and "message" in value
            found.update(flat(value, path if leaf else f"{path}.{index}"))
        return found
    return {path or "body": str(details)}
