"""Asks the real kube-scheduler: loads an object set, makes one Pod after the other, reads it.

etcd, API server and scheduler only: the claim controller would give back every allocation whose
consumer does not exist. A Pod is pinned to the node in question; what the scheduler writes to it
and to its claims is the answer.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from devices.cluster import connect
from devices.cluster.gateway import ClusterError, Gateway, Ref, Rejected
from devices.dra.gates import Gates, gates
from devices.dra.quantity import read as read_quantity
from playground.agreement.nodesides import NAMESPACE, ROOM
from playground.agreement.objectclaims import Obj, Question
from playground.agreement.objectsets import ObjectSet
from playground.building.releases import minor
from playground.plane.components import API_SERVER, ETCD, SCHEDULER, Tuning
from playground.plane.controlplane import ControlPlane

PATIENCE: Final = 20.0
#: Gates that this comparison leaves off: they need parts that do not run here.
LEFT_OFF: Final = (
    "DRANodeAllocatableResources",
    "DRAWorkloadResourceClaims",
    "DRAResourcePoolStatus",
    "DRAPartitionableDevicesType",
)
_ORDER: Final = ("Node", "DeviceClass", "ResourceSlice", "DeviceTaintRule", "ResourceClaim", "Pod")
#: What the scheduler says of a node that cannot take the Pod; an error of its own reads otherwise.
_PLAIN: Final = (
    "cannot allocate all claims",
    "does not exist",
    "resourceclaim not available on the node",
    "resourceclaim in use",
    "node(s) were unschedulable",
    "node(s) had untolerated taint",
    "node(s) didn't match Pod's node affinity/selector",
    "Insufficient ",
    "Too many pods",
)


@dataclass(frozen=True, slots=True)
class Scheduled:
    """What the scheduler answered: a verdict, the devices of each claim, and its text."""

    verdict: str
    devices: tuple[tuple[str, ...], ...] = ()
    text: str = ""


class RealScheduler:
    """One control plane without controllers, asked set by set. A context manager."""

    def __init__(self, folder: Path, release: str) -> None:
        self.gates = scheduler_gates(release)
        tuning = Tuning(
            disabled_admission_plugins=("ServiceAccount", "TaintNodesByCondition"), audit=False
        )
        self._plane = ControlPlane(
            folder,
            release,
            gates=_flags(self.gates),
            components=(ETCD, API_SERVER, SCHEDULER),
            tuning=tuning,
        )

    def __enter__(self) -> Self:
        self._plane.start(tied=True)
        self._gateway = connect(self._plane.admin_kubeconfig)
        labels = {"resource.kubernetes.io/admin-access": "true"}
        self._gateway.merge(Ref("Namespace", NAMESPACE), {"metadata": {"labels": labels}})
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._plane.stop()
        self._plane.wipe()

    def ask(self, one: ObjectSet, questions: Sequence[Question]) -> Iterator[Scheduled]:
        """The scheduler's answers to questions about a set, in their order.

        Raises Rejected where the API server does not take the set.
        """
        made: list[Ref] = []
        try:
            self._load(one, made)
            # The scheduler hears of the objects by its own watches.
            time.sleep(1)
            for question in questions:
                yield self._ask(question)
        finally:
            for ref in reversed(made):
                _remove(self._gateway, ref)
            time.sleep(0.5)

    def forget(self) -> None:
        """Starts the scheduler anew: what it remembers of a Pod that waited for binding outlives
        the Pod, its claims and the whole set.
        """
        self._plane.stop_component(SCHEDULER)
        self._plane.start_component(SCHEDULER)

    def again(self, question: Question) -> Scheduled:
        """Asks once more after a while, for answers that may be after-effects of the one before."""
        time.sleep(1)
        return self._ask(question)

    def _load(self, one: ObjectSet, made: list[Ref]) -> None:
        for obj in sorted(one.objects, key=lambda o: _ORDER.index(o["kind"])):
            live = {k: v for k, v in obj.items() if k not in ("status", "apiVersion")}
            meta = {k: v for k, v in obj["metadata"].items() if k != "uid"}
            created = self._gateway.create({**live, "metadata": meta})
            made.append(Ref(obj["kind"], meta["name"], meta.get("namespace", "")))
            status = _node_status(obj) if obj["kind"] == "Node" else obj.get("status")
            if status:
                self._gateway.replace({**created, "status": status}, subresource="status")

    def _ask(self, question: Question) -> Scheduled:
        made = []
        try:
            for claim in question.claims:
                self._gateway.create({k: v for k, v in claim.items() if k != "apiVersion"})
                made.append(Ref("ResourceClaim", claim["metadata"]["name"], NAMESPACE))
            pod = pod_of(question)
            self._gateway.create(pod)
            made.append(Ref("Pod", pod["metadata"]["name"], NAMESPACE))
            return self._answer(made[-1], made[:-1])
        except Rejected as error:
            return Scheduled("REJECTED", text=str(error))
        finally:
            for ref in reversed(made):
                _remove(self._gateway, ref)

    def _answer(self, pod: Ref, claims: Sequence[Ref]) -> Scheduled:
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            found = self._gateway.get(pod) or {}
            allocated = [self._gateway.get(ref) or {} for ref in claims]
            given = [c.get("status", {}).get("allocation") for c in allocated]
            if found.get("spec", {}).get("nodeName") or (given and all(given)):
                return Scheduled("OK", tuple(_devices(allocated)))
            for condition in found.get("status", {}).get("conditions", ()):
                if condition["type"] == "PodScheduled" and condition["status"] == "False":
                    return _refusal(condition)
            time.sleep(0.02)
        return Scheduled("SILENT", text=f"no answer within {PATIENCE:.0f} s")


def scheduler_gates(release: str) -> Gates:
    """Every gate of the release but those that need parts that do not run here."""
    wanted = minor(release) if release.count(".") > 1 else release
    known = gates(wanted, every=True)
    return gates(wanted, {gate: False for gate in LEFT_OFF if gate in known}, every=True)


def pod_of(question: Question) -> Obj:
    """The Pod of a question, pinned to its node."""
    names = [*(claim["metadata"]["name"] for claim in question.claims), *question.held]
    pin = {"key": "metadata.name", "operator": "In", "values": [question.node]}
    term: Obj = {"matchFields": [pin]}
    if question.terms:
        term["matchExpressions"] = list(question.terms)
    required = {"nodeSelectorTerms": [term]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    return {
        "kind": "Pod",
        "metadata": {"name": f"pod-{question.id}", "namespace": NAMESPACE},
        "spec": {
            "containers": [{"name": "main", "image": "none"}],
            **question.spec,
            "affinity": affinity,
            "resourceClaims": [{"name": name, "resourceClaimName": name} for name in names],
        },
    }


def _node_status(node: Obj) -> Obj:
    ready = {"type": "Ready", "status": "True", "reason": "Simulated", "message": ""}
    return {
        **(node.get("status") or {"allocatable": ROOM, "capacity": ROOM}),
        "conditions": [ready],
    }


def _flags(cluster: Gates) -> Mapping[str, bool]:
    every = gates(cluster.release, every=True)
    return {gate: gate in cluster for gate in sorted(every.on)}


def _refusal(condition: Mapping[str, Any]) -> Scheduled:
    text = condition.get("message", "")
    if condition.get("reason") == "SchedulerError":
        return Scheduled("TIMEOUT" if "timed out trying" in text else "FATAL", text=text)
    plain = any(words in text for words in _PLAIN)
    return Scheduled("NO" if plain else "NODE_ERROR", text=text)


def _devices(claims: Sequence[Obj]) -> Iterator[tuple[str, ...]]:
    for number, claim in enumerate(claims):
        for one in claim["status"]["allocation"]["devices"]["results"]:
            amounts = {k: read_quantity(v) for k, v in one.get("consumedCapacity", {}).items()}
            consumed = " ".join(f"{k}={v.nanos}" for k, v in sorted(amounts.items()))
            yield str(number), one["request"], one["driver"], one["pool"], one["device"], consumed


def _remove(gateway: Gateway, ref: Ref) -> None:
    """Removes an object for good, whatever holds it, and waits until it is gone."""
    for _ in range(50):
        found = gateway.get(ref)
        if found is None:
            return
        try:
            if found["metadata"].get("finalizers"):
                gateway.merge(ref, {"metadata": {"finalizers": None}})
            if ref.kind == "ResourceClaim" and found.get("status"):
                meta = (gateway.get(ref) or found)["metadata"]
                gateway.replace({**found, "status": {}, "metadata": meta}, subresource="status")
            gateway.delete(ref, grace_seconds=0)
        except ClusterError as error:
            if not error.retry and not isinstance(error, Rejected):
                raise
        time.sleep(0.01)
