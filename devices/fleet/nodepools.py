"""Verbs of the platform about node pools, and how the nodes of one stand.

Nothing here changes a node. What a conversion would wait for is asked of the same proofs that a
conversion stands on (`dra.conversion`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from devices.dra.conversion import (
    DaemonSet,
    Look,
    Place,
    Proof,
    claims_are_free,
    no_plugin_holders,
)
from devices.dra.nodes import Node
from devices.dra.ownership import Owner
from devices.dra.snapshot import Snapshot
from devices.dra.wording import some_of
from devices.fleet.ownershipbook import as_of
from devices.forecasts.picture import Picture
from devices.models import NodePool, OwnershipLine, Sync
from portal.audit.record import record
from portal.errors import Invalid, Outdated, Refused
from tenants.access import PlatformAccess
from tenants.policy import PlatformAct

#: Nodes that a refusal names.
NAMED: Final = 6
_KEY: Final = re.compile(
    r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_VALUE: Final = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_LONGEST_SETTLING: Final = timedelta(hours=1)


class Overlap(Refused):
    """A node would be in two node pools of the same devices; facts name the pool and the nodes."""

    code = "NODE_POOLS_OVERLAP"


class NodePoolInUse(Refused):
    """Something that is kept names the node pool."""

    code = "NODE_POOL_IN_USE"


@dataclass(frozen=True, slots=True)
class Wish:
    """What a node pool is to be. Sets are `namespace/name` of DaemonSets."""

    name: str
    words: str
    selector: Mapping[str, str]
    resource: str
    driver: str
    device_class: str
    plugin_label: str
    driver_label: str
    plugin_sets: tuple[str, ...] = ()
    driver_sets: tuple[str, ...] = ()
    devices_per_node: int | None = None
    settling: timedelta = timedelta(minutes=5, seconds=20)

    def fields(self) -> dict[str, Any]:
        return {
            "name": self.name.strip(),
            "words": self.words.strip(),
            "selector": dict(self.selector),
            "resource": self.resource.strip(),
            "driver": self.driver.strip(),
            "device_class": self.device_class.strip(),
            "plugin_label": self.plugin_label.strip(),
            "driver_label": self.driver_label.strip(),
            "plugin_sets": list(self.plugin_sets),
            "driver_sets": list(self.driver_sets),
            "devices_per_node": self.devices_per_node,
            "settling": self.settling,
        }


def problems(wish: Wish) -> dict[str, str]:
    """What is wrong with a wish, by field; empty where nothing is."""
    wrong = {}
    if not wish.name.strip():
        wrong["name"] = "Give it a name that people know."
    if not wish.selector:
        wrong["selector"] = "Give at least one label, or every node would be in it."
    elif bad := [key for key, value in wish.selector.items() if not _label_fits(f"{key}={value}")]:
        wrong["selector"] = f"{bad[0]} is no label with a value; write key=value, one a line."
    for field, text in (("plugin_label", wish.plugin_label), ("driver_label", wish.driver_label)):
        if not _label_fits(text.strip()):
            wrong[field] = "Write key=value, the label that the DaemonSet selects on."
    if "plugin_label" not in wrong and wish.plugin_label.strip() == wish.driver_label.strip():
        wrong["driver_label"] = "One label cannot switch both; each path needs its own."
    for field, sets in (("plugin_sets", wish.plugin_sets), ("driver_sets", wish.driver_sets)):
        if any(text.count("/") != 1 or not all(text.split("/")) for text in sets):
            wrong[field] = "Write namespace/name of each DaemonSet, one a line."
    for field, text in (("resource", wish.resource), ("driver", wish.driver)):
        if not text.strip():
            wrong[field] = "Both paths must be named."
    if "/" not in wish.resource:
        wrong["resource"] = "An extended resource has a domain, such as vendor.example/gpu."
    if not wish.device_class.strip():
        wrong["device_class"] = "Name the class by which tenants ask for these devices."
    if not timedelta(0) <= wish.settling <= _LONGEST_SETTLING:
        wrong["settling"] = "From nothing to one hour; 320 seconds for kubelets as they come."
    return wrong


def _label_fits(text: str) -> bool:
    key, equals, value = text.partition("=")
    return bool(equals and _KEY.fullmatch(key) and _VALUE.fullmatch(value))


@transaction.atomic
def define(
    slug: str,
    wish: Wish,
    *,
    access: PlatformAccess,
    snapshot: Snapshot | None,
    request_id: str,
    now: datetime,
) -> NodePool:
    """Makes a node pool. Raises `Invalid` and `Overlap`."""
    access.require(PlatformAct.RUN_POOLS)
    wrong = problems(wish)
    if not re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", slug):
        wrong["slug"] = "Lower-case letters, digits and '-'; it stands in addresses and labels."
    elif NodePool.objects.filter(slug=slug).exists():
        wrong["slug"] = "There is one of that name; take another."
    if wrong:
        raise Invalid("The node pool was not made.", fields=wrong)
    _refuse_overlap(wish, snapshot, but=None)
    try:
        with transaction.atomic():
            pool = NodePool.objects.create(
                slug=slug, made_by=access.user.person, made_at=now, **wish.fields()
            )
    except IntegrityError as error:
        wrong = {"slug": "There is one of that name; take another."}
        raise Invalid("The node pool was not made.", fields=wrong) from error
    _record("nodepool.defined", pool, access, request_id, now)
    return pool


@transaction.atomic
def change(
    pool: NodePool,
    wish: Wish,
    *,
    revision: int,
    access: PlatformAccess,
    snapshot: Snapshot | None,
    request_id: str,
    now: datetime,
) -> NodePool:
    """Changes what stands there at `revision`. Raises `Invalid`, `Overlap`, and `Outdated` where
    somebody else changed it meanwhile.
    """
    access.require(PlatformAct.RUN_POOLS)
    pool = NodePool.objects.select_for_update().get(pk=pool.pk)
    if pool.revision != revision:
        raise Outdated(
            "Somebody changed this node pool meanwhile; look at it again.", revision=pool.revision
        )
    if wrong := problems(wish):
        raise Invalid("The node pool was not changed.", fields=wrong)
    _refuse_overlap(wish, snapshot, but=pool)
    before = {name: getattr(pool, name) for name in wish.fields()}
    changed = {name: value for name, value in wish.fields().items() if before[name] != value}
    if not changed:
        return pool
    for name, value in changed.items():
        setattr(pool, name, value)
    pool.revision += 1
    pool.save(update_fields=[*changed, "revision"])
    _record("nodepool.changed", pool, access, request_id, now, changed=sorted(changed))
    return pool


@transaction.atomic
def remove(pool: NodePool, *, access: PlatformAccess, request_id: str, now: datetime) -> None:
    """Forgets a node pool; its nodes stay as they are, labels included.

    Raises `NodePoolInUse` where nodes moved by it: their history names it.
    """
    access.require(PlatformAct.RUN_POOLS)
    _record("nodepool.removed", pool, access, request_id, now)
    try:
        with transaction.atomic():
            pool.delete()
    except ProtectedError as error:
        raise NodePoolInUse(
            f"{pool.name} stays: nodes moved by it, and their history names it."
        ) from error


def _refuse_overlap(wish: Wish, snapshot: Snapshot | None, but: NodePool | None) -> None:
    if snapshot is None:
        return
    mine = set(selected(wish.selector, snapshot))
    others = NodePool.objects.all()
    for other in others if but is None else others.exclude(pk=but.pk):
        alike = other.resource == wish.resource.strip() or other.driver == wish.driver.strip()
        both = sorted(mine & set(selected(other.selector, snapshot))) if alike else []
        if both:
            raise Overlap(
                f"{some_of(both, NAMED)} would be in {other.name} too; a node's devices "
                "change their path in one pool only.",
                node_pool=other.slug,
                nodes=both[:NAMED],
            )


def selected(selector: Mapping[str, str], snapshot: Snapshot) -> list[str]:
    """Names of the nodes that have all these labels."""
    return [
        node.name
        for node in snapshot.nodes.values()
        if all(node.labels.get(key) == value for key, value in selector.items())
    ]


@dataclass(frozen=True, slots=True)
class Standing:
    """How one node of a pool stands: who owns its devices, which switches are on, and what a
    conversion away from its owner would wait for now (None: it has no owner to leave).
    """

    node: Node
    owner: str
    line: OwnershipLine | None
    plugin_switch: bool
    driver_switch: bool
    leave: Proof | None

    @property
    def switches_agree(self) -> bool:
        """Whether the switches say what the cluster shows."""
        said = (self.plugin_switch, self.driver_switch)
        shown = {
            Owner.PLUGIN.value: (True, False),
            Owner.DRA.value: (False, True),
            Owner.NONE.value: (False, False),
        }
        return said == shown.get(self.owner, said)


def standings(
    pool: NodePool, picture: Picture, now: datetime, *, only: Collection[str] | None = None
) -> list[Standing]:
    """Each node of a pool (or those of these names), by name; two queries."""
    snapshot = picture.now
    names = [
        name for name in sorted(selected(pool.selector, snapshot)) if only is None or name in only
    ]
    lines = {
        line.node: line
        for line in as_of().filter(node__in=names)
        if line.type in (pool.resource, pool.driver)
    }
    look = Look(snapshot, heard())
    return [_standing(pool, snapshot.nodes[name], lines.get(name), look, now) for name in names]


def heard() -> dict[str, datetime]:
    """By kind, until when the mirror is known to be whole and true; one query."""
    rows = Sync.objects.filter(served=True, error="").exclude(listed_at=None)
    return {kind: alive for kind, alive in rows.values_list("kind", "alive_at") if alive}


def place_of(pool: NodePool, node: Node) -> Place:
    """The node as the proofs of a conversion take it."""
    return place_named(pool, node.name, node.uid)


def place_named(pool: NodePool, node: str, uid: str) -> Place:
    """The same for a machine that may not be there any more."""

    def sets(texts: list[str]) -> tuple[DaemonSet, ...]:
        return tuple(DaemonSet(*text.split("/", 1)) for text in texts)

    return Place(
        node=node,
        uid=uid,
        resource=pool.resource,
        driver=pool.driver,
        plugin_sets=sets(pool.plugin_sets),
        driver_sets=sets(pool.driver_sets),
        offered=pool.devices_per_node,
        hardware=pool.devices_per_node,
    )


def _standing(
    pool: NodePool, node: Node, line: OwnershipLine | None, look: Look, now: datetime
) -> Standing:
    owner = line.owner if line is not None else Owner.NONE.value
    place, leave = place_of(pool, node), None
    if owner == Owner.PLUGIN:
        leave = no_plugin_holders(place, look, now, empty_since=None)
    elif owner == Owner.DRA:
        leave = claims_are_free(place, look, now, empty_since=None, report=None)
    return Standing(
        node=node,
        owner=owner,
        line=line,
        plugin_switch=_on(node, pool.plugin_label),
        driver_switch=_on(node, pool.driver_label),
        leave=leave,
    )


def _on(node: Node, label: str) -> bool:
    key, _, value = label.partition("=")
    return node.labels.get(key) == value


def _record(
    action: str,
    pool: NodePool,
    access: PlatformAccess,
    request_id: str,
    now: datetime,
    **facts: Any,
) -> None:
    record(
        action=action,
        subject=f"node pool {pool.slug}",
        request_id=request_id,
        at=now,
        person=access.user.person,
        facts={"selector": pool.selector, "revision": pool.revision, **facts},
    )
