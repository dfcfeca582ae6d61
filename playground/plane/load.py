"""Makes an object set live: YAML as somebody dumped or invented it becomes objects of a cluster.

A set describes a moment: who is allocated what, which Pods run where. So statuses are written too,
and what could change the picture while it is drawn (quotas, policies) comes last. Uids are the API
server's to give: references between objects of the set are rewritten to the new ones.
"""

from __future__ import annotations

import contextlib
import copy
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from devices.cluster.gateway import ClusterError, Gateway, Missing, Obj, Ref
from playground.errors import PlaygroundError

MANAGER = "berth-playground-load"
# Nodes before what lies on them, classes before claims; kinds that are not named come in between;
# quotas and policies would refuse what the set says exists, so they come after it.
FIRST = ("Namespace", "ServiceAccount", "Node", "DeviceClass", "ResourceSlice", "DeviceTaintRule")
THEN = ("ResourceClaimTemplate", "ResourceClaim", "Pod")
LAST = (
    "Event",
    "ResourceQuota",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
)
# What the API server fills in itself.
SERVER_FIELDS = (
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "managedFields",
    "selfLink",
)
NODE_ALLOCATABLE = "DRANodeAllocatableResources"


@dataclass(frozen=True, slots=True)
class Refused:
    """One thing that did not become live: which object, and the API server's own words."""

    ref: Ref
    step: str  # "object", "status" or "deletion"
    why: str

    def __str__(self) -> str:
        what = "" if self.step == "object" else f" ({self.step})"
        why = self.why if len(self.why) < 800 else f"{self.why[:300]} … {self.why[-400:]}"
        return f"{self.ref}{what}: {why}"


@dataclass(slots=True)
class Loaded:
    """What came of a set: live objects, what was refused, and what had to be done differently."""

    live: list[Ref] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def load(gateway: Gateway, files: Iterable[Path], *, declare_features: bool = False) -> Loaded:
    """Makes the objects of all `files`, read as one set, live; goes on after each refusal.

    Loading a set again brings the objects back to what the set says. `declare_features` adds
    `DRANodeAllocatableResources` to Nodes whose slices need it (1.37 refuses those slices
    otherwise). Raises `PlaygroundError` for files that are no YAML, `Unreachable` for no cluster.
    """
    objects = [obj for path in files for obj in read_set(path)]
    if declare_features:
        _declare_features(objects)
    return _Load(gateway, objects).run()


def read_set(path: Path) -> list[Obj]:
    """All objects of a YAML file, lists taken apart. Raises `PlaygroundError`."""
    try:
        documents = list(yaml.safe_load_all(path.read_text()))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise PlaygroundError(f"{path} cannot be read as YAML: {error}") from error
    found: list[Obj] = []
    for document in documents:
        if not isinstance(document, dict) or not isinstance(document.get("kind"), str):
            if document is not None:
                raise PlaygroundError(f"{path} holds something that is no Kubernetes object.")
        elif document["kind"].endswith("List") and isinstance(document.get("items"), list):
            kind = document["kind"].removesuffix("List")
            for item in document["items"]:
                head = {"apiVersion": document.get("apiVersion", "v1"), "kind": kind}
                found.append(head | item)
        else:
            found.append(document)
    return found


def unload(gateway: Gateway, loaded: Loaded) -> None:
    """Removes what a load made, last first: Pods without grace, finalizers ignored.

    Namespaces and their ServiceAccounts stay: removing them takes the cluster half a minute.
    Raises `ClusterError`.
    """
    for ref in reversed(loaded.live):
        if ref.kind in ("Namespace", "ServiceAccount"):
            continue
        found = gateway.get(ref)
        if found and found["metadata"].get("finalizers"):
            with contextlib.suppress(Missing):
                gateway.merge(ref, {"metadata": {"finalizers": None}})
        gateway.delete(ref, grace_seconds=0)


