"""An object's bytes → its row of the mirror, or None where the mirror does not keep such an object.

Pure: no database. What people wrote into an object never makes this fail: what the fast decoder
refuses is stored in a readable form, with a note that says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from devices.cluster.decoding import loads, readable, too_deep
from devices.dra.names import CLAIM_LABEL, TENANT_LABEL
from devices.mirror import shapes
from devices.mirror.rows import COLUMNS, Look, Row, without

REWRITTEN = "Parts that cannot be shown as they are were replaced (broken characters or nesting)."

Object = TypeVar("Object", bound=shapes.Thing)
_bookmarks = msgspec.json.Decoder(shapes.Thing)


class Reader:
    """Reads objects of one kind. `shape` is what is decoded, `look` what the columns hold."""

    def __init__(
        self,
        kind: str,
        shape: type[Object],
        look: Callable[[Object, bytes], Look],
        *,
        opaque: bool = False,
    ):
        self.kind = kind
        self._decode = msgspec.json.Decoder(shape).decode
        self._look: Callable[[Any, bytes], Look] = look
        self._opaque = opaque

    def read(self, raw: bytes, api_version: str = "") -> tuple[str, str, Row | None]:
        """(uid, resourceVersion, row); no row for an object that the mirror does not keep.

        `api_version` is the list's, where objects carry none. Raises ValueError for no JSON.
        """
        note = ""
        try:
            # Parameters for drivers, and their data, may hold numbers beyond a float, and nest
            # without end: only decoding shows it.
            opaque = self._opaque and (b'"opaque"' in raw or b'"data"' in raw)
            if opaque and too_deep(msgspec.json.decode(raw)):
                raise RecursionError
            obj = self._decode(raw)
        except (msgspec.DecodeError, RecursionError):
            raw, note = readable(raw), REWRITTEN
            try:
                obj = self._decode(raw)
            except msgspec.DecodeError:  # a field of ours in an unknown form: the name is left
                row = _unread(self.kind, raw, api_version)
                return row.uid, row.resource_version, row
        meta: shapes.Meta = obj.metadata
        look = self._look(obj, raw)
        if not look.kept:
            return meta.uid, meta.resource_version, None
        labels = meta.labels or {}
        kept = look.raw
        if kept is None:
            kept = without(raw, "managedFields", meta.managed_fields)
        row = Row(
            uid=meta.uid,
            kind=self.kind,
            api_version=obj.api_version or api_version,
            namespace=meta.namespace,
            name=meta.name,
            resource_version=meta.resource_version,
            raw=kept,
            note=note,
            created_at=meta.creation_timestamp,
            deleting=meta.deletion_timestamp is not None,
            node=look.node,
            driver=look.driver,
            pool=look.pool,
            phase=_word(look.phase, 128),
            classes=list(look.classes),
            counts=list(look.counts),
            uses=list(look.uses),
            claim=labels.get(CLAIM_LABEL, ""),
            tenant=labels.get(TENANT_LABEL, ""),
            owner_uid=_word(look.owner_uid or _controller(meta), 64),
            small=look.small,
        )
        return meta.uid, meta.resource_version, row


def bookmark(raw: bytes) -> str:
    """The resourceVersion of a bookmark, which is an object of its kind with nothing in it."""
    return _bookmarks.decode(raw).metadata.resource_version


def _unread(kind: str, raw: bytes, api_version: str) -> Row:
    meta = loads(raw).get("metadata") or {}
    return _nameplate(
        uid=str(meta.get("uid")),
        kind=kind,
        api_version=api_version,
        namespace=str(meta.get("namespace") or ""),
        name=str(meta.get("name") or ""),
        resource_version=str(meta.get("resourceVersion") or ""),
        raw=raw,
        note="Its form is unknown to this Berth: only its name was read.",
        deleting=bool(meta.get("deletionTimestamp")),
    )


def bare(row: Row, why: str) -> Row:
    """The row of an object whose contents PostgreSQL refuses: who it is, and why no more."""
    meta = {"name": row.name, "namespace": row.namespace, "uid": row.uid}
    return _nameplate(
        uid=row.uid,
        kind=row.kind,
        api_version=row.api_version,
        namespace=row.namespace,
        name=row.name,
        resource_version=row.resource_version,
        raw=msgspec.json.encode({"metadata": meta}),
        note=_word(f"Its contents could not be stored: {why}", 200),
        deleting=row.deleting,
    )


def _nameplate(**fields: Any) -> Row:
    """A row that says who an object is and nothing else."""
    empty: dict[str, Any] = {column: "" for column in COLUMNS}
    empty |= {"created_at": None, "classes": [], "counts": [], "uses": []}
    return Row(**{**empty, **fields})


def _word(text: str, most: int) -> str:
    """Free text as a column: PostgreSQL's text has no NUL."""
    return text.replace("\0", "")[:most]


def _controller(meta: shapes.Meta) -> str:
    return next((owner.uid for owner in meta.owner_references or () if owner.controller), "")
