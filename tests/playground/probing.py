"""A node probe as Berth sends it, on whatever node; used by tests of several files."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import yaml

from devices.cluster.gateway import Ref
from playground.building.images import image_name
from playground.fleet import probe
from playground.manifests import fill
from tests.playground.conftest import Ground

Obj = dict[str, Any]

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
_number = itertools.count(1)


def a_probe(node: str = "n", resource: str = "example.com/gpu", port: str = "10250") -> Obj:
    """The Pod as Berth fills it in."""
    values = {
        "name": f"probe-{next(_number)}",
        "node": node,
        "image": image_name("nodeprobe"),
        "resource": resource,
        "port": port,
    }
    pod = fill(yaml.safe_load((DEPLOY / "nodeprobe" / "pod.yaml").read_text()), values)
    return dict(pod)


def install_probe(ground: Ground) -> None:
    for name in ("namespace", "nodeprobe"):
        for obj in yaml.safe_load_all((DEPLOY / "rbac" / f"{name}.yaml").read_text()):
            ground.admin.apply(obj, manager="test")


def ended_probe(ground: Ground, node: str, resource: str) -> Obj:
    """Lets a probe look at a node, removes it, and returns its Pod as it had ended."""
    status = ground.node(node)["status"]
    port = status["daemonEndpoints"]["kubeletEndpoint"]["Port"]
    pod = a_probe(node, resource, str(port))
    ref = Ref("Pod", pod["metadata"]["name"], probe.NAMESPACE)
    ground.admin.create(pod)
    try:

        def ended() -> Obj | None:
            found = ground.admin.get(ref) or {}
            over = found["status"]["phase"] in ("Succeeded", "Failed")
            return found if over and found["status"].get("containerStatuses") else None

        return dict(ground.wait(f"the probe on {node} ended", ended, seconds=60))
    finally:
        ground.admin.delete(ref, grace_seconds=0)


def message_of(ground: Ground, node: str, resource: str, *, code: int = 0) -> str:
    """What a probe that looks at a node leaves as its termination message."""
    [container] = ended_probe(ground, node, resource)["status"]["containerStatuses"]
    terminated = container["state"]["terminated"]
    assert terminated["exitCode"] == code, terminated
    return str(terminated["message"])


def look(ground: Ground, node: str, resource: str) -> Obj:
    """What a probe says of a node."""
    return dict(json.loads(message_of(ground, node, resource)))
