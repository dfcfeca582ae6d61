"""Small clusters that change: nodes, slices that cost something, claims, Pods, and what the
scheduler writes for them.
"""

from __future__ import annotations

import copy
from typing import Any

from hypothesis import strategies as st

from devices.dra.gates import gates
from devices.dra.quantity import ZERO, Quantity, canonical, parse
from devices.dra.snapshot import Snapshot, read

Obj = dict[str, Any]
ON = gates("1.37", {"DRANodeAllocatableResources": True})
AMOUNTS = ["0", "1", "500m", "3", "250m", "2000m", "1e3", "100Mi"]


class Cluster:
    """Objects as the API server has them, by kind and name; everything is in namespace `ns`."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], Obj] = {}
        self._made = 0

    @property
    def objects(self) -> list[Obj]:
        return copy.deepcopy(list(self._found.values()))

    def read(self) -> Snapshot:
        return read(self.objects, gates=ON)

    def node(self, name: str, **allocatable: str) -> Obj:
        return self._keep("Node", name, {}, {"allocatable": allocatable})

    def slices(
        self,
        pool: str,
        *,
        devices: int = 2,
        generation: int = 1,
        mapping: str = "",
        overhead: tuple[str, str] | None = None,
        all_nodes: bool = False,
        anew: bool = False,
    ) -> Obj:
        """One slice of as many devices, each on the NUMA node of its number's parity."""
        cost: Obj = {}
        if mapping:
            cost["mapping"] = {"deviceMultiplier": mapping}
        if overhead:
            cost["overhead"] = {"perPod": overhead[0], "perContainer": overhead[1]}
        if anew:
            self.remove("ResourceSlice", pool)
        spec = {
            "driver": "d.example.com",
            "pool": {"name": pool, "generation": generation, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": f"d{number}",
                    "attributes": {"resource.kubernetes.io/numaNode": {"int": number % 2}},
                    **({"nodeAllocatableResources": {"cpu": cost}} if cost else {}),
                }
                for number in range(devices)
            ],
        }
        spec |= {"allNodes": True} if all_nodes else {"nodeName": pool}
        return self._keep("ResourceSlice", pool, spec)

    def claim(self, name: str, pool: str, device: int) -> Obj:
        result = {
            "request": "r", "driver": "d.example.com", "pool": pool, "device": f"d{device}",
        }  # fmt: skip
        return self._keep(
            "ResourceClaim", name, {}, {"allocation": {"devices": {"results": [result]}}}
        )

    def pod(
        self,
        name: str,
        node: str,
        *,
        cpu: str = "",
        claims: list[str] | None = None,
        references: int = 1,
        budget: str = "",
    ) -> Obj:
        """A Pod with `references` containers, each of which uses every claim."""
        names = claims or []
        asks: Obj = {"claims": [{"name": claim} for claim in names]}
        if cpu:
            asks["requests"] = {"cpu": cpu}
        spec: Obj = {
            "nodeName": node,
            "containers": [{"name": f"m{n}", "resources": asks} for n in range(references)],
            "resourceClaims": [{"name": n, "resourceClaimName": n} for n in names],
        }
        if budget:
            spec["resources"] = {"requests": {"cpu": budget}}
        return self._keep("Pod", name, spec, {"phase": "Running"})

    def schedule(self) -> None:
        """Writes for every Pod that has nothing yet what its claims cost, as 1.37 does."""
        for (kind, _), pod in self._found.items():
            if kind == "Pod" and "nodeAllocatableResourceClaimStatuses" not in pod["status"]:
                statuses = [
                    status
                    for entry in pod["spec"]["resourceClaims"]
                    if (status := self._written(pod, entry["name"]))
                ]
                for entry in pod["spec"]["resourceClaims"]:  # reserved for it
                    self._made += 1
                    claim = self._found["ResourceClaim", entry["name"]]
                    claim["metadata"]["resourceVersion"] = str(self._made)
                pod["status"]["nodeAllocatableResourceClaimStatuses"] = statuses

    def _written(self, pod: Obj, claim: str) -> Obj | None:
        mapping, per_pod, per_container = ZERO, ZERO, ZERO
        found = self._found.get(("ResourceClaim", claim))
        if found is None:
            return None
        for result in found["status"]["allocation"]["devices"]["results"]:
            piece = self._found[("ResourceSlice", result["pool"])]
            [device] = [d for d in piece["spec"]["devices"] if d["name"] == result["device"]]
            cost = device.get("nodeAllocatableResources", {}).get("cpu", {})
            mapping += _amount(cost.get("mapping", {}).get("deviceMultiplier"))
            per_pod += _amount(cost.get("overhead", {}).get("perPod"))
            per_container += _amount(cost.get("overhead", {}).get("perContainer"))
        containers = [
            container["name"]
            for container in pod["spec"]["containers"]
            for use in container["resources"]["claims"]
            if use["name"] == claim
        ]
        status: Obj = {"resourceClaimName": claim, "containers": containers}
        if mapping:
            status["mapping"] = [{"name": "cpu", "quantity": canonical(mapping)}]
        if per_pod or per_container:
            overhead = {"perPod": canonical(per_pod), "perContainer": canonical(per_container)}
            status["overhead"] = [{"name": "cpu", **overhead}]
        return status if len(status) > 2 else None

    def remove(self, kind: str, name: str) -> None:
        self._found.pop((kind, name), None)

    def names(self, kind: str) -> list[str]:
        return [name for found, name in self._found if found == kind]

    def _keep(self, kind: str, name: str, spec: Obj, status: Obj | None = None) -> Obj:
        before = self._found.get((kind, name))
        self._made += 1
        uid = before["metadata"]["uid"] if before else f"{kind}-{name}-{self._made}"
        metadata = {"name": name, "uid": uid, "resourceVersion": str(self._made)}
        if kind in ("Pod", "ResourceClaim"):
            metadata["namespace"] = "ns"
        self._found[kind, name] = {"kind": kind, "metadata": metadata, "spec": spec}
        if status is not None:
            self._found[kind, name]["status"] = status
        return self._found[kind, name]


