"""The verbs of a gateway as requests: which path, which query, which body, which patch type.

Knows Kubernetes' URLs and no client: the bytes travel over `live.Transport`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol
from urllib.parse import quote

from devices.cluster import answers
from devices.cluster.decoding import loads
from devices.cluster.gateway import (
    Event,
    Expired,
    Listing,
    Missing,
    NotServed,
    Obj,
    Operation,
    Page,
    RawWatch,
    Ref,
    Served,
    ServedResource,
)
from devices.cluster.kinds import KINDS

# A served kind may appear or go with an upgrade; so long an old answer is good enough.
DISCOVERY_SECONDS = 60.0

JSON = "application/json"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"  # JSON is YAML
DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


class Wire(Protocol):
    """What carries the requests: `live.Transport`."""

    def send(self, method: str, path: str, *, doing: str, **request: Any) -> bytes: ...

    def lines(self, path: str, *, query: Mapping[str, str], doing: str) -> RawWatch: ...

    def certificate_ends(self) -> datetime: ...


class ApiServer:
    """A gateway (see `gateway.Gateway`) to the API server at the other end of a wire."""

    def __init__(self, wire: Wire):
        self._wire = wire
        self._served: tuple[float, Served] | None = None

    # --- reading ----------------------------------------------------------------------------------

    def get(self, ref: Ref) -> Obj | None:
        doing = f"get {ref}"
        try:
            return self._object("GET", self._path(ref.kind, ref.namespace, ref.name), doing=doing)
        except Missing:
            return None

    def list(
        self, kind: str, *, namespace: str = "", labels: str = "", fields: str = ""
    ) -> Listing:
        for _ in range(3):
            items: list[Obj] = []
            version = ""
            try:
                for page in self.pages(kind, namespace=namespace, labels=labels, fields=fields):
                    version = page.version
                    for raw in page.items:
                        items.append({"apiVersion": page.api_version, "kind": kind, **loads(raw)})
            except Expired as error:
                expired = error
                continue
            return Listing(tuple(items), version)
        raise expired

    def pages(
        self,
        kind: str,
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        size: int = 500,
    ) -> Iterator[Page]:
        path = self._path(kind, namespace)
        query = {"labelSelector": labels, "fieldSelector": fields, "limit": str(size)}
        doing = f"list {kind}"
        while True:
            found = answers.a_list(
                self._wire.send("GET", path, query=query, doing=doing), doing=doing
            )
            token = found.metadata.token
            yield Page(
                items=tuple(memoryview(item) for item in found.items or ()),
                version=found.metadata.version,
                api_version=found.api_version,
                last=not token,
            )
            if not token:
                return
            query["continue"] = token

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
        lines = self.stream(
            kind,
            since,
            namespace=namespace,
            labels=labels,
            fields=fields,
            timeout_seconds=timeout_seconds,
        )
        try:
            for event in lines:
                yield Event(event.change, loads(event.raw), event.raw)
        finally:
            lines.close()

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
        doing = f"watch {kind}"
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": since,
            "timeoutSeconds": str(timeout_seconds),
            "labelSelector": labels,
            "fieldSelector": fields,
        }
        return self._wire.lines(self._path(kind, namespace), query=query, doing=doing)

    def served(self) -> Served:
        doing = "discovery"
        documents = tuple(
            self._object("GET", path, accept=DISCOVERY, doing=doing) for path in ("/api", "/apis")
        )
        release = self._object("GET", "/version", doing=doing).get("gitVersion", "")
        found = answers.served(release, documents)
        self._served = (time.monotonic(), found)
        return found

    def text(self, path: str) -> str:
        return self._wire.send("GET", path, accept="*/*", doing=f"get {path}").decode(
            "utf-8", "replace"
        )

    def certificate_ends(self) -> datetime:
        return self._wire.certificate_ends()

    # --- writing ----------------------------------------------------------------------------------

    def create(self, obj: Obj, *, dry_run: bool = False) -> Obj:
        path, obj = self._place(obj, named=False)
        return self._write("POST", path, obj, dry_run=dry_run, doing=f"create {_name(obj)}")

    def apply(
        self,
        obj: Obj,
        *,
        manager: str,
        force: bool = False,
        dry_run: bool = False,
        status: bool = False,
    ) -> Obj:
        path, obj = self._place(obj)
        return self._write(
            "PATCH",
            f"{path}/status" if status else path,
            obj,
            content_type=APPLY_PATCH,
            query={"fieldManager": manager, "force": "true" if force else ""},
            dry_run=dry_run,
            doing=f"apply {_name(obj)}",
        )

    def patch(
        self,
        ref: Ref,
        operations: Sequence[Operation],
        *,
        subresource: str = "",
        dry_run: bool = False,
    ) -> Obj:
        return self._write(
            "PATCH",
            self._path(ref.kind, ref.namespace, ref.name, subresource),
            operations,
            content_type=JSON_PATCH,
            dry_run=dry_run,
            tested=any(operation.get("op") == "test" for operation in operations),
            doing=f"patch {ref}",
        )

    def merge(self, ref: Ref, change: Obj, *, subresource: str = "", dry_run: bool = False) -> Obj:
        return self._write(
            "PATCH",
            self._path(ref.kind, ref.namespace, ref.name, subresource),
            change,
            content_type=MERGE_PATCH,
            dry_run=dry_run,
            doing=f"patch {ref}",
        )

    def replace(self, obj: Obj, *, subresource: str = "", dry_run: bool = False) -> Obj:
        path, obj = self._place(obj)
        path = f"{path}/{subresource}" if subresource else path
        return self._write("PUT", path, obj, dry_run=dry_run, doing=f"replace {_name(obj)}")

    def delete(
        self,
        ref: Ref,
        *,
        uid: str | None = None,
        version: str | None = None,
        grace_seconds: int | None = None,
        dry_run: bool = False,
    ) -> None:
        options: Obj = {"kind": "DeleteOptions", "apiVersion": "v1"}
        options["propagationPolicy"] = "Background"
        unchanged = {"uid": uid, "resourceVersion": version}
        if required := {name: value for name, value in unchanged.items() if value is not None}:
            options["preconditions"] = required
        if grace_seconds is not None:
            options["gracePeriodSeconds"] = grace_seconds
        if dry_run:
            options["dryRun"] = ["All"]
        path = self._path(ref.kind, ref.namespace, ref.name)
        try:
            self._wire.send("DELETE", path, body=options, doing=f"delete {ref}")
        except Missing:
            return

    def evict(self, ref: Ref, *, uid: str, dry_run: bool = False) -> None:
        options: Obj = {"preconditions": {"uid": uid}}
        if dry_run:
            options["dryRun"] = ["All"]
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": ref.name, "namespace": ref.namespace},
            "deleteOptions": options,
        }
        path = self._path("Pod", ref.namespace, ref.name, "eviction")
        try:
            self._wire.send("POST", path, body=eviction, doing=f"evict {ref}")
        except Missing:
            return

    # --- where things are -------------------------------------------------------------------------

    def _path(self, kind: str, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """URL path of a kind's list or of one object, in the best served version."""
        return _url(self._resource(kind), namespace, name, subresource)

    def _place(self, obj: Obj, *, named: bool = True) -> tuple[str, Obj]:
        """The URL path of an object, and the object with its apiVersion filled in."""
        where = self._resource(obj["kind"], obj.get("apiVersion", ""))
        meta = obj.get("metadata") or {}
        api_version = f"{where.group}/{where.version}" if where.group else where.version
        url = _url(where, meta.get("namespace", ""), meta["name"] if named else "")
        return url, {**obj, "apiVersion": api_version}

    def _resource(self, kind: str, api_version: str = "") -> ServedResource:
        """Where a kind lives; raises NotServed. An empty api_version means the best one served."""
        group, _, version = api_version.rpartition("/")
        known = KINDS.get(kind)
        if known and (not api_version or known.group == group):
            if not version and len(known.versions) == 1:
                version = known.versions[0]
            if version:
                return ServedResource(known.group, version, kind, known.plural, known.namespaced)
        for found in self._offered(kind, group if api_version else None):
            if not version or found.version == version:
                return found
        raise NotServed(
            f"{kind} is not served in {api_version or 'any version'}", doing="discovery"
        )

    def _offered(self, kind: str, group: str | None) -> Sequence[ServedResource]:
        """What discovery has of a kind, in our order of preference, else in the server's."""
        found = [
            resource
            for (its_group, its_kind), resources in self._discovered().resources.items()
            if its_kind == kind and group in (None, its_group)
            for resource in resources
        ]
        if known := KINDS.get(kind):
            found = [r for r in found if r.group == known.group and r.version in known.versions]
            found.sort(key=lambda resource: known.versions.index(resource.version))
        return found

    def _discovered(self) -> Served:
        if self._served and time.monotonic() - self._served[0] < DISCOVERY_SECONDS:
            return self._served[1]
        return self.served()

    # --- sending ----------------------------------------------------------------------------------

    def _object(self, method: str, path: str, *, doing: str, accept: str = JSON) -> Obj:
        return answers.an_object(
            self._wire.send(method, path, accept=accept, doing=doing), doing=doing
        )

    def _write(
        self,
        method: str,
        path: str,
        body: Any,
        *,
        doing: str,
        content_type: str = JSON,
        query: dict[str, str] | None = None,
        dry_run: bool = False,
        tested: bool = False,
    ) -> Obj:
        # Strict: a misspelt field is an error, not a wish that nobody hears.
        query = {**(query or {}), "fieldValidation": "Strict", "dryRun": "All" if dry_run else ""}
        answer = self._wire.send(
            method,
            path,
            query=query,
            body=body,
            content_type=content_type,
            tested=tested,
            doing=doing,
        )
        return answers.an_object(answer, doing=doing)


def _url(where: ServedResource, namespace: str, name: str = "", subresource: str = "") -> str:
    parts = ["/apis", where.group, where.version] if where.group else ["/api", where.version]
    if namespace and where.namespaced:
        parts += ["namespaces", quote(namespace, safe="")]
    parts.append(where.plural)
    parts += [quote(part, safe="") for part in (name, subresource) if part]
    return "/".join(parts)


def _name(obj: Obj) -> str:
    """The object's kind and name for error messages, whatever it lacks."""
    meta = obj.get("metadata") or {}
    name = meta.get("name") or f"{meta.get('generateName', '')}…"
    return str(Ref(str(obj.get("kind")), name, meta.get("namespace", "")))
