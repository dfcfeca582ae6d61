"""What a gateway to Kubernetes promises: raw objects in and out, and three kinds of failure.

Knows no client and no framework; `live.py` keeps the promise over the official client's transport.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol

Obj = dict[str, Any]
Operation = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ref:
    """One object by kind and name; `namespace` is empty for cluster-scoped kinds."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        path = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{self.kind} {path}"


@dataclass(frozen=True, slots=True)
class Listing:
    """All objects of one list call (every page) and the resourceVersion a watch may start from."""

    items: tuple[Obj, ...]
    version: str


class Change(StrEnum):
    """What a watch tells about an object; BOOKMARK carries a resourceVersion and nothing else."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a watch; `raw` are the object's own bytes, where the reader keeps them."""

    change: Change
    obj: Obj
    raw: bytes = field(default=b"", repr=False)

    @property
    def version(self) -> str:
        return str(self.obj.get("metadata", {}).get("resourceVersion", ""))


class ClusterError(Exception):
    """The cluster did not do what was asked. `retry` says whether asking again can help."""

    retry = False

    def __init__(self, message: str, *, status: int = 0, reason: str = "", body: Obj | None = None):
        super().__init__(message)
        self.message = message
        self.status = status
        self.reason = reason
        self.body = body or {}


class Unreachable(ClusterError):
    """No answer, a broken one, 429 or 5xx: nobody knows whether it was done; ask again later."""

    retry = True


class Conflict(ClusterError):
    """409: somebody else wrote in between, or owns a field. Look again, then decide."""

    retry = True


class Rejected(ClusterError):
    """4xx with a reason: quota, admission, validation. Asking again changes nothing."""


class Forbidden(Rejected):
    """401 or 403 by authorisation: Berth's own rights are missing (quota is `Rejected`)."""


class Expired(ClusterError):
    """410: the watch asked for a resourceVersion that is no longer kept. List again."""

    retry = True


class Gateway(Protocol):
    """One cluster, seen through raw dicts. Absence is an answer, deleting twice is fine."""

    def get(self, ref: Ref) -> Obj | None: ...

    def list(
        self, kind: str, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Listing: ...

    def create(self, obj: Obj, *, dry_run: bool = False) -> Obj: ...

    def apply(
        self,
        obj: Obj,
        *,
        manager: str,
        force: bool = False,
        dry_run: bool = False,
        status: bool = False,
    ) -> Obj: ...

    def patch(
        self, ref: Ref, operations: list[Operation], *, subresource: str = "", dry_run: bool = False
    ) -> Obj: ...

    def merge(self, ref: Ref, change: Obj, *, subresource: str = "") -> Obj: ...

    def delete(
        self,
        ref: Ref,
        *,
        uid: str | None = None,
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None: ...

    def watch(
        self,
        kind: str,
        since: str,
        *,
        namespace: str = "",
        fields: str = "",
        timeout_seconds: int = 300,
    ) -> Iterator[Event]: ...
