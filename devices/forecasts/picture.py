"""The cluster at one moment for questions of "what if": as it is, and with nothing taken. Pure.

What devices there are changes seldom, who holds them all the time. So whatever was computed of the
devices alone is kept with the empty twin, and outlives every claim that comes or goes.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from devices.dra.snapshot import CLASS, KINDS, NODE, RULE, SLICE, Snapshot

#: Derived values that depend on slices, classes, taint rules, node labels and gates alone.
OF_DEVICES: Final = frozenset(
    {
        "amount kinds",
        "answers",
        "attribute",
        "closed",
        "drivers of class",
        "node names",
        "odd slices",
        "outcomes",
        "pools",
        "pools by node",
        "row",
        "rules",
        "shelf",
        "slices by name",
        "view",
    }
)

Key = tuple[str, str, str]
"""Kind, namespace, name."""


@dataclass(frozen=True, slots=True)
class Picture:
    """`now` is the cluster, `empty` the same one with nothing taken and nobody there.

    `as_of` is the moment that they show; `gates` of them were read from the API server where it
    says so, and are the release's own defaults elsewhere.
    """

    now: Snapshot
    empty: Snapshot
    as_of: datetime

    def prepared(self) -> Snapshot:
        """`now`, knowing of the devices whatever was computed for `empty` so far."""
        known = self.now.memo
        for key, value in list(self.empty.memo.items()):
            if of_devices(key) and key not in known:
                known[key] = value
        return self.now


def picture(snapshot: Snapshot, as_of: datetime | None = None) -> Picture:
    """A snapshot with its empty twin."""
    now = replace(snapshot, gates=replace(snapshot.gates, scheduled=True), memo={})
    empty = replace(now, claims={}, templates={}, pods={}, memo={})
    moment = as_of or snapshot.taken
    assert moment is not None, "a picture has a moment"
    return Picture(now, empty, moment)


def of_devices(key: Hashable) -> bool:
    """Whether a derived value stays true while only claims and Pods change."""
    return (key[0] if isinstance(key, tuple) else key) in OF_DEVICES


def merged(before: Snapshot, part: Snapshot, news: set[Key], gone: set[Key]) -> Snapshot:
    """`before` with the objects `news` as `part` has them, and without those that are `gone`.

    An object that can no longer be read leaves the snapshot, and says so in `unread`.
    """
    touched = news | gone
    names: dict[str, set[Any]] = {kind: set() for kind in KINDS}
    for kind, namespace, name in touched:
        names[kind].add((namespace, name) if namespace else name)
    titles = {"/".join(filter(None, key)) for key in touched}

    def mapping(kind: str, old: Mapping[Any, Any], new: Mapping[Any, Any]) -> Mapping[Any, Any]:
        if not names[kind]:
            return old
        kept = {key: value for key, value in old.items() if key not in names[kind]}
        return dict(sorted({**kept, **new}.items()))

    slices, rules = before.slices, before.rules
    if names[SLICE]:
        kept = [piece for piece in slices if piece.name not in names[SLICE]]
        slices = tuple(
            sorted([*kept, *part.slices], key=lambda piece: (piece.driver, piece.pool, piece.name))
        )
    if names[RULE]:
        left = [rule for rule in rules if rule.name not in names[RULE]]
        rules = tuple(sorted([*left, *part.rules], key=lambda rule: rule.name))
    return Snapshot(
        slices=slices,
        claims=mapping("ResourceClaim", before.claims, part.claims),
        templates=mapping("ResourceClaimTemplate", before.templates, part.templates),
        classes=mapping(CLASS, before.classes, part.classes),
        rules=rules,
        nodes=mapping(NODE, before.nodes, part.nodes),
        pods=mapping("Pod", before.pods, part.pods),
        gates=before.gates,
        unknown=(*(u for u in before.unknown if u.object not in titles), *part.unknown),
        unread=(*(u for u in before.unread if u.object not in titles), *part.unread),
    )


def devices_differ(before: Snapshot, part: Snapshot, touched: set[Key]) -> bool:
    """Whether anything changed that says which devices there are and where they can be had."""
    for kind, _, name in touched:
        if kind in (SLICE, CLASS, RULE):
            return True
        if kind == NODE:
            old, new = before.nodes.get(name), part.nodes.get(name)
            if old is None or new is None or old.labels != new.labels:
                return True
            if old.declared_features != new.declared_features:
                return True
    return False
