"""What keeps a Pod off a node apart from devices, in the scheduler's own words and order.

Models cordons, taints, node selector and affinity, Pod count and resources (with what the Pod's
devices cost of the node). What is not modelled the Pod itself names (`Pod.unmodelled`), and a node
that says nothing about a resource refuses nothing for it. Sources: the scheduler's plugins
nodeunschedulable, tainttoleration, nodeaffinity and noderesources; KEP-5517 for budgets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from devices.dra.ledger import accounts
from devices.dra.nodes import Node, NodeTaint
from devices.dra.podrequests import budget, container_requests, plus, pod_requests
from devices.dra.pods import NodeToleration, Pod
from devices.dra.quantity import ZERO, Quantity
from devices.dra.snapshot import Snapshot

#: Taints with other effects never keep a Pod from being placed.
_CLOSING: Final = frozenset({"NoSchedule", "NoExecute"})
#: What a cordon means to a Pod that tolerates it.
_CORDON: Final = NodeTaint("node.kubernetes.io/unschedulable", "", "NoSchedule")


@dataclass(frozen=True, slots=True)
class BudgetGap:
    """A Pod's budget that is smaller than what its containers and devices need together."""

    resource: str
    budget: Quantity
    containers: Quantity
    devices: Quantity

    def __str__(self) -> str:
        return (
            f"the Pod's {self.resource} request {self.budget} is smaller than containers "
            f"{self.containers} + devices {self.devices}; raise it to at least "
            f"{self.containers + self.devices}"
        )


def node_reasons(
    snapshot: Snapshot,
    pod: Pod,
    node: Node,
    more: Mapping[str, Quantity] | None = None,
    served: Collection[str] = (),
) -> tuple[str, ...]:
    """Why the Pod cannot be placed on the node; empty where nothing is in its way. ``more`` is what
    its devices would cost of the node, by resource; ``served`` are extended resources that it gets
    from DRA there.
    """
    reason = _place(pod, node)
    if reason:
        return (reason,)
    gaps = budget_gaps(pod, more or {})
    if gaps:
        return tuple(
            f"pod level request for {gap.resource} is insufficient to cover the aggregated"
            " container and node-allocatable DRA requests"
            for gap in gaps
        )
    return tuple(_resources(snapshot, pod, node, more or {}, served))


def budget_gaps(pod: Pod, more: Mapping[str, Quantity]) -> tuple[BudgetGap, ...]:
    """Budgets of the Pod as a whole that its containers and devices together exceed."""
    own = container_requests(pod)
    return tuple(
        BudgetGap(resource, amount, own.get(resource, ZERO), more[resource])
        for resource, amount in budget(pod).items()
        if resource in more and own.get(resource, ZERO) + more[resource] > amount
    )


def _place(pod: Pod, node: Node) -> str:
    if node.unschedulable and not _tolerated(_CORDON, pod.tolerations):
        return "node(s) were unschedulable"
    for taint in node.taints:
        if taint.effect in _CLOSING and not _tolerated(taint, pod.tolerations):
            return "node(s) had untolerated taint(s)"
    labelled = all(node.labels.get(key) == value for key, value in pod.node_selector.items())
    wanted = pod.affinity is None or any(term.matches(node) for term in pod.affinity)
    if not labelled or not wanted:
        return "node(s) didn't match Pod's node affinity/selector"
    return ""


def _tolerated(taint: NodeTaint, tolerations: Iterable[NodeToleration]) -> bool:
    return any(toleration.tolerates(taint) for toleration in tolerations)


def _resources(
    snapshot: Snapshot,
    pod: Pod,
    node: Node,
    more: Mapping[str, Quantity],
    served: Collection[str],
) -> Iterator[str]:
    if not node.allocatable:
        return
    most = node.allocatable.get("pods")
    if most is not None and pod_counts(snapshot)[node.name] + 1 > most.rounded_up():
        yield "Too many pods"
    held = accounts(snapshot).get(node.name, {})
    whole = budget(pod)
    extra = {name: amount for name, amount in more.items() if name not in whole}
    for resource, amount in plus((pod_requests(pod), extra)).items():
        account = held.get(resource)
        unknown = account is not None and account.free is None and account.allocatable
        if not amount or resource in served or unknown:
            continue
        if account is None or account.free is None or amount > account.free:
            yield f"Insufficient {resource}"


def pod_counts(snapshot: Snapshot) -> Counter[str]:
    """How many Pods are on each node and have not ended."""
    return snapshot.once(
        "pod counts",
        lambda s: Counter(p.node_name for p in s.pods.values() if p.node_name and not p.finished),
    )
