"""What a gateway to Kubernetes promises: raw objects in and out, and three kinds of failure.

Knows no client and no framework; `live.py` keeps the promise over the official client's transport.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
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


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a list as the server's own bytes, one item an object.

    `version` is the same on every page of a list: all pages show one moment of the cluster.
    """

    items: tuple[bytes | memoryview, ...] = field(repr=False)
    version: str
    api_version: str
    last: bool


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


@dataclass(frozen=True, slots=True)
class RawEvent:
    """One line of a watch, its object undecoded: for who reads thousands a second."""

    change: Change
    raw: bytes = field(repr=False)


class RawWatch(Protocol):
    """An open watch. Iteration ends when the server ends it in order or `close` is called.

    Raises Expired when the history is gone, Unreachable when the connection was cut.
    """

    def __iter__(self) -> Iterator[RawEvent]: ...

    def close(self) -> None:
        """Ends the iteration from any thread, at once."""


@dataclass(frozen=True, slots=True)
class Served:
    """What the API server serves now: (group, kind) to its versions, best first."""

    release: str
    resources: Mapping[tuple[str, str], tuple[ServedResource, ...]] = field(repr=False)

    def versions(self, group: str, kind: str) -> tuple[str, ...]:
        return tuple(resource.version for resource in self.resources.get((group, kind), ()))


@dataclass(frozen=True, slots=True)
class ServedResource:
    """One kind in one version, with the names of its subresources."""

    group: str
    version: str
    kind: str
    plural: str
    namespaced: bool
    subresources: frozenset[str] = frozenset()


class ClusterError(Exception):
    """The cluster did not do what was asked. `retry` says whether asking again can help.

    `doing` says what was asked ("list Pod"), `status` and `reason` are the server's (0 and "" where
    there was no answer), `body` its Status object, `retry_after` its wish in seconds.
    """

    retry = False

    def __init__(
        self,
        message: str,
        *,
        status: int = 0,
        reason: str = "",
        body: Obj | None = None,
        doing: str = "",
        retry_after: float | None = None,
    ):
        super().__init__(f"{doing}: {message}" if doing else message)
        self.message = message
        self.status = status
        self.reason = reason
        self.body = body or {}
        self.doing = doing
        self.retry_after = retry_after


class Unreachable(ClusterError):
    """No answer, a broken one, 429 or 5xx: nobody knows whether it was done; ask again later."""

    retry = True


class Conflict(ClusterError):
    """409, or a JSON patch whose `test` failed: somebody else wrote in between, or owns a field.

    Look again, then decide.
    """

    retry = True

    @property
    def owners(self) -> tuple[tuple[str, str], ...]:
        """(manager, field) of every field that another field manager owns; empty for other 409s.

        Source: the causes of a server-side apply conflict, reason FieldManagerConflict.
        """
        found = []
        for cause in (self.body.get("details") or {}).get("causes") or ():
            if cause.get("reason") == "FieldManagerConflict":
                manager = cause.get("message", "").removeprefix('conflict with "').split('"')[0]
                found.append((manager, cause.get("field", "")))
        return tuple(found)


class BudgetSpent(ClusterError):
    """429 of the eviction API: a disruption budget lets no Pod go now. Ask again later."""

    retry = True

    @property
    def budget(self) -> str:
        """What the API server says of the budget, naming it; empty where it says nothing."""
        causes = (self.body.get("details") or {}).get("causes") or ()
        return next((one.get("message", "") for one in causes if one.get("message")), "")


class Rejected(ClusterError):
    """4xx with a reason: quota, admission, validation. Asking again changes nothing."""


class Missing(Rejected):
    """404: the object to change, or the namespace to put it in, is not there."""


class NotServed(Rejected):
    """This API server does not serve the kind, in any version that Berth knows."""


class Forbidden(Rejected):
    """401 or 403 by authorisation: Berth's own rights are missing (quota is `Rejected`)."""


class Expired(ClusterError):
    """410: the watch asked for a resourceVersion that is no longer kept. List again."""

    retry = True


class Gateway(Protocol):
    """One cluster, seen through raw dicts. Absence is an answer, deleting twice is fine.

    Every method may raise any ClusterError. Nothing is retried behind the caller's back, with one
    exception: a 401 (never executed) makes the credentials be read anew, and is sent once more.
    An object without `apiVersion` gets the best served one.
    """

    def get(self, ref: Ref) -> Obj | None: ...

    def list(
        self, kind: str, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Listing: ...

    def pages(
        self,
        kind: str,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        size: int = 500,
    ) -> Iterator[Page]:
        """The list page by page, undecoded; Expired in mid-list means: forget it and start over."""

    def create(self, obj: Obj, *, dry_run: bool = False) -> Obj: ...

    def apply(
        self,
        obj: Obj,
        *,
        manager: str,
        force: bool = False,
        dry_run: bool = False,
        status: bool = False,
    ) -> Obj:
        """Server-side apply; Conflict.owners says who owns what, where it is not forced."""

    def patch(
        self,
        ref: Ref,
        operations: Sequence[Operation],
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Obj:
        """JSON patch (RFC 6902); a failed `test` is a Conflict."""

    def merge(self, ref: Ref, change: Obj, *, subresource: str = "", dry_run: bool = False) -> Obj:
        """JSON merge patch (RFC 7386)."""

    def replace(self, obj: Obj, *, subresource: str = "", dry_run: bool = False) -> Obj:
        """PUT of a whole object; Conflict where its resourceVersion is not the newest."""

    def delete(
        self,
        ref: Ref,
        *,
        uid: str | None = None,
        version: str | None = None,
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        """Deletes; fine where nothing is there, Conflict where it has another uid or version."""

    def evict(self, ref: Ref, *, uid: str, dry_run: bool = False) -> None:
        """Ends a Pod as its disruption budgets allow, else BudgetSpent; fine where it is gone,
        Conflict where another Pod has its name."""

    def watch(
        self,
        kind: str,
        since: str,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        timeout_seconds: int = 300,
    ) -> Iterator[Event]:
        """Changes after `since`, bookmarks included, until the server ends the watch in order."""

    def stream(
        self,
        kind: str,
        since: str,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        timeout_seconds: int = 300,
    ) -> RawWatch:
        """As `watch`, undecoded and to be closed from any thread."""

    def served(self) -> Served:
        """What is served now, asked anew each time."""

    def text(self, path: str) -> str:
        """A page that is no object, such as `/metrics` or `/readyz`."""

    def certificate_ends(self) -> datetime:
        """When the certificate that the API server shows is over."""
