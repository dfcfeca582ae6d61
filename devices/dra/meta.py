"""What every object of the cluster carries: names, labels, owners, and when it was made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from devices.dra.reading import Raw, mapping, moment, sequence, text, texts


@dataclass(frozen=True, slots=True)
class Owner:
    """A metadata owner reference."""

    kind: str
    name: str
    uid: str
    controller: bool = False


@dataclass(frozen=True, slots=True)
class Meta:
    """What every object carries."""

    name: str
    namespace: str = ""
    uid: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    owners: tuple[Owner, ...] = ()
    finalizers: tuple[str, ...] = ()
    created: datetime | None = None
    deleted: datetime | None = None


def read_meta(raw: Raw) -> Meta:
    """An object's metadata; raises Unreadable."""
    meta = mapping(raw.get("metadata"), "metadata")
    return Meta(
        name=text(meta.get("name"), "metadata.name"),
        namespace=meta.get("namespace") or "",
        uid=meta.get("uid") or "",
        labels=dict(mapping(meta.get("labels"), "metadata.labels")),
        annotations=dict(mapping(meta.get("annotations"), "metadata.annotations")),
        owners=tuple(
            Owner(
                o.get("kind") or "",
                o.get("name") or "",
                o.get("uid") or "",
                o.get("controller") is True,
            )
            for o in sequence(meta.get("ownerReferences"), "metadata.ownerReferences")
        ),
        finalizers=texts(meta.get("finalizers"), "metadata.finalizers"),
        created=moment(meta.get("creationTimestamp")),
        deleted=moment(meta.get("deletionTimestamp")),
    )
