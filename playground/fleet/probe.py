"""What Berth's node probe (deploy/nodeprobe) says on a simulated node: the same as on a real one.

It is a container that looks once and ends; what it saw is its termination message. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Obj = dict[str, Any]

NAMESPACE = "berth-system"
ROLE, PROBE = "berth.dev/role", "probe"
MOST_MESSAGE = 4096  # bytes the kubelet keeps


def is_probe(pod: Obj) -> bool:
    metadata = pod["metadata"]
    return metadata["namespace"] == NAMESPACE and metadata.get("labels", {}).get(ROLE) == PROBE


def answer(container: Obj, report: Callable[[], Obj]) -> tuple[int, str]:
    """Exit code and message of a probe's container.

    `report` is the kubelet's (`Kubelet.report`); being asked changes the kubelet's memory.
    """
    environment = {one["name"]: one.get("value", "") for one in container.get("env", ())}
    resource, port = (environment.get(f"BERTH_{name}", "") for name in ("RESOURCE", "KUBELET_PORT"))
    if not resource:
        return 1, _json({"error": "BERTH_RESOURCE names no resource"})
    if not (port.isdecimal() and 0 < int(port) < 65536):
        return 1, _json({"error": f'BERTH_KUBELET_PORT is no port: "{port}"'})
    seen = report()
    held = sorted(set(seen["devices"].get(resource, ())))
    for kept in range(len(held), -1, -1):
        message = _json(
            {
                "devices": {resource: held[:kept]},
                **({"devicesOmitted": len(held) - kept} if kept < len(held) else {}),
                "claimsInUse": dict(sorted(seen["claimsInUse"].items())),
                "kubeletStarted": seen["kubeletStarted"],
            }
        )
        if len(message) <= MOST_MESSAGE:
            return 0, message
    return 1, _json({"error": "more drivers hold claims on this node than a message has room for"})


def _json(value: Obj) -> str:
    return json.dumps(value, separators=(",", ":"))