class _Load:
    """One loading of one set."""

    def __init__(self, gateway: Gateway, objects: Sequence[Obj]):
        self.gateway = gateway
        self.objects = sorted(objects, key=_rank)
        self.result = Loaded()
        self.uids: dict[str, str] = {}  # uid in the set -> uid in the cluster
        self.live: dict[Ref, str] = {}  # -> uid in the cluster

    def run(self) -> Loaded:
        self._namespaces()
        owned = [obj for obj in self.objects if _owning_pod(obj)]
        last = [obj for obj in self.objects if obj["kind"] in LAST]
        for obj in self.objects:
            if obj in owned or obj in last:
                continue
            self._apply(obj)
            match obj["kind"]:
                case "Pod":
                    # The claim controller makes claims for Pods whose status names none.
                    self._status(obj)
                case "ResourceClaim":
                    # The scheduler must find the allocation before it sees the first Pod. The
                    # consumers' new uids are not known yet, and a wrong one would be removed.
                    self._status(obj, without="reservedFor")
                case "Node" | "Namespace":
                    self._status(obj)
        for obj in (*owned, *last):
            self._apply(obj)
        for obj in self.objects:
            if obj["kind"] not in ("Pod", "Node", "Namespace"):
                self._status(obj)
        self._remove_twins()
        for obj in self.objects:
            if (obj.get("metadata") or {}).get("deletionTimestamp"):
                self._delete(obj)
        return self.result

    def _namespaces(self) -> None:
        """Namespaces on demand, each with the ServiceAccount that Pods there need."""
        named = {ref_of(obj).namespace for obj in self.objects} - {""}
        present = {ref_of(obj).name for obj in self.objects if obj["kind"] == "Namespace"}
        for name in sorted(named):
            if name not in present and self.gateway.get(Ref("Namespace", name)) is None:
                self._apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        for obj in self.objects:
            if obj["kind"] == "Namespace":
                self._apply(obj)
        for namespace in {ref_of(o).namespace for o in self.objects if o["kind"] == "Pod"}:
            account = Ref("ServiceAccount", "default", namespace)
            for _ in range(50):
                if self.gateway.get(account) is not None:
                    break
                time.sleep(0.1)
            else:
                self.result.notes.append(
                    f"{account} is missing after 5 s: Pods in {namespace} will be refused"
                )

    def _apply(self, obj: Obj) -> None:
        ref = ref_of(obj)
        if ref in self.live:
            return
        body = copy.deepcopy(obj)
        body.pop("status", None)
        meta = body["metadata"] = dict(body.get("metadata") or {})
        old_uid = meta.get("uid")
        for name in SERVER_FIELDS:
            meta.pop(name, None)
        if meta.get("name"):
            meta.pop("generateName", None)
        if ref.namespace:
            meta["namespace"] = ref.namespace
        if str(body.get("apiVersion", "")).startswith("resource.k8s.io/"):
            body["apiVersion"] = ""  # the best version that this cluster serves
        self._owners(ref, meta)
        try:
            answer = self.gateway.apply(body, manager=MANAGER, force=True)
        except ClusterError as error:
            self._refuse(ref, "object", error)
            return
        self.live[ref] = answer["metadata"]["uid"]
        self.result.live.append(ref)
        if old_uid:
            self.uids[old_uid] = self.live[ref]

    def _owners(self, ref: Ref, meta: dict[str, Any]) -> None:
        """Owners of the set get their new uid; the garbage collector deletes for unknown ones."""
        kept = []
        for owner in meta.pop("ownerReferences", None) or ():
            uid = self.uids.get(owner.get("uid", "")) or next(
                (
                    self.live[r]
                    for r in (
                        Ref(owner.get("kind", ""), owner.get("name", ""), ref.namespace),
                        Ref(owner.get("kind", ""), owner.get("name", "")),
                    )
                    if r in self.live
                ),
                None,
            )
            if uid:
                kept.append({**owner, "uid": uid})
            else:
                self.result.notes.append(
                    f"{ref}: owner {owner.get('kind')} {owner.get('name')} is not in the set and "
                    "was left out, else the object would be deleted"
                )
        if kept:
            meta["ownerReferences"] = kept

    def _status(self, obj: Obj, *, without: str = "") -> None:
        ref, status = ref_of(obj), obj.get("status")
        if ref not in self.live or not status:
            return
        status = {k: v for k, v in status.items() if k != without}
        if isinstance(consumers := status.get("reservedFor"), list):
            status["reservedFor"] = [
                {**c, "uid": self.uids.get(c.get("uid", ""), c.get("uid", ""))} for c in consumers
            ]
        if not status:
            return
        try:
            self.gateway.merge(ref, {"status": status}, subresource="status")
        except ClusterError as error:
            self._refuse(ref, "status", error)

    def _remove_twins(self) -> None:
        """Claims that the claim controller made for a Pod beside those of the set."""
        owned = {_owning_pod(obj) for obj in self.objects} - {""}
        pods = {self.live[ref] for ref in self.live if ref.kind == "Pod" and ref.name in owned}
        if not pods:
            return
        time.sleep(0.5)  # it needs that long to notice a Pod
        for namespace in {ref.namespace for ref in self.live if ref.kind == "Pod"}:
            for claim in self.gateway.list("ResourceClaim", namespace=namespace).items:
                meta = claim["metadata"]
                owners = {owner["uid"] for owner in meta.get("ownerReferences") or ()}
                ref = Ref("ResourceClaim", meta["name"], namespace)
                if owners & pods and ref not in self.live:
                    self.gateway.delete(ref)

    def _delete(self, obj: Obj) -> None:
        """The set shows it being deleted. It stays for as long as a finalizer or kubelet holds."""
        ref = ref_of(obj)
        if ref not in self.live:
            return
        try:
            self.gateway.delete(ref)
        except ClusterError as error:
            self._refuse(ref, "deletion", error)

    def _refuse(self, ref: Ref, step: str, error: ClusterError) -> None:
        if error.retry and not error.status:
            raise error  # nobody answers: every other object would fail the same way
        refused = Refused(ref, step, error.message)
        if refused not in self.result.refused:
            self.result.refused.append(refused)


