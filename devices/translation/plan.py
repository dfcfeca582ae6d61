"""What will become of one Pod: claims for what its containers ask, and the changes that say so.

The same plan is carried out twice: on the text, and on what the text says. Only where both agree is
the text believed.
"""

from __future__ import annotations

from collections.abc import Mapping as Map
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from devices.translation.asks import (
    LIMITS,
    REQUESTS,
    Block,
    Container,
    Group,
    Target,
    blocks_of,
    containers_of,
    dns_label,
    groups_of,
    not_shared,
)
from devices.translation.edits import Pen, Unsure
from devices.translation.tree import Items, Mapping

Obj = dict[str, Any]
API_VERSION = "resource.k8s.io/v1"
CLAIMS, POD_CLAIMS = "claims", "resourceClaims"


@dataclass(frozen=True, slots=True)
class Existing:
    """A claim or template that the tenant has already: its requests as (name, class, count).

    ``namespace`` is empty where it does not matter.
    """

    name: str
    kind: str
    requests: tuple[tuple[str, str, int], ...]
    namespace: str = ""

    @property
    def field(self) -> str:
        """How a Pod refers to it."""
        return "resourceClaimName" if self.kind == "ResourceClaim" else "resourceClaimTemplateName"


@dataclass(frozen=True, slots=True)
class PodPlan:
    """One Pod's change. ``way`` leads to its spec within the document; ``entries`` are put into its
    `resourceClaims`, ``uses`` into each container's `claims`; ``templates`` are made beside it.
    """

    way: tuple[str | int, ...]
    spec: Mapping
    containers: tuple[Container, ...]
    groups: tuple[Group, ...]
    entries: tuple[dict[str, str], ...]
    uses: Map[tuple[str, int], tuple[dict[str, str], ...]]
    templates: tuple[Obj, ...]


def plan_of(
    spec: Mapping,
    way: tuple[str | int, ...],
    targets: Map[str, Target],
    *,
    base: str,
    namespace: str,
    taken: set[str],
    existing: Existing | None,
) -> PodPlan | None:
    """The plan for a Pod's spec; None where it asks for nothing that a class stands for.

    ``base`` names new templates, ``taken`` are names in use, to which those of new ones are added.
    Raises `Unsure`.
    """
    containers = containers_of(spec, targets)
    if not containers:
        return None
    groups = groups_of(blocks_of(containers, targets))
    if existing is not None:
        if namespace and existing.namespace and namespace != existing.namespace:
            raise Unsure(
                "CLAIM_IN_OTHER_NAMESPACE",
                spec.line,
                f"{existing.name} is in {existing.namespace}; a Pod can use only claims of its own "
                f"namespace, {namespace}.",
            )
        groups = [_matched(groups, existing)]
    names = _entry_names(spec, len(groups))
    templates: list[Obj] = []
    entries: list[dict[str, str]] = []
    for name, group in zip(names, groups, strict=True):
        if existing is None:
            template = template_of(group, _free(f"{base}-devices", taken), namespace)
            templates.append(template)
            entries.append(
                {"name": name, "resourceClaimTemplateName": template["metadata"]["name"]}
            )
        else:
            entries.append({"name": name, existing.field: existing.name})
    uses = {each.key: tuple(_uses(each, names, groups)) for each in containers}
    return PodPlan(
        way, spec, tuple(containers), tuple(groups), tuple(entries), uses, tuple(templates)
    )


def template_of(group: Group, name: str, namespace: str) -> Obj:
    """The ResourceClaimTemplate that gives each Pod one claim with these requests."""
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {
        "apiVersion": API_VERSION,
        "kind": "ResourceClaimTemplate",
        "metadata": metadata,
        "spec": {"spec": {"devices": {"requests": [_request(block) for block in group.blocks]}}},
    }


def write(plan: PodPlan, pen: Pen) -> None:
    """Carries the plan out on the text. Raises `Unsure`."""
    for container in plan.containers:
        out, put = [], []
        for part in (LIMITS, REQUESTS):
            found = container.resources.get(part)
            if not isinstance(found, Mapping):
                continue
            names = [name for name in container.counts if found.get(name) is not None]
            if names and len(names) == len(found.pairs):
                out.append(part)
            elif names:
                pen.change(found, out=names, put=())
        uses = [dict(use) for use in plan.uses[container.key]]
        put = _appended(container.resources, CLAIMS, uses, pen)
        pen.change(container.resources, out=out, put=put)
    entries = [dict(entry) for entry in plan.entries]
    pen.change(plan.spec, out=(), put=_appended(plan.spec, POD_CLAIMS, entries, pen))


