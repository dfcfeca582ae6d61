"""A real control plane in which anything happens to Pods, claims, drivers and nodes, by a seed.

After each settling the ledger is asked what fits, and the scheduler whether it lets that in.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from devices.cluster.gateway import ClusterError, Gateway, Ref, Rejected
from devices.dra.gates import gates
from devices.dra.ledgercompare import Difference
from devices.dra.ledgerlog import node_sums
from devices.dra.quantity import NANO, ZERO, Quantity, canonical
from devices.dra.snapshot import Snapshot, read
from tests.devices.ledger.memory import Book

Obj = dict[str, Any]
DRIVER: Final = "ledger.example.com"
GATE: Final = "DRANodeAllocatableResources"
PATIENCE: Final = 60.0
KINDS: Final = ("ResourceSlice", "ResourceClaim", "DeviceClass", "Node", "Pod")
UNITS: Final = {"cpu": NANO // 1000, "memory": NANO}


@dataclass(slots=True)
class Tally:
    """What was asked, and which answers were not as the ledger said.

    ``uncharged`` are differences that kube-scheduler makes (see `Place.uncharged`).
    """

    settled: int = 0
    probes: int = 0
    misses: list[str] = field(default_factory=list)
    differences: list[str] = field(default_factory=list)
    uncharged: set[str] = field(default_factory=set)

    def __str__(self) -> str:
        agreed = self.probes - len(self.misses)
        return (
            f"{self.settled} times settled, {agreed} of {self.probes} probes agree, "
            f"{len(self.differences)} differences, {len(self.uncharged)} Pods let in uncharged\n"
            + "\n".join(self.misses + self.differences)
        )


class Place:
    """Two nodes, a driver on each, a namespace; everything carries the place's name."""

    def __init__(self, gateway: Gateway, name: str, release: str, seed: int) -> None:
        self.gateway, self.name, self.seed = gateway, name, seed
        self.release = ".".join(release.split(".")[:2])
        self.dice = random.Random(seed)
        self.nodes = [f"{name}-n{number}" for number in (1, 2)]
        self.generation = dict.fromkeys(self.nodes, 1)
        self.book = Book()
        self.made = 0
        self.restarted: set[str] = set()

    # --- what is there ---

    def build(self) -> None:
        self.gateway.create({"kind": "Namespace", "metadata": {"name": self.name}})
        account = Ref("ServiceAccount", "default", self.name)
        until(lambda: self.gateway.get(account) is not None, "the namespace got no account")
        for kind in ("core", "mem", "gpu"):
            expression = f'device.driver == "{DRIVER}" && device.attributes["{DRIVER}"].kind == '
            self.gateway.create(
                {
                    "kind": "DeviceClass",
                    "metadata": {"name": f"{self.name}-{kind}"},
                    "spec": {"selectors": [{"cel": {"expression": f'{expression}"{kind}"'}}]},
                }
            )
        for node in self.nodes:
            self.gateway.create(
                {"kind": "Node", "metadata": {"name": node, "labels": {"at": node}}}
            )
            self._status(node, ready=True)
            self.publish(node)

    def remove(self) -> None:
        for pod in self.gateway.list("Pod", namespace=self.name).items:
            self._delete("Pod", pod["metadata"]["name"], self.name)
        for node in self.nodes:
            self.withdraw(node)
            self._delete("Node", node)
        for kind in ("core", "mem", "gpu"):
            self._delete("DeviceClass", f"{self.name}-{kind}")
        self.gateway.delete(Ref("Namespace", self.name))

    def _status(self, node: str, *, ready: bool) -> None:
        room = {"cpu": "24", "memory": "48Gi", "pods": "400", "hugepages-2Mi": "1Gi"}
        word = "True" if ready else "False"
        status: Obj = {
            "allocatable": room,
            "capacity": room,
            "conditions": [{"type": "Ready", "status": word, "reason": "Simulated", "message": ""}],
        }
        if self.release != "1.36":
            status["declaredFeatures"] = [GATE]
        self.gateway.merge(Ref("Node", node), {"status": status}, subresource="status")

    def publish(self, node: str) -> None:
        """The driver's one slice of the node, at its generation."""
        spec = {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {
                "name": node, "generation": self.generation[node], "resourceSliceCount": 1,
            },
            "devices": [*self._cores(), *self._memory(), *self._gpus()],
        }  # fmt: skip
        obj: Obj = {"kind": "ResourceSlice", "metadata": {"name": f"{node}-slice"}, "spec": spec}
        # The API server knows from a watch of its own which features a node has: it may be late.
        until(lambda: self._taken(obj), f"the slice of {node} was never taken")

    def _taken(self, obj: Obj) -> bool:
        found = self.gateway.get(Ref("ResourceSlice", obj["metadata"]["name"]))
        try:
            if found is None:
                self.gateway.create(obj)
            else:
                self.gateway.replace({**obj, "metadata": found["metadata"]})
        except Rejected:
            return False
        return True

    def withdraw(self, node: str) -> None:
        self._delete("ResourceSlice", f"{node}-slice")

    def _cost(self, **by_resource: dict[str, str]) -> Obj:
        """What a device costs, in the release's shape; 1.36 has no overhead: all are mappings."""
        if self.release == "1.36":
            return {
                "nodeAllocatableResourceMappings": {
                    resource: {
                        new: amount
                        for old, new in (
                            ("key", "capacityKey"),
                            ("per_pod", "allocationMultiplier"),
                            ("times", "allocationMultiplier"),
                        )
                        if (amount := cost.get(old))
                    }
                    for resource, cost in by_resource.items()
                }
            }
        found: Obj = {}
        for resource, cost in by_resource.items():
            if "key" in cost:
                found[resource] = {
                    "mapping": {"capacityKey": cost["key"], "capacityMultiplier": "1"}
                }
            elif "times" in cost:
                found[resource] = {"mapping": {"deviceMultiplier": cost["times"]}}
            else:
                per = {"perPod": cost["per_pod"]}
                if "per_container" in cost:
                    per["perContainer"] = cost["per_container"]
                found[resource] = {"overhead": per}
        return {"nodeAllocatableResources": found}

    def _device(self, name: str, kind: str, zone: int, **more: Any) -> Obj:
        attributes = {
            f"{DRIVER}/kind": {"string": kind},
            "resource.kubernetes.io/numaNode": {"int": zone},
        }
        return {"name": name, "attributes": attributes, **more}

    def _cores(self) -> Iterable[Obj]:
        for number in range(4):
            cost = self._cost(cpu={"times": "1500m"})
            yield self._device(f"core-{number}", "core", number % 2, **cost)

    def _memory(self) -> Iterable[Obj]:
        for number in range(2):
            yield self._device(
                f"mem-{number}",
                "mem",
                number,
                allowMultipleAllocations=True,
                capacity={f"{DRIVER}/size": {"value": "8Gi"}},
                **self._cost(memory={"key": f"{DRIVER}/size"}),
            )

    def _gpus(self) -> Iterable[Obj]:
        for number in range(4):
            cost = self._cost(
                memory={"per_pod": "512Mi", "per_container": "64Mi"}, cpu={"per_pod": "100m"}
            )
            yield self._device(f"gpu-{number}", "gpu", number % 2, **cost)

    # --- what happens ---

    def act(self) -> str:
        """One thing at random; returns what it was."""
        acts: list[tuple[int, Callable[[], str]]] = [
            (5, self._ordinary), (7, self._claiming), (3, self._sharing), (5, self._ending),
            (1, self._driver_restarts), (1, self._node_restarts),
        ]  # fmt: skip
        [act] = self.dice.choices([one for _, one in acts], [weight for weight, _ in acts])
        return act()

    def _name(self, word: str) -> str:
        self.made += 1
        return f"{word}-{self.made}"

    def _ordinary(self) -> str:
        spec = self._spec()
        if self.dice.random() < 0.3:
            again = self.dice.random() < 0.5
            spec["initContainers"] = [
                {
                    **self._container("first"),
                    **({"restartPolicy": "Always"} if again else {}),
                }
            ]
        if self.dice.random() < 0.25:
            spec["resources"] = {"requests": {"cpu": "2500m"}}
        return self._pod(self._name("plain"), spec)

    def _claiming(self) -> str:
        kinds = self.dice.sample(["core", "mem", "gpu"], self.dice.randint(1, 2))
        name = self._name("claims")
        spec = self._spec(claims=kinds)
        for kind in kinds:
            self.gateway.create(
                {
                    "kind": "ResourceClaimTemplate",
                    "metadata": {"name": f"{name}-{kind}", "namespace": self.name},
                    "spec": {"spec": self._asking(kind)},
                }
            )
        spec["resourceClaims"] = [
            {"name": kind, "resourceClaimTemplateName": f"{name}-{kind}"} for kind in kinds
        ]
        if self.dice.random() < 0.2:
            spec["resources"] = {"requests": {"cpu": "6", "memory": "12Gi"}}
        return self._pod(name, spec)

    def _sharing(self) -> str:
        """A named claim that two Pods use, one after the other or both at once: overhead may be
        shared, a mapping may not.
        """
        name = self._name("shared")
        kind = self.dice.choice(["gpu", "core"])
        self.gateway.create(
            {
                "kind": "ResourceClaim",
                "metadata": {"name": name, "namespace": self.name},
                "spec": self._asking(kind),
            }
        )
        for number in (1, 2):
            spec = self._spec(claims=[kind])
            spec["resourceClaims"] = [{"name": kind, "resourceClaimName": name}]
            self._pod(f"{name}-{number}", spec)
        return name

    def _ending(self) -> str:
        pods = self._pods()
        if not pods:
            return "nothing to end"
        name = self.dice.choice(pods)["metadata"]["name"]
        self._delete("Pod", name, self.name)
        return f"{name} ends"

    def _driver_restarts(self) -> str:
        node = self.dice.choice(self.nodes)
        self.generation[node] += 1
        self.publish(node)
        return f"driver of {node} restarts"

    def _node_restarts(self) -> str:
        """As a kubelet does it: slices go, the node is not ready, then all comes back."""
        node = self.dice.choice(self.nodes)
        self.restarted.add(node)
        self.withdraw(node)
        self._status(node, ready=False)
        self.look()
        self._status(node, ready=True)
        self.generation[node] = 1
        self.publish(node)
        return f"{node} restarts"

    def _asking(self, kind: str) -> Obj:
        exactly: Obj = {"deviceClassName": f"{self.name}-{kind}"}
        if kind == "mem":
            size = self.dice.choice(["1Gi", "1536Mi", "2G"])
            exactly["capacity"] = {"requests": {f"{DRIVER}/size": size}}
        return {"devices": {"requests": [{"name": kind, "exactly": exactly}]}}

    def _container(self, name: str, claims: Iterable[str] = ()) -> Obj:
        cpu = self.dice.choice(["100m", "250m", "333m", "1"])
        memory = self.dice.choice(["128Mi", "300M", "1Gi", "1e9"])
        resources: Obj = {"requests": {"cpu": cpu, "memory": memory}}
        if claims:
            resources["claims"] = [{"name": claim} for claim in claims]
        return {"name": name, "image": "none", "resources": resources}

    def _spec(self, claims: Iterable[str] = ()) -> Obj:
        many = self.dice.randint(1, 2)
        node = self.dice.choice([*self.nodes, ""])
        return self._pinned([self._container(f"m{n}", claims) for n in range(many)], node)

    def _pinned(self, containers: list[Obj], node: str = "") -> Obj:
        values = [node] if node else self.nodes
        term = {"matchExpressions": [{"key": "at", "operator": "In", "values": values}]}
        return {
            "containers": containers,
            "terminationGracePeriodSeconds": 0,
            "tolerations": [{"operator": "Exists"}],
            "affinity": {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}
                }
            },
        }

    def _pod(self, name: str, spec: Obj) -> str:
        self.gateway.create(
            {"kind": "Pod", "metadata": {"name": name, "namespace": self.name}, "spec": spec}
        )
        return name

    def _pods(self) -> list[Obj]:
        found = self.gateway.list("Pod", namespace=self.name).items
        return sorted(found, key=lambda pod: pod["metadata"]["name"])

    def _delete(self, kind: str, name: str, namespace: str = "") -> None:
        self.gateway.delete(Ref(kind, name, namespace), grace_seconds=0)

    # --- what it comes to ---

    def settle(self) -> None:
        """Until every Pod has an answer, and no claim is held for a Pod that is gone."""
        until(self._settled, "the Pods never settled")

    def _settled(self) -> bool:
        pods = self._pods()
        uids = {pod["metadata"]["uid"] for pod in pods}
        claims = self.gateway.list("ResourceClaim", namespace=self.name).items
        held = {
            consumer["uid"]
            for claim in claims
            for consumer in claim.get("status", {}).get("reservedFor", ())
        }
        return held <= uids and all(_answered(pod) for pod in pods)

    def look(self) -> Snapshot:
        """One look of the ledger at the objects of now."""
        objects: list[Obj] = []
        for kind in KINDS:
            objects += ({"kind": kind, **obj} for obj in self.gateway.list(kind).items)
        mine = [obj for obj in objects if self._mine(obj)]
        found = read(mine, gates=gates(self.release, {GATE: True}))
        self.book.look(found)
        return found

    def _mine(self, obj: Obj) -> bool:
        meta = obj["metadata"]
        return self.name in (meta.get("namespace"), meta["name"][: len(self.name)])

    def left(self, node: str, resource: str) -> Quantity:
        """What the ledger says is free."""
        charged = node_sums(self.book.charges.values()).get((node, resource), ZERO)
        assert charged is not None
        return self.look_at(node, resource) - charged

    def look_at(self, node: str, resource: str) -> Quantity:
        offered = self.book.snapshot.nodes[node].allocatable
        return offered[resource]

    def uncharged(self, one: Difference) -> bool:
        """Whether kube-scheduler, not the ledger, forgot a claim: while a node's slices are away
        1.37 finds no device to a claim, lets a second Pod in, and charges it nothing
        (`claimHasNodeAllocatableMappedDevice` in dynamicresources.go).
        """
        shared = one.claim.rpartition("/")[2].startswith("shared-")
        return (
            self.release != "1.36" and shared and one.node in self.restarted and one.status == ZERO
        )

    def probe(self, tally: Tally) -> None:
        """The largest Pod that fits by the ledger is let in, and one unit more is not. A node on
        which the scheduler has forgotten a claim is not asked: it lets in too much.
        """
        forgotten = {one.node for one in self.book.differences if self.uncharged(one)}
        if not (nodes := [node for node in self.nodes if node not in forgotten]):
            return
        node = self.dice.choice(nodes)
        resource = self.dice.choice(["cpu", "memory"])
        left, unit = self.left(node, resource), UNITS[resource]
        if left.nanos < unit:
            return
        tally.probes += 1
        said = f"seed {self.seed}, {node} {resource}: {canonical(left)} left"
        rounded = Quantity(left.nanos // unit * unit)
        fits = self._try(node, resource, rounded)
        if fits != "scheduled":
            tally.misses.append(f"{said}, and {canonical(rounded)} is not let in: {fits}")
            return
        more = rounded + Quantity(unit)
        answer = self._try(node, resource, more)
        if f"Insufficient {resource}" not in answer:
            tally.misses.append(f"{said}, and {canonical(more)} is let in: {answer}")

    def _try(self, node: str, resource: str, amount: Quantity) -> str:
        container = {
            "name": "probe",
            "image": "none",
            "resources": {"requests": {resource: canonical(amount)}},
        }
        name = self._pod(self._name("probe"), self._pinned([container], node))
        ref = Ref("Pod", name, self.name)
        fits = amount.nanos <= self.left(node, resource).nanos
        try:
            # Whoever should fit is given time: the scheduler hears late of what has ended. Who
            # should not is looked at twice, for the same reason.
            end = time.monotonic() + (15.0 if fits else 1.0)
            answer = ""
            while True:
                pod = self.gateway.get(ref) or {}
                answer = _answered(pod) or answer
                if answer == "scheduled" or (answer and time.monotonic() > end):
                    return answer
                if time.monotonic() > end + PATIENCE:
                    return "no answer"
                time.sleep(0.05)
        finally:
            self._delete("Pod", name, self.name)
            until(lambda: self.gateway.get(ref) is None, "the probe never went")


def run(place: Place, *, pods: int, probes: int, every: int) -> Tally:
    """Lets things happen until so many Pods were made, settling after `every` of them."""
    tally = Tally()
    per_settling = max(1, -(-probes * every // pods))
    while place.made < pods or tally.probes < probes:
        for _ in range(every):
            place.act()
        place.settle()
        place.look()
        tally.settled += 1
        tally.uncharged |= {one.pod for one in place.book.differences if place.uncharged(one)}
        tally.differences += [
            f"seed {place.seed}: {one.pod} {one.resource}: log {one.log}, objects {one.objects}, "
            f"status {one.status} ({one.code})"
            for one in place.book.differences
            if one.verdict != "later" and not place.uncharged(one)
        ]
        for _ in range(min(per_settling, probes - tally.probes)):
            place.probe(tally)
    return tally


def _answered(pod: Obj) -> str:
    """Whether it was scheduled, or why not; empty while nobody has looked at it."""
    if pod.get("spec", {}).get("nodeName"):
        return "scheduled"
    for condition in pod.get("status", {}).get("conditions", ()):
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            return str(condition.get("message") or condition.get("reason"))
    return ""


def until(true: Callable[[], bool], why: str) -> None:
    end = time.monotonic() + PATIENCE
    while True:
        try:
            if true():
                return
        except ClusterError as error:
            if not error.retry:
                raise
        if time.monotonic() > end:
            raise AssertionError(why)
        time.sleep(0.1)
