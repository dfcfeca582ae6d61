"""What behaves otherwise once a Pod asks by claim, and what a person should look at. Pure words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from devices.translation.asks import Block, Target
from devices.translation.findings import Kind
from devices.translation.plan import Existing, PodPlan
from devices.translation.tree import Items, Mapping, Node, Scalar, walk

#: Variables by which people choose devices in a container.
CHOOSING: Final = frozenset(
    {
        "NVIDIA_VISIBLE_DEVICES",
        "CUDA_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "ZE_AFFINITY_MASK",
    }
)
#: Labels of nodes that clouds put beside accelerators.
CLOUD_LABELS: Final = frozenset(
    {"cloud.google.com/gke-accelerator", "k8s.amazonaws.com/accelerator"}
)
#: Names by which plugins give out one device several times.
SEVERAL_TIMES: Final = (".shared", "-shared", ".timeslice")
#: Kinds whose Pods are replaced when their template changes.
REPLACING: Final = frozenset({"Deployment", "DaemonSet", "StatefulSet"})


@dataclass(frozen=True, slots=True)
class Said:
    """A finding before it is known in which document it stands."""

    code: str
    kind: Kind
    line: int
    words: str


def said(obj: Mapping, pod: Mapping, plan: PodPlan, existing: Existing | None) -> Iterator[Said]:
    """Everything to say about one object's Pods; ``pod`` is the Pod or the Pod template."""
    blocks = [block for group in plan.groups for block in group.blocks]
    yield _claims(obj, plan, existing)
    yield from _quota(plan, blocks, existing)
    yield from _nodes(plan, blocks)
    yield from _containers(plan, blocks)
    yield from _replacing(obj)
    yield from _choosing(pod, plan, blocks)
    yield from _queues(obj, pod, plan)


def _claims(obj: Mapping, plan: PodPlan, existing: Existing | None) -> Said:
    line = plan.spec.line
    if existing is not None and existing.kind == "ResourceClaim":
        return Said(
            "ONE_CLAIM_SHARED",
            Kind.CHANGES,
            line,
            f"All Pods share the devices of {existing.name}; before, each had its own.",
        )
    source = existing.name if existing else " and ".join(_names(plan))
    many = _at_once(obj)
    return Said(
        "ONE_CLAIM_PER_POD",
        Kind.CHANGES,
        line,
        f"Each Pod gets {'a claim' if len(plan.groups) == 1 else 'claims'} of its own from "
        f"{source}{many}, held from its start to its end.",
    )


def _quota(plan: PodPlan, blocks: Sequence[Block], existing: Existing | None) -> Iterator[Said]:
    line = plan.spec.line
    for target, count in _totals(blocks):
        still = (
            f" A quota on requests.{target.resource} counts these claims too."
            if target.served
            else ""
        )
        yield Said(
            "QUOTA_KEYS",
            Kind.CHANGES,
            line,
            f"A Pod counts {count} under {target.device_class}.deviceclass.resource.k8s.io/devices "
            f"and {len(plan.groups)} under count/resourceclaims.resource.k8s.io, no longer "
            f"under requests.{target.resource}.{still}",
        )
    if existing is None:
        yield Said(
            "MADE_OUTSIDE",
            Kind.CHANGES,
            line,
            "You make the template yourself, so Berth counts its claims as made outside. Ask for "
            "devices first and choose that claim here, and they count as one ask.",
        )


def _nodes(plan: PodPlan, blocks: Sequence[Block]) -> Iterator[Said]:
    line = plan.spec.line
    for target, _ in _totals(blocks):
        if target.by_plugin:
            there = "none" if target.by_dra == 0 else "unknown"
            there = str(target.by_dra) if target.by_dra else there
            yield Said(
                "ONLY_DRA_NODES",
                Kind.CHANGES,
                line,
                f"Claims get only devices that DRA serves ({there} now); the device plugin's "
                f"{target.by_plugin} under {target.resource} are not for them.",
            )
        if target.served:
            yield Said(
                "WORKS_UNCHANGED",
                Kind.CHECK,
                line,
                f"DRA also serves Pods that go on asking for {target.resource}: as it was, the "
                "manifest runs on either path. A claim can be shared, and be watched.",
            )
        if target.resource.endswith(SEVERAL_TIMES):
            yield Said(
                "GIVEN_OUT_SEVERAL_TIMES",
                Kind.CHECK,
                line,
                f"Under {target.resource} a plugin gives one device to several Pods; a claim for "
                f"{target.device_class} has it alone unless the class says otherwise.",
            )
    yield Said(
        "NO_WAY_BACK",
        Kind.CHANGES,
        line,
        "A Pod that names a claim never gets a device of the plugin. Keep the old manifest for as "
        "long as nodes may go back.",
    )


