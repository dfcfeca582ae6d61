"""What would let a Pod onto a node whose devices it could have: changes of where it may go.

Each change was tried, as in `hints`: a label less in the node selector, no node affinity, a taint
of a node tolerated.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from devices.dra.allocate import Kind
from devices.dra.hints import Change, Hint
from devices.dra.pods import NodeToleration, Pod
from devices.dra.podverdict import PodVerdict, pod_verdicts
from devices.dra.snapshot import Snapshot

#: How many nodes whose devices would do are tried.
MOST_NODES: Final = 64


def pod_hints(snapshot: Snapshot, pod: Pod, seen: Sequence[PodVerdict]) -> tuple[Hint, ...]:
    """Changes of the Pod's own placement of which each alone lets it in, the smallest first; empty
    where it fits, where devices are what it lacks, or where no such change helps.
    """
    if any(verdict.kind in (Kind.OK, Kind.FATAL) for verdict in seen):
        return ()
    nodes = [v.node for v in seen if v.devices is Kind.OK][:MOST_NODES]
    found = []
    for size, text, changed in _options(snapshot, pod, nodes) if nodes else ():
        after = next((v for v in pod_verdicts(snapshot, changed, nodes) if v.kind is Kind.OK), None)
        if after is not None:
            found.append(Hint(Change.PLACE, text, after.node, size, pod=changed))
    return tuple(sorted(found, key=lambda hint: (hint.size, hint.text)))


def _options(snapshot: Snapshot, pod: Pod, nodes: Sequence[str]) -> Iterator[tuple[int, str, Pod]]:
    for key, value in sorted(pod.node_selector.items()):
        kept = {other: v for other, v in pod.node_selector.items() if other != key}
        yield 1, f"without node selector {key}={value}", replace(pod, node_selector=kept)
    if pod.affinity is not None:
        yield 1, "without the required node affinity", replace(pod, affinity=None)
    taints = {taint for name in nodes for taint in snapshot.node(name).taints}
    for taint in sorted(taints, key=str):
        more = NodeToleration(taint.key, "Equal", taint.value, taint.effect)
        changed = replace(pod, tolerations=(*pod.tolerations, more))
        yield 1, f"tolerating {taint} of nodes", changed
    limits = len(pod.node_selector) + (pod.affinity is not None)
    if limits > 1:
        changed = replace(pod, node_selector={}, affinity=None)
        yield limits, "without any node selector or affinity", changed