def carry_out(plan: PodPlan, document: Any) -> None:
    """Carries the plan out on what the document says, in place."""
    spec = document
    for step in plan.way:
        spec = spec[step]
    for container in plan.containers:
        resources = spec[container.list_name][container.index]["resources"]
        for part in (LIMITS, REQUESTS):
            for name in container.counts:
                if isinstance(resources.get(part), dict):
                    resources[part].pop(name, None)
            if resources.get(part) == {}:
                del resources[part]
        _extend(resources, CLAIMS, plan.uses[container.key])
    _extend(spec, POD_CLAIMS, plan.entries)


def _extend(where: Obj, name: str, more: Sequence[Map[str, str]]) -> None:
    where[name] = [*where.get(name, []), *(dict(each) for each in more)]


def _appended(
    where: Mapping, name: str, more: Sequence[Obj], pen: Pen
) -> list[tuple[str, list[Obj]]]:
    """Adds items to a list that is there; otherwise the entry that makes it."""
    found = where.get(name)
    if found is None:
        return [(name, list(more))]
    if not isinstance(found, Items):
        raise Unsure("NOT_A_LIST", found.line, f"{name} stands here already, and is no list.")
    not_shared(found)
    for each in more:
        pen.append(found, each)
    return []


def _request(block: Block) -> Obj:
    exactly: Obj = {"deviceClassName": block.target.device_class, "count": block.count}
    if block.target.selectors:
        exactly["selectors"] = [
            {"cel": {"expression": expression}} for expression in block.target.selectors
        ]
    return {"name": block.name, "exactly": exactly}


def _entry_names(spec: Mapping, count: int) -> list[str]:
    """Names for new entries of `resourceClaims`, beside those that are there."""
    found = spec.get(POD_CLAIMS)
    taken = {
        item.text("name")
        for item in (found.items if isinstance(found, Items) else ())
        if isinstance(item, Mapping)
    }
    return [_free("devices", taken) for _ in range(count)]


def _free(base: str, taken: set[str]) -> str:
    """A name that is not in use, which is from now on."""
    base = dns_label(base)
    name, number = base, 2
    while name in taken:
        ending = f"-{number}"
        name, number = f"{base[: 63 - len(ending)]}{ending}", number + 1
    taken.add(name)
    return name


def _uses(
    container: Container, names: Sequence[str], groups: Sequence[Group]
) -> list[dict[str, str]]:
    found = []
    for name, group in zip(names, groups, strict=True):
        mine = [block for block in group.blocks if container.key in block.used_by]
        if group.named:
            found += [{"name": name, "request": block.name} for block in mine]
        elif mine:
            found.append({"name": name})
    return found


def _matched(groups: Sequence[Group], existing: Existing) -> Group:
    """The requests of a claim that is there already, in the place of those asked for.

    Raises `Unsure` where it has not what the Pod asks for.
    """
    blocks = [block for group in groups for block in group.blocks]
    line = blocks[0].users[0].node.line
    left = list(existing.requests)
    for block in blocks:
        fitting = [one for one in left if one[1:] == (block.target.device_class, block.count)]
        if not fitting or len(groups) > 1:
            raise Unsure(
                "CLAIM_HAS_OTHER_DEVICES",
                line,
                f"{existing.name} has not {block.count} × {block.target.device_class} for "
                f"{block.users[0].name}: choose another claim, or let a template be made.",
            )
        left.remove(fitting[0])
        block.name = fitting[0][0]
    named = groups[0].named or bool(left)
    users = [user.key for block in blocks for user in block.users]
    if named and len(users) > len(set(users)):
        raise Unsure(
            "CLAIM_HAS_OTHER_DEVICES",
            line,
            f"{existing.name} has more than is asked for here, and a container can name only one "
            "request of a claim: choose another claim, or let a template be made.",
        )
    return Group(tuple(blocks), named=named)