def _containers(plan: PodPlan, blocks: Sequence[Block]) -> Iterator[Said]:
    for container in plan.containers:
        for name in container.without_limits:
            yield Said(
                "REQUEST_WITHOUT_LIMIT",
                Kind.CHANGES,
                container.resources.line,
                f"{container.name} asked for {name} in requests alone, which Kubernetes refuses; "
                "the claim asks for as many.",
            )
        for block in blocks:
            if not container.init or container.key not in block.used_by:
                continue
            asked, others = container.counts[block.target.resource], block.users[0]
            if block.count > asked:
                yield Said(
                    "INIT_SEES_MORE",
                    Kind.CHANGES,
                    container.node.line,
                    f"{container.name} sees the {block.count} devices of {others.name}, and asked "
                    f"for {asked}.",
                )
            elif others is container and len(blocks) > 1:
                yield Said(
                    "INIT_HOLDS_ON",
                    Kind.CHANGES,
                    container.node.line,
                    f"The Pod holds the {asked} devices of {container.name} until it ends; before, "
                    "they were used again by the containers after it.",
                )
    apart = {block.users[0].name for block in blocks if not block.users[0].init}
    if len(apart) > 1:
        yield Said(
            "CONTAINERS_APART",
            Kind.CHANGES,
            plan.spec.line,
            f"{_listed(sorted(apart))} keep devices of their own: each names its own request.",
        )


def _replacing(obj: Mapping) -> Iterator[Said]:
    kind = obj.text("kind")
    if kind in ("Pod", "Job"):
        yield Said(
            "CANNOT_BE_CHANGED",
            Kind.CHECK,
            obj.line,
            f"A {kind} that is there cannot be changed to this: delete it first.",
        )
    if kind in REPLACING:
        yield Said(
            "PODS_ARE_REPLACED",
            Kind.CHECK,
            obj.line,
            "Applied over the one that is there, it replaces its Pods: those that run give their "
            "devices back and start anew.",
        )
    if kind == "Deployment" and _surges(obj):
        yield Said(
            "SURGE",
            Kind.CHECK,
            obj.line,
            "A rolling update starts Pods before it ends old ones, and each needs devices of its "
            "own. Where the quota is used up they wait (QUOTA_EXCEEDED): set maxSurge to 0.",
        )


def _choosing(pod: Mapping, plan: PodPlan, blocks: Sequence[Block]) -> Iterator[Said]:
    spec, targets = plan.spec, [target for target, _ in _totals(blocks)]
    for label in _node_labels(spec, targets):
        yield Said(
            "NODE_LABELS",
            Kind.CHECK,
            label.line,
            f"Nodes are chosen by {label.text}, which tools beside the plugin write: it may be "
            "gone with it. A claim can choose by the device itself.",
        )
    tolerated = set(_tolerated(spec))
    for target in targets:
        if target.resource not in tolerated and None not in tolerated:
            yield Said(
                "TOLERATION_NOT_ADDED",
                Kind.CHECK,
                spec.line,
                f"Some clusters let Pods that ask for {target.resource} tolerate the taint of that "
                "name by themselves; with a claim nobody adds that. Add it where nodes have it.",
            )
    for container in plan.containers:
        for name in _variables(container.node):
            yield Said(
                "DEVICES_BY_VARIABLE",
                Kind.CHECK,
                name.line,
                f"{container.name} sets {name.text}: the claim's driver decides which devices it "
                "sees, and numbers start at 0 within it.",
            )
    runtime = spec.get("runtimeClassName")
    if isinstance(runtime, Scalar) and not runtime.empty:
        yield Said(
            "RUNTIME_CLASS",
            Kind.CHECK,
            runtime.line,
            f"The runtime class {runtime.text} may be there for the plugin only; DRA drivers give "
            "devices by CDI, which needs none.",
        )


