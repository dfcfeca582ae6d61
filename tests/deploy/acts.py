"""What somebody tries at an API server, as one act. All are dry runs.

Admission judges a dry run as it judges the real thing, and nothing is left to clean up.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from devices.cluster.gateway import Forbidden, Gateway, Ref, Rejected
from devices.cluster.live import Transport
from tests.deploy.ground import DRIVER, Ground
from tests.deploy.objects import request, resource_slice

Obj = dict[str, Any]
Act = Callable[[Ground], object]
ADMIN_ACCESS = "resource.kubernetes.io/admin-access"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One way round, in words; `code` is what the denial says, empty for what must pass."""

    words: str
    act: Act
    code: str = ""

    def __str__(self) -> str:
        return self.words


def denied(ground: Ground, attempt: Attempt) -> str:
    """What the API server says against it; empty where it would let it pass.

    Raises `Forbidden` where it was the caller's rights that were missing: then nothing was judged.
    """
    try:
        attempt.act(ground)
    except Forbidden:
        raise
    except Rejected as error:
        return error.message
    return ""


def make(obj: Obj, *, who: str = "tenant", where: str = "namespace") -> Act:
    """Creates an object as somebody, in the tenant's namespace or another."""

    def act(ground: Ground) -> object:
        placed = {**obj, "metadata": {**obj["metadata"], "namespace": getattr(ground, where)}}
        return _gateway(ground, who).create(placed, dry_run=True)

    return act


def make_wide(obj: Obj, *, who: str = "careless") -> Act:
    """Creates an object that lies in no namespace."""
    return lambda ground: _gateway(ground, who).create(obj, dry_run=True)


def change(kind: str, name: str, patch: Obj, *, who: str = "careless", sub: str = "") -> Act:
    """Merges a patch into an object of the whole cluster; {namespace} in its name is filled in."""
    return lambda ground: _gateway(ground, who).merge(
        Ref(kind, name.format(namespace=ground.namespace)), patch, subresource=sub, dry_run=True
    )


def change_here(kind: str, name: str, patch: Obj, *, who: str = "careless", sub: str = "") -> Act:
    """Merges a patch into an object of the tenant's namespace."""
    return lambda ground: _gateway(ground, who).merge(
        Ref(kind, name, ground.namespace), patch, subresource=sub, dry_run=True
    )


def bind(place: str) -> Act:
    """Binds a Pod to a node past the scheduler; `place` is the end of the address."""
    body = {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "waits"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "bypass-n1"},
    }

    def act(ground: Ground) -> object:
        path = f"/api/v1/namespaces/{ground.namespace}/{place}"
        transport = Transport(str(ground.plane.kubeconfig("tess", ["tide", "binder"])))
        return transport.send("POST", path, query={"dryRun": "All"}, body=body, doing="bind")

    return act


def delete_all(path: str) -> Act:
    """Deletes what lies at an address by one request, which names none of it."""

    def act(ground: Ground) -> object:
        place = path.format(namespace=ground.namespace)
        transport = Transport(str(ground.plane.kubeconfig("tess", ["tide", "careless"])))
        return transport.send("DELETE", place, query={"dryRun": "All"}, doing="delete")

    return act


def as_driver(account: str, node: str, obj: Obj) -> Act:
    return lambda ground: ground.driver(account, node).create(obj, dry_run=True)


def _gateway(ground: Ground, who: str) -> Gateway:
    gateway: Gateway = getattr(ground, who)
    return gateway


def labels(**values: str | None) -> Obj:
    return {"metadata": {"labels": {f"berth.dev/{key}": value for key, value in values.items()}}}


def annotation(key: str, value: str | None) -> Obj:
    return {"metadata": {"annotations": {f"berth.dev/{key}": value}}}


def mine() -> Obj:
    """The label of a request, which tenants may not put on their own objects."""
    return {"labels": {"berth.dev/claim": "k3x9p2mw"}}


GPU, H100, SLOW, STOP = "bypass-gpu", "bypass-h100", "bypass-slow", "bypass-stop"
QUIESCING = {"key": "berth.dev/quiescing", "operator": "Exists", "effect": "NoSchedule"}
ISOLATED = {"key": "berth.dev/isolated", "operator": "Exists"}
OWN_SLICE = resource_slice("new", driver=DRIVER, node="bypass-n1")
OWNER = {
    "apiVersion": "v1",
    "kind": "Pod",
    "name": "p",
    "uid": "00000000-0000-4000-8000-000000000000",
    "controller": True,
}


def tolerant(*tolerations: Obj) -> Obj:
    """A request for a device that it may have, with these tolerations."""
    return request(GPU, tolerations=list(tolerations))


def alternatives_of(toleration: Obj) -> Obj:
    """The first available of two, the second of which tolerates."""
    found = request(GPU, GPU)
    found["firstAvailable"][1]["tolerations"] = [toleration]
    return found