def ref_of(obj: Obj) -> Ref:
    """Kind, name and namespace; namespaced kinds of a set that name none are in `default`."""
    meta = obj.get("metadata") or {}
    namespace = str(meta.get("namespace") or "")
    if not namespace and obj["kind"] in (*THEN, "ServiceAccount", "ResourceQuota", "Event"):
        namespace = "default"
    return Ref(obj["kind"], str(meta.get("name") or meta.get("generateName", "")), namespace)


def _rank(obj: Obj) -> int:
    kind = obj["kind"]
    if kind in FIRST:
        return FIRST.index(kind)
    if kind in THEN:
        return 100 + THEN.index(kind)
    return 200 + LAST.index(kind) if kind in LAST else 50


def _owning_pod(obj: Obj) -> str:
    """Name of the Pod that owns a claim, "" where none does: such claims come after their Pods."""
    if obj["kind"] != "ResourceClaim":
        return ""
    owners = (obj.get("metadata") or {}).get("ownerReferences") or ()
    return next((str(owner.get("name")) for owner in owners if owner.get("kind") == "Pod"), "")


def _declare_features(objects: Sequence[Obj]) -> None:
    nodes = {ref_of(obj).name: obj for obj in objects if obj["kind"] == "Node"}
    for node_name in _nodes_with_mappings(objects):
        if node := nodes.get(node_name):
            declared = node.setdefault("status", {}).setdefault("declaredFeatures", [])
            if NODE_ALLOCATABLE not in declared:
                declared.append(NODE_ALLOCATABLE)
                declared.sort()


def _nodes_with_mappings(objects: Sequence[Obj]) -> Iterator[str]:
    for obj in objects:
        spec = obj.get("spec") or {}
        if obj["kind"] == "ResourceSlice" and spec.get("nodeName"):
            devices = spec.get("devices") or ()
            if any("nodeAllocatableResources" in device for device in devices):
                yield str(spec["nodeName"])