def _queues(obj: Mapping, pod: Mapping, plan: PodPlan) -> Iterator[Said]:
    for part in {id(each): each for each in (obj, pod)}.values():
        labels = part.get("metadata")
        labels = labels.get("labels") if isinstance(labels, Mapping) else None
        if isinstance(labels, Mapping) and labels.text("kueue.x-k8s.io/queue-name"):
            yield Said(
                "QUEUE_COUNTS_OTHERWISE",
                Kind.CHECK,
                labels.line,
                "Kueue admits this by the extended resource; for claims its administrators map the "
                "class to a resource of the queue first.",
            )
            break
    scheduler = plan.spec.get("schedulerName")
    if isinstance(scheduler, Scalar) and scheduler.text not in ("", "default-scheduler"):
        yield Said(
            "OTHER_SCHEDULER",
            Kind.CHECK,
            scheduler.line,
            f"{scheduler.text} schedules these Pods: make sure that it allocates claims.",
        )


# --- reading --------------------------------------------------------------------------------------


def _totals(blocks: Iterable[Block]) -> list[tuple[Target, int]]:
    """How many devices one Pod holds of each class."""
    found: dict[str, tuple[Target, int]] = {}
    for block in blocks:
        target, before = found.get(block.target.resource, (block.target, 0))
        found[block.target.resource] = (target, before + block.count)
    return list(found.values())


def _names(plan: PodPlan) -> list[str]:
    return [template["metadata"]["name"] for template in plan.templates]


def _at_once(obj: Mapping) -> str:
    spec = obj.get("spec")
    if not isinstance(spec, Mapping):
        return ""
    for name in ("replicas", "parallelism"):
        count = spec.text(name)
        if count.isdigit() and int(count) > 1:
            return (
                f" ({count} claims for {count} {'replicas' if name == 'replicas' else 'at once'})"
            )
    return ""


def _surges(obj: Mapping) -> bool:
    spec = obj.get("spec")
    strategy = spec.get("strategy") if isinstance(spec, Mapping) else None
    if not isinstance(strategy, Mapping):
        return True
    rolling = strategy.get("rollingUpdate")
    if strategy.text("type") == "Recreate":
        return False
    return not (isinstance(rolling, Mapping) and rolling.text("maxSurge") in ("0", "0%"))


def _node_labels(spec: Mapping, targets: Sequence[Target]) -> Iterator[Scalar]:
    """Labels of a vendor or a cloud by which nodes are chosen, each once."""
    domains = {target.resource.partition("/")[0] for target in targets}
    seen: set[str] = set()
    for label in (*_keys(spec.get("nodeSelector")), *_expressions(spec.get("affinity"))):
        domain = label.text.partition("/")[0]
        vendor = any(domain == each or domain.endswith(f".{each}") for each in domains)
        if (vendor or label.text in CLOUD_LABELS) and label.text not in seen:
            seen.add(label.text)
            yield label


def _keys(node: Node | None) -> list[Scalar]:
    pairs = node.pairs if isinstance(node, Mapping) else []
    return [key for key, _ in pairs if isinstance(key, Scalar)]


def _expressions(node: Node | None) -> list[Scalar]:
    affinity = node.get("nodeAffinity") if isinstance(node, Mapping) else None
    if affinity is None:
        return []
    keys = [part.get("key") for part in walk(affinity) if isinstance(part, Mapping)]
    return [key for key in keys if isinstance(key, Scalar)]


def _tolerated(spec: Mapping) -> Iterator[str | None]:
    """Keys of taints that are tolerated; None stands for every taint."""
    found = spec.get("tolerations")
    for item in found.items if isinstance(found, Items) else ():
        if isinstance(item, Mapping):
            yield item.text("key") or None


def _variables(container: Mapping) -> Iterator[Scalar]:
    found = container.get("env")
    for item in found.items if isinstance(found, Items) else ():
        name = item.get("name") if isinstance(item, Mapping) else None
        if isinstance(name, Scalar) and name.text in CHOOSING:
            yield name


def _listed(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))
