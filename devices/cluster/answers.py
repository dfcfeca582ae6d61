"""Reads the API server's answers: bytes to objects, and a failed status to the ClusterError it is.

Pure: knows no client. The texts it looks for are the API server's own
(k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go, apimachinery's api/errors).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from devices.cluster.decoding import loads, readable
from devices.cluster.gateway import (
    BudgetSpent,
    Change,
    ClusterError,
    Conflict,
    Expired,
    Forbidden,
    Missing,
    NotServed,
    Obj,
    RawEvent,
    Rejected,
    Served,
    ServedResource,
    Unreachable,
)

# What the authorizer says; quota and admission policies say something else after "is forbidden: ".
_NO_RIGHT = re.compile(
    r'(^|forbidden: )User ".*?" cannot \S+ (resource "|path ")'
    r'|requires resource="resourceclaims/'  # status of claims, checked field by field since 1.36
)
# How server-side apply answers an unknown field: with a 500, though asking again changes nothing.
_UNTYPED = "failed to create typed patch object"


class _ListMeta(msgspec.Struct):
    version: str = msgspec.field(name="resourceVersion", default="")
    token: str = msgspec.field(name="continue", default="")


class RawList(msgspec.Struct):
    """A list with its items as the server's own bytes."""

    api_version: str = msgspec.field(name="apiVersion", default="")
    metadata: _ListMeta = msgspec.field(default_factory=_ListMeta)
    items: list[msgspec.Raw] | None = None


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


_lists = msgspec.json.Decoder(RawList)
_lines = msgspec.json.Decoder(_Line)
_UNREADABLE = (msgspec.DecodeError, RecursionError)


def an_object(body: bytes, *, doing: str) -> Obj:
    """A JSON object; Unreachable where something between us and the API server made the answer."""
    try:
        found = loads(body)
    except ValueError as error:
        raise Unreachable(f"no JSON in the answer: {_start(body)}", doing=doing) from error
    if not isinstance(found, dict):
        raise Unreachable(f"no object in the answer: {_start(body)}", doing=doing)
    return found


def a_list(body: bytes, *, doing: str) -> RawList:
    """A list, its items undecoded."""
    try:
        try:
            return _lists.decode(body)
        except _UNREADABLE:
            return _lists.decode(readable(body))
    except ValueError as error:
        raise Unreachable(f"no list in the answer: {_start(body)}", doing=doing) from error


def a_line(line: bytes, *, doing: str) -> RawEvent:
    """One line of a watch; raises what an ERROR line means, Unreachable for half a line."""
    try:
        try:
            found = _lines.decode(line)
        except _UNREADABLE:
            found = _lines.decode(readable(line))
    except ValueError as error:
        raise Unreachable(f"no event in the line: {_start(line)}", doing=doing) from error
    if found.type == "ERROR":
        status = an_object(bytes(found.object), doing=doing)
        raise failure(int(status.get("code") or 0), bytes(found.object), doing=doing)
    try:
        return RawEvent(Change(found.type), bytes(found.object))
    except ValueError as error:
        raise Unreachable(f"unknown event {found.type!r}", doing=doing) from error


def failure(
    code: int,
    body: bytes,
    *,
    doing: str,
    headers: Mapping[str, str] | None = None,
    tested: bool = False,
) -> ClusterError:
    """The error that an answer with this HTTP status is; `tested`: the patch had `test` operations.

    A 404 whose Status names no thing is the path itself: the kind is not served. One without a
    Status may be anybody's on the way, and must not pass for an absence.
    """
    status = _status(body)
    reason = str(status.get("reason") or "")
    message = str(status.get("message") or "") or _start(body) or f"HTTP {code}"
    kind = _kind(code, status, message, tested)
    return kind(
        message,
        status=code,
        reason=reason,
        body=status,
        doing=doing,
        retry_after=_retry_after(status, headers or {}),
    )


def _kind(code: int, status: Obj, message: str, tested: bool) -> type[ClusterError]:
    if code == 409:
        return Conflict
    if code == 410 or (code == 0 and status.get("reason") in ("Expired", "Gone")):
        return Expired
    if code == 401 or (code in (400, 403, 422) and _NO_RIGHT.search(message)):
        return Forbidden
    if code == 422 and tested and not (status.get("details") or {}).get("causes"):
        return Conflict  # the patch did not fit the object; what it led to was not even judged
    if code == 500 and message.startswith(_UNTYPED):
        return Rejected
    if code == 404 and status:
        named = (status.get("details") or {}).get("name")
        return Missing if named else NotServed
    if code == 429 and _by_budget(status):
        return BudgetSpent
    # 3xx is a proxy or a login page; any other 429 is the server protecting itself.
    if code == 429 or not 400 <= code < 500 or not status:
        return Unreachable
    return Rejected


def _by_budget(status: Obj) -> bool:
    """Whether a disruption budget refused an eviction."""
    causes = (status.get("details") or {}).get("causes") or ()
    return any(cause.get("reason") == "DisruptionBudget" for cause in causes)


def _status(body: bytes) -> Obj:
    try:
        found = loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) and found.get("kind") == "Status" else {}


def _retry_after(status: Obj, headers: Mapping[str, str]) -> float | None:
    told = headers.get("Retry-After") or (status.get("details") or {}).get("retryAfterSeconds")
    try:
        return float(told) if told else None
    except ValueError:  # HTTP also allows a date; nobody in front of an API server sends one
        return None


def _start(body: bytes) -> str:
    return body[:200].decode("utf-8", "replace").strip()


def served(release: str, documents: tuple[Obj, ...]) -> Served:
    """Aggregated discovery (APIGroupDiscoveryList v2 of `/api` and `/apis`) as `Served`."""
    resources: dict[tuple[str, str], tuple[ServedResource, ...]] = {}
    for document in documents:
        for group in document.get("items") or ():
            name = group.get("metadata", {}).get("name", "")
            for version in group.get("versions") or ():
                for entry in version.get("resources") or ():
                    found = ServedResource(
                        group=name,
                        version=version["version"],
                        kind=(entry.get("responseKind") or {}).get("kind", ""),
                        plural=entry["resource"],
                        namespaced=entry.get("scope") == "Namespaced",
                        subresources=frozenset(
                            sub["subresource"] for sub in entry.get("subresources") or ()
                        ),
                    )
                    key = (name, found.kind)
                    resources[key] = (*resources.get(key, ()), found)
    return Served(release=release, resources=resources)
