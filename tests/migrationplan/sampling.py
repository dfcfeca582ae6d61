"""An independent witness: it lists what the API server has, again and again, and writes it down.

It shares nothing with the product. What it wrote is judged afterwards, from its file alone.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from devices.cluster.gateway import ClusterError, Gateway

Obj = dict[str, Any]
Sample = dict[str, Any]


@contextmanager
def sampling(gateway: Gateway, file: Path, *, namespace: str, resource: str) -> Iterator[Path]:
    """Writes one line a sample, every 100 ms or as fast as the lists come, until the block ends."""
    stop = threading.Event()

    def work() -> None:
        with file.open("w") as out:
            while not stop.wait(0.1):
                try:
                    found = sample(gateway, namespace, resource)
                except ClusterError as error:
                    found = {"at": time.time(), "error": error.message}
                out.write(json.dumps(found) + "\n")

    thread = threading.Thread(target=work, name="witness")
    thread.start()
    try:
        yield file
    finally:
        stop.set()
        thread.join(30)


def sample(gateway: Gateway, namespace: str, resource: str) -> Sample:
    """Containers of a namespace's Pods, and who has which device of which node by either book."""
    claims = gateway.list("ResourceClaim").items
    pods = gateway.list("Pod").items
    return {
        "at": time.time(),
        "containers": [
            [pod["metadata"]["uid"], pod["metadata"]["name"], each["restartCount"],
             each.get("containerID", "")]
            for pod in pods
            if pod["metadata"]["namespace"] == namespace
            for each in pod["status"].get("containerStatuses", ())
        ],
        "plugin": sorted(
            [pod["spec"]["nodeName"], device, _name(pod)]
            for pod in pods
            if pod["status"].get("phase") not in ("Succeeded", "Failed")
            for device in _of_plugin(pod, resource)
        ),
        "claims": sorted(
            [one["pool"], one["device"], _name(claim)]
            for claim in claims
            for one in _results(claim)
        ),
    }  # fmt: skip


def _name(obj: Obj) -> str:
    return f"{obj['metadata']['namespace']}/{obj['metadata']['name']}"


def _of_plugin(pod: Obj, resource: str) -> list[str]:
    return [
        one["resourceID"]
        for status in pod["status"].get("containerStatuses", ())
        for entry in status.get("allocatedResourcesStatus", ())
        if entry["name"] == resource
        for one in entry["resources"]
    ]


def _results(claim: Obj) -> list[Obj]:
    allocation = claim.get("status", {}).get("allocation") or {}
    return list(allocation.get("devices", {}).get("results", ()))


def samples(file: Path) -> list[Sample]:
    """What was written, without the moments at which nobody answered."""
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return [line for line in lines if "error" not in line]


def restarted(seen: list[Sample]) -> list[str]:
    """Pods of which a container was started a second time."""
    found: dict[tuple[str, str], set[str]] = {}
    for one in seen:
        for uid, name, _, container in one["containers"]:
            if container:
                found.setdefault((uid, name), set()).add(container)
    counted = {name for one in seen for _, name, restarts, _ in one["containers"] if restarts}
    return sorted(counted | {name for (_, name), ids in found.items() if len(ids) > 1})


def used_twice(seen: list[Sample]) -> list[str]:
    """Devices that two had at one moment, by whichever book."""
    found = set()
    for one in seen:
        had: dict[tuple[str, str], str] = {}
        for node, device, who in (*one["plugin"], *one["claims"]):
            if (other := had.setdefault((node, device), who)) != who:
                found.add(f"{device} on {node}: {other} and {who}")
    return sorted(found)
