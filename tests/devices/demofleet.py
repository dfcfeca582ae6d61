"""The demo's fleet as objects without a cluster: nodes, classes, slices, claims that hold some.

What a driver publishes is expanded from the same file as in the demo; allocations are written by
hand, since no scheduler has a part in it.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone

from devices.cluster.decoding import dumps
from devices.dra.gates import gates
from devices.dra.snapshot import KINDS, Snapshot, read
from devices.mirror.kinds import MIRRORED
from devices.models import ClusterState, Observed, Sync
from playground.fleet.driver import Trouble, pool_counters, pool_devices
from playground.fleet.slices import contents
from playground.fleet.spec import load

Obj = dict[str, Any]
TAKEN = datetime(2026, 11, 2, 12, 0, tzinfo=UTC)
RELEASE = "1.37"


def fleet_objects(scenario: str = "demo") -> list[Obj]:
    """Nodes, slices and classes of a scenario, as its drivers would publish them."""
    spec = load(scenario)
    found: list[Obj] = [one for one in spec.objects if one["kind"] == "DeviceClass"]
    for group in spec.groups:
        for name in group.node_names():
            labels = {**group.labels, "kubernetes.io/hostname": name}
            status = {"capacity": group.capacity, "allocatable": {**group.allocatable, "pods": 110}}
            status = {
                key: {resource: str(amount) for resource, amount in amounts.items()}
                for key, amounts in status.items()
            }
            found.append(
                {
                    "apiVersion": "v1",
                    "kind": "Node",
                    "metadata": {"name": name, "uid": f"node-{name}", "labels": labels},
                    "spec": {"taints": group.taints},
                    "status": status,
                }
            )
    for driver in spec.drivers:
        for pool in driver.pools:
            groups = [group for group in spec.groups if group.name == pool.group]
            places = [
                (name, index)
                for group in groups
                for index, name in enumerate(group.node_names())
                if driver.node_labels.items() <= group.labels.items()
            ]
            for name, index in places or ([("", 0)] if not pool.group else []):
                known = {"node": name, "node_index": index, "seed": "tests"}
                parts = contents(
                    pool_devices(pool, Trouble(), RELEASE, **known),
                    pool_counters(pool, **known),
                    per_slice=pool.devices_per_slice,
                )
                called = pool.name.format(**known)
                for number, part in enumerate(parts):
                    scope: Obj = {"nodeName": name} if name else {"nodeSelector": _selector(pool)}
                    about = {"name": called, "generation": 1, "resourceSliceCount": len(parts)}
                    title = f"{number:05x}-{driver.name}-{called}"
                    found.append(
                        {
                            "apiVersion": "resource.k8s.io/v1",
                            "kind": "ResourceSlice",
                            "metadata": {"name": title, "uid": title},
                            "spec": {"driver": driver.name, "pool": about, **scope, **part},
                        }
                    )
    return found


def _selector(pool: Any) -> Obj:
    expressions = [
        {"key": key, "operator": "In", "values": values} for key, values in pool.selector.items()
    ]
    return {"nodeSelectorTerms": [{"matchExpressions": expressions}]}


def unbounded(content: Obj) -> Obj:
    """A template's content without the bounds that keep anybody from asking for what never fits."""
    parameters = [
        {**one, "bounds": []} if "bounds" in one else one for one in content.get("parameters", [])
    ]
    return {**content, "parameters": parameters}


def holding(
    name: str,
    devices: Iterable[tuple[str, str, str]],
    *,
    namespace: str = "basalt-pipelines",
    device_class: str = "h100-80gb",
) -> Obj:
    """A claim that is allocated: driver, pool (its node) and name of each device."""
    held = list(devices)
    results = [
        {"request": "gpu", "driver": driver, "pool": pool, "device": device}
        for driver, pool, device in held
    ]
    requests = [{"name": "gpu", "exactly": {"deviceClassName": device_class, "count": len(held)}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": namespace, "uid": f"claim-{namespace}-{name}"},
        "spec": {"devices": {"requests": requests}},
        "status": {"allocation": {"devices": {"results": results}}},
    }


def h100(node: int, *numbers: int) -> list[tuple[str, str, str]]:
    """GPUs of one of the four H100 machines."""
    return [("gpu.helios.example", f"h100-a{node:02}", f"gpu-{number}") for number in numbers]


def snapshot(*more: Obj) -> Snapshot:
    """The fleet with further objects."""
    return read([*fleet_objects(), *more], gates=gates(RELEASE), taken=TAKEN)


def mirror(objects: Iterable[Obj], *, version: str = "1") -> None:
    """Writes objects as the watch process would, and that every kind was listed; a second call
    changes those that it names.
    """
    now = timezone.now()
    rows = []
    for one in objects:
        named = one["metadata"]
        uid = "/".join((one["kind"], named.get("namespace", ""), named["name"]))
        meta = {"uid": uid, "resourceVersion": version, **named}
        raw = dumps({**one, "metadata": meta})
        _, _, row = MIRRORED[one["kind"]].reader.read(raw, one["apiVersion"])
        assert row is not None
        columns = {name: value for name, value in row._asdict().items() if name != "small"}
        rows.append(Observed(**columns, seen_at=now))
    fields = [field.name for field in Observed._meta.fields if field.name != "uid"]
    Observed.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["uid"], update_fields=fields
    )
    for kind in KINDS:
        Sync.objects.update_or_create(
            kind=kind,
            defaults={"version": version, "listed_at": now, "alive_at": now, "served": True},
        )
    ClusterState.objects.update_or_create(
        name="cluster",
        defaults={"reachable": True, "since": now, "contact_at": now, "release": "v1.37.2"},
    )