def _amount(text: str | None) -> Quantity:
    return parse(text) if text else ZERO


@st.composite
def histories(draw: st.DrawFn, *, restarts: bool = True) -> list[Snapshot]:
    """Looks at a cluster in which anything happens between two of them."""
    made, found = Cluster(), []
    for node in ("n1", "n2"):
        made.node(node, cpu="64")
    steps = ["slices", "claim", "pod", "pod", "remove pod", "end pod"]
    steps += ["restart", "gone"] if restarts else []
    generation = 1
    for node in ("n1", "n2"):
        made.slices(node, mapping="1", overhead=("500m", "250m"))
    for number in range(draw(st.integers(3, 14))):
        node = draw(st.sampled_from(["n1", "n2"]))
        match draw(st.sampled_from(steps)):
            case "slices" | "restart" as step:
                generation += 1
                made.slices(
                    node,
                    generation=1 if step == "restart" else generation,
                    mapping=draw(st.sampled_from(AMOUNTS[1:])),
                    overhead=(draw(st.sampled_from(AMOUNTS)), draw(st.sampled_from(AMOUNTS))),
                    anew=step == "restart",
                )
            case "gone":
                made.schedule()
                made.remove("ResourceSlice", node)
            case "claim":
                if node in made.names("ResourceSlice"):
                    made.claim(f"c{number}-{node}", node, draw(st.integers(0, 1)))
            case "pod":
                used = {
                    entry["resourceClaimName"]
                    for obj in made.objects
                    if obj["kind"] == "Pod"
                    for entry in obj["spec"]["resourceClaims"]
                }
                free = [
                    claim
                    for claim in made.names("ResourceClaim")
                    if claim.endswith(node) and claim not in used
                ]
                published = node in made.names("ResourceSlice")
                made.pod(
                    f"p{number}",
                    node,
                    cpu=draw(st.sampled_from(AMOUNTS)),
                    claims=free[:1] if published else [],
                    references=draw(st.integers(1, 2)),
                    budget="90" if draw(st.integers(0, 3)) == 0 else "",
                )
                if published:
                    made.schedule()
            case "remove pod" | "end pod" as step:
                pods = made.names("Pod")
                if pods and step == "remove pod":
                    made.remove("Pod", draw(st.sampled_from(pods)))
                elif pods:
                    name = draw(st.sampled_from(pods))
                    made._found["Pod", name]["status"]["phase"] = "Succeeded"
        if draw(st.booleans()):
            found.append(made.read())
    return [*found, made.read()]
