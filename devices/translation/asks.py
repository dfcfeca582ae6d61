"""What a Pod's containers ask for by extended resource, and the claims that say the same.

Kubernetes counts extended resources for a Pod as the larger of what its containers and sidecars ask
for together and what its greediest init container asks for (KEP-753). A claim is held from the
Pod's start to its end, so init containers use devices of the containers that come after them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping as Map
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from devices.dra.quantity import QuantityError, parse
from devices.translation.edits import Unsure
from devices.translation.tree import Alias, Items, Mapping, Node, Scalar, walk

#: Lists of containers in a Pod's spec, in the order in which they start.
LISTS: Final = ("initContainers", "containers")
LIMITS, REQUESTS = "limits", "requests"
NANOS: Final = 1_000_000_000
LONGEST_NAME: Final = 63


@dataclass(frozen=True, slots=True)
class Target:
    """The class that stands for an extended resource.

    ``selectors`` narrow it (CEL, set by the platform); ``by_dra`` and ``by_plugin`` are how many
    devices each path has now, None where nobody knows. ``served`` says that the cluster gives
    claims to Pods that go on asking by this name.
    """

    resource: str
    device_class: str
    selectors: tuple[str, ...] = ()
    by_dra: int | None = None
    by_plugin: int | None = None
    served: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Container:
    """One container that asks: its place in the Pod, and how many of each resource."""

    list_name: str
    index: int
    name: str
    node: Mapping
    resources: Mapping
    counts: Map[str, int]
    without_limits: tuple[str, ...]
    sidecar: bool

    @property
    def init(self) -> bool:
        """Whether it ends before the others start."""
        return self.list_name == "initContainers" and not self.sidecar

    @property
    def key(self) -> tuple[str, int]:
        return self.list_name, self.index


@dataclass(slots=True, eq=False)
class Block:
    """Devices of one class that are asked for together, and the containers that use them."""

    target: Target
    count: int
    users: list[Container]
    name: str = ""

    @property
    def used_by(self) -> frozenset[tuple[str, int]]:
        return frozenset(user.key for user in self.users)


@dataclass(frozen=True, slots=True)
class Group:
    """One claim of the Pod: its requests. ``named`` says that containers name their request."""

    blocks: tuple[Block, ...]
    named: bool


def containers_of(spec: Mapping, targets: Map[str, Target]) -> list[Container]:
    """The containers that ask for what a class stands for, in the order in which they start.

    Raises `Unsure` where the text leaves open what is asked for.
    """
    found: list[Container] = []
    for list_name in LISTS:
        items = spec.get(list_name)
        if isinstance(items, Alias):
            _refuse_if_asked(items, targets)
        if not isinstance(items, Items):
            continue
        before = len(found)
        for index, item in enumerate(items.items):
            if isinstance(item, Alias):
                _refuse_if_asked(item, targets)
            if isinstance(item, Mapping):
                container = _container(list_name, index, item, targets)
                if container is not None:
                    found.append(container)
        if len(found) > before:
            not_shared(items)
    if found:
        _plain(spec)
    return found


def blocks_of(containers: Sequence[Container], targets: Map[str, Target]) -> list[Block]:
    """Devices that are asked for: each container's own, those of init containers shared with what
    starts after them wherever one block is large enough.
    """
    blocks: list[Block] = []
    for container in containers:
        if not container.init:
            blocks += [
                Block(targets[name], count, [container]) for name, count in container.counts.items()
            ]
    for container in containers:
        if container.init:
            for name, count in container.counts.items():
                free = [b for b in blocks if _usable(b, container, name) and b.count >= count]
                if free:
                    min(free, key=lambda b: b.count).users.append(container)
                else:
                    blocks.append(Block(targets[name], count, [container]))
    return blocks


def groups_of(blocks: Sequence[Block]) -> list[Group]:
    """The claims of one Pod: one, as long as each container can name what it uses of it.

    A container names a claim once, with one of its requests or all of them (core/v1,
    `resources.claims` is a map by name).
    """
    everybody = {block.used_by for block in blocks}
    users = frozenset[tuple[str, int]]().union(*everybody)
    _name_requests(blocks, by_container=len(everybody) > 1)
    if len(everybody) == 1:
        return [Group(tuple(blocks), named=False)]
    if all(sum(user in block.used_by for block in blocks) == 1 for user in users):
        return [Group(tuple(blocks), named=True)]
    order = list(dict.fromkeys(block.used_by for block in blocks))
    return [
        Group(tuple(block for block in blocks if block.used_by == mine), named=False)
        for mine in order
    ]


def extended(resource: str) -> bool:
    """Whether a name is one of an extended resource (core/v1 helper IsExtendedResourceName)."""
    domain, slash, _ = resource.partition("/")
    if not slash:
        return False
    return not domain.endswith("kubernetes.io") or domain == "deviceclass.resource.kubernetes.io"


def asked_names(node: Node) -> dict[str, int]:
    """Extended resources that stand as keys below `limits` or `requests` anywhere in a tree, with
    the line of the first. Aliases are not followed.
    """
    found: dict[str, int] = {}
    for each in walk(node):
        if not isinstance(each, Mapping):
            continue
        for key, value in each.pairs:
            if (
                isinstance(key, Scalar)
                and key.text in (LIMITS, REQUESTS)
                and isinstance(value, Mapping)
            ):
                for name, _ in value.pairs:
                    if isinstance(name, Scalar) and extended(name.text):
                        found.setdefault(name.text, name.line)
    return found


def named_anywhere(node: Node, targets: Map[str, Target]) -> dict[str, int]:
    """Extended resources that a tree names in whatever way, with the line of the first."""
    found: dict[str, int] = {}
    for each in walk(node):
        if isinstance(each, Scalar) and each.text in targets:
            found.setdefault(each.text, each.line)
    return found


# --- one container --------------------------------------------------------------------------------


def _container(
    list_name: str, index: int, node: Mapping, targets: Map[str, Target]
) -> Container | None:
    _merged(node, targets)
    resources = node.get("resources")
    if isinstance(resources, Alias):
        _refuse_if_asked(resources, targets)
    if not isinstance(resources, Mapping):
        return None
    _merged(resources, targets)
    amounts: dict[str, dict[str, int]] = {}
    for part in (LIMITS, REQUESTS):
        found = resources.get(part)
        if isinstance(found, Alias):
            _refuse_if_asked(found, targets)
        if isinstance(found, Mapping):
            _merged(found, targets)
            amounts[part] = _amounts(found, targets)
    limits, requests = amounts.get(LIMITS, {}), amounts.get(REQUESTS, {})
    counts = {name: limits.get(name, requests.get(name, 0)) for name in {**limits, **requests}}
    counts = {name: count for name, count in counts.items() if count}
    if not counts:
        return None
    for name in counts:
        if name in limits and name in requests and limits[name] != requests[name]:
            raise Unsure(
                "LIMIT_AND_REQUEST_DIFFER",
                resources.line,
                f"The limit of {name} is {limits[name]} and the request {requests[name]}; "
                "Kubernetes takes only equal ones.",
            )
    for each in (node, resources, resources.get(LIMITS), resources.get(REQUESTS)):
        if isinstance(each, Mapping):
            _plain(each)
    sidecar = list_name == "initContainers" and node.text("restartPolicy") == "Always"
    without = tuple(name for name in counts if name not in limits)
    name = node.text("name") or f"{list_name}-{index}"
    return Container(list_name, index, name, node, resources, counts, without, sidecar)


def _amounts(part: Mapping, targets: Map[str, Target]) -> dict[str, int]:
    found = {}
    for key, value in part.pairs:
        if not isinstance(key, Scalar) or key.text not in targets:
            continue
        if not isinstance(value, Scalar):
            raise Unsure(
                "AMOUNT_NOT_READABLE", key.line, f"How much {key.text} is asked for cannot be read."
            )
        found[key.text] = _whole(key.text, value)
    return found


def _whole(resource: str, value: Scalar) -> int:
    try:
        nanos = parse(value.text).nanos
    except QuantityError:
        nanos = -1
    if nanos < 0 or nanos % NANOS:
        raise Unsure(
            "AMOUNT_NOT_WHOLE",
            value.line,
            f"{resource} is counted in whole devices, and this is {value.text or 'empty'}.",
        )
    return nanos // NANOS


def not_shared(node: Node) -> None:
    """Refuses what another place of the document means too."""
    if node.shared:
        raise Unsure(
            "ANCHOR",
            node.line,
            "Another place of this document means this part too (&… and *…). Write it out first.",
        )


def _plain(mapping: Mapping) -> None:
    """Refuses a mapping that other places share, or in which a name stands twice."""
    not_shared(mapping)
    seen: set[str] = set()
    for key, _ in mapping.pairs:
        text = key.text if isinstance(key, Scalar) else ""
        if text in seen:
            raise Unsure(
                "DUPLICATE_KEY", key.line, f"{text} stands twice here; Kubernetes reads only one."
            )
        seen.add(text)


def _merged(mapping: Mapping, targets: Map[str, Target]) -> None:
    """Refuses what a merge (`<<: *name`) brings in, where that asks for devices."""
    for key, value in mapping.pairs:
        if isinstance(key, Scalar) and key.text == "<<" and key.plain:
            for each in walk(value):
                if isinstance(each, Alias):
                    _refuse_if_asked(each, targets)


def _refuse_if_asked(alias: Alias, targets: Map[str, Target]) -> None:
    target = alias.target
    if target is None:
        return
    for node in walk(target):
        asks = isinstance(node, Scalar) and node.text in targets
        if asks or isinstance(node, Alias):
            raise Unsure(
                "ALIAS",
                alias.line,
                f"What is asked for here stands elsewhere (*{alias.name}). Write it out first.",
            )


# --- requests -------------------------------------------------------------------------------------


def _usable(block: Block, container: Container, resource: str) -> bool:
    """Whether an init container may use a block: nobody who uses it runs beside it."""
    return block.target.resource == resource and not any(
        user.sidecar and user.index < container.index for user in block.users
    )


def _name_requests(blocks: Sequence[Block], *, by_container: bool) -> None:
    taken: set[str] = set()
    for block in blocks:
        last = block.target.resource.rpartition("/")[2]
        wanted = block.users[0].name if by_container else last
        name = base = dns_label(wanted)
        number = 2
        while name in taken:
            ending = f"-{number}"
            name = f"{base[: LONGEST_NAME - len(ending)]}{ending}"
            number += 1
        taken.add(name)
        block.name = name


def dns_label(text: str) -> str:
    """A text as a name that Kubernetes takes (RFC 1123 label)."""
    name = re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")[:LONGEST_NAME].strip("-")
    return name or "devices"
