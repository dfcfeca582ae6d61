"""A tenant's claim over the demo's fleet, and what a turn would record of it: where scenes begin.

The cluster is the mirror, filled with objects as the API server has them; the status is what the
turn's own code makes of these, so a code that no rule gives cannot be staged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.test import Client
from django.utils import timezone

from devices.asks import alerting, reconcile
from devices.cluster.gateway import ClusterError
from devices.dra.lifecycle import State
from devices.dra.objects import claim_objects
from devices.models import Claim, ClusterState
from portal.management.demo_templates import TEMPLATES
from tenants.access import Access, tenant_for
from tenants.models import PlatformRole, Tenant, User
from tests.devices.demofleet import fleet_objects, h100, holding, mirror
from tests.factories import make_claim, make_person, make_tenant, make_version

Obj = dict[str, Any]
NAMESPACE = "tidewater-train"
NODE = "h100-a01"
DRIVER = "gpu.helios.example"
GENERATED = "train-pod-devices-x7k2m"


@dataclass(frozen=True, slots=True)
class Shown:
    """A page that shows a code: its address, who looks, and (for asks) its API resource."""

    address: str
    client: Client
    api: str = ""


def of_platform(address: str, role: str = "operator") -> Shown:
    """A page of the platform, as somebody of that role sees it, in a cluster that is heard."""
    if not ClusterState.objects.exists():
        mirror([])
    user = User.objects.filter(username="olm").first() or make_person("olm")
    PlatformRole.objects.get_or_create(user=user, role=role)
    client = Client()
    client.force_login(user)
    return Shown(address, client)


class Stage:
    """One claim of Tidewater that was sent a while ago, and the cluster around it."""

    def __init__(
        self,
        content: Mapping[str, Any] | None = None,
        values: Mapping[str, Any] | None = None,
        *,
        shared: bool = False,
        state: State = State.APPLIED,
    ) -> None:
        self.now = timezone.now()
        tenant = Tenant.objects.filter(slug="tidewater").first() or make_tenant()
        person = User.objects.filter(username="avocet").first() or make_person("avocet", tenant)
        self.access: Access = tenant_for(person, "tidewater")
        if content is None:
            content = TEMPLATES["gpu"][3]
            values = {"memory": "80-nvlink", "gpus": 1} if values is None else values
        self.claim = make_claim(
            self.access,
            make_version("gpu", {**content, **({"shared": True} if shared else {})}),
            values=dict(values or {}),
            now=self.now - timedelta(minutes=4),
        )
        if state != State.REQUESTED:
            Claim.objects.update(state=state, since=self.now - timedelta(minutes=3))
            self.claim.refresh_from_db()
        self.own = self._own()
        self.fleet = fleet_objects()

    def _own(self) -> Obj:
        (obj,) = claim_objects(self.claim.wish())
        made = (self.now - timedelta(minutes=4)).strftime("%Y-%m-%dT%H:%M:%SZ")
        metadata = {**obj["metadata"], "uid": "own-1", "creationTimestamp": made}
        return {**obj, "metadata": metadata}

    # --- what stands in the cluster ---

    def ago(self, **past: float) -> str:
        """A moment before now, as Kubernetes writes it."""
        return (self.now - timedelta(**past)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def condition(self, kind: str, status: str, **said: str) -> Obj:
        return {"type": kind, "status": status, "lastTransitionTime": self.ago(minutes=1), **said}

    def unschedulable(self, message: str, reason: str = "Unschedulable") -> Obj:
        """The condition by which the scheduler says no."""
        return self.condition("PodScheduled", "False", reason=reason, message=message)

    def pod(
        self,
        *,
        conditions: Iterable[Obj] = (),
        node: str = "",
        phase: str = "Pending",
        generated: bool = True,
        spec: Mapping[str, Any] | None = None,
        meta: Mapping[str, Any] | None = None,
        **status: Any,
    ) -> Obj:
        """The Pod of the claim's snippet; its claim is generated unless said otherwise."""
        own = self.own["metadata"]["name"]
        by_claim = self.own["kind"] == "ResourceClaim"
        uses = {"resourceClaimName": own} if by_claim else {"resourceClaimTemplateName": own}
        names = [{"name": "devices", "resourceClaimName": GENERATED}]
        made = {} if by_claim or not generated else {"resourceClaimStatuses": names}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "train-pod",
                "namespace": NAMESPACE,
                "uid": "pod-1",
                "creationTimestamp": self.ago(minutes=2),
                "labels": {"berth.dev/claim": self.claim.public_id},
                **(meta or {}),
            },
            "spec": {
                **({"nodeName": node} if node else {}),
                "containers": [{"name": "main", "resources": {"claims": [{"name": "devices"}]}}],
                "resourceClaims": [{"name": "devices", **uses}],
                **(spec or {}),
            },
            "status": {"phase": phase, "conditions": list(conditions), **made, **status},
        }

    def made(
        self,
        *,
        devices: Iterable[tuple[str, str, str]] = (),
        reserved: bool = True,
        meta: Mapping[str, Any] | None = None,
        owner: str = "pod-1",
        **status: Any,
    ) -> Obj:
        """The claim that Kubernetes generated for the Pod (the named one where Pods share it)."""
        held = list(devices)
        if self.own["kind"] == "ResourceClaim":
            metadata: Obj = {**self.own["metadata"], **(meta or {})}
            spec = self.own["spec"]
        else:
            ref = {"apiVersion": "v1", "kind": "Pod", "name": "train-pod", "uid": owner}
            metadata = {
                "name": GENERATED,
                "namespace": NAMESPACE,
                "uid": "claim-1",
                "creationTimestamp": self.ago(minutes=2),
                "labels": {"berth.dev/claim": self.claim.public_id},
                "annotations": {"resource.kubernetes.io/pod-claim-name": "devices"},
                "ownerReferences": [{**ref, "controller": True, "blockOwnerDeletion": True}],
                **(meta or {}),
            }
            spec = self.own["spec"]["spec"]
        if held:
            term = {"key": "metadata.name", "operator": "In", "values": [held[0][1]]}
            status["allocation"] = {
                "devices": holding("x", held)["status"]["allocation"]["devices"],
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [term]}]},
                "allocationTimestamp": self.ago(seconds=70),
                **status.get("allocation", {}),
            }
            if reserved:
                consumer = {"resource": "pods", "name": "train-pod", "uid": "pod-1"}
                status.setdefault("reservedFor", [consumer])
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaim",
            "metadata": metadata,
            "spec": spec,
            "status": status,
        }

    def event(self, reason: str, message: str, source: str = "kubelet") -> Obj:
        """What the cluster said about the Pod, seven times."""
        about = {"kind": "Pod", "namespace": NAMESPACE, "name": "train-pod", "uid": "pod-1"}
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "train-pod.1", "namespace": NAMESPACE, "uid": "event-1"},
            "involvedObject": about,
            "reason": reason,
            "message": message,
            "type": "Warning",
            "count": 7,
            "source": {"component": source},
            "firstTimestamp": self.ago(seconds=60),
            "lastTimestamp": self.ago(seconds=5),
        }

    # --- what comes of it ---

    def shows(self, *objects: Obj, own: bool = True, release: str = "") -> Shown:
        """The mirror gets these objects, a turn records what they mean, and its page is opened."""
        there = [*self.fleet, *([self.own] if own else []), *objects]
        mirror({_key(one): one for one in there}.values())
        if release:
            ClusterState.objects.update(release=release)
        made = tuple(o for o in objects if o["kind"] == "ResourceClaim" and self._mine(o))
        named = next((one for one in made if self.own["kind"] == "ResourceClaim"), self.own)
        found = reconcile.Found(named if own else None, () if named is not self.own else made)
        return self.record(reconcile._seen(self.claim, found, self.now))

    def _mine(self, obj: Obj) -> bool:
        labels = obj["metadata"].get("labels") or {}
        return labels.get("berth.dev/claim") == self.claim.public_id

    def fails(self, error: ClusterError, *, final: bool = False) -> Shown:
        """The API server answers with this error."""
        fields = reconcile._failed if final else reconcile._waiting
        return self.record(fields(self.claim, error))

    def record(self, seen: Mapping[str, Any]) -> Shown:
        """As a turn writes it, with the bell."""
        held = self.now + timedelta(seconds=1)
        assert self.claim.take_lease("stage", held)
        self.claim.record(held, holder="stage", **seen)
        self.claim.drop_lease("stage")
        self.claim.refresh_from_db()
        alerting.ring(self.claim, held)
        return self.page()

    def page(self) -> Shown:
        client = Client()
        client.force_login(self.access.user)
        slug, public_id = self.access.tenant.slug, self.claim.public_id
        own = f"tenants/{slug}/claims/{public_id}"
        return Shown(f"/t/{slug}/claims/{public_id}/", client, f"/api/v1/{own}")


def _key(obj: Obj) -> tuple[str, str, str]:
    return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def taken(*nodes: int, devices: int = 8) -> list[Obj]:
    """Claims of another tenant that hold GPUs of these H100 machines."""
    return [holding(f"other-{node}", h100(node, *range(devices))) for node in nodes]
