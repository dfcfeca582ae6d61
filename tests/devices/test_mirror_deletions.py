"""In whatever order things are deleted, the mirror passes through the truth and ends at it."""

from __future__ import annotations

from uuid import uuid4

import pytest

from devices import mirror
from devices.cluster import connect
from devices.cluster.gateway import Ref
from devices.models import Observed
from tests.devices.cluster.objects import a_claim, a_class, a_pod, a_slice
from tests.devices.following import following, listed, same, until

pytestmark = pytest.mark.django_db(transaction=True)

PROTECTION = "resource.kubernetes.io/delete-protection"
ORDER = ("claim", "template", "pod", "class", "namespace", "node", "driver")
ORDERS = [ORDER[at:] + ORDER[:at] for at in range(len(ORDER))] + [ORDER[::-1]]


class World:
    """A node with two devices, and a Pod that holds both: by a claim and by a template."""

    def __init__(self, gateway):
        self.gateway = gateway
        self.name = f"matrix-{uuid4().hex[:8]}"
        name = self.name
        gateway.create({"kind": "Namespace", "metadata": {"name": name}})
        until(lambda: gateway.get(Ref("ServiceAccount", "default", name)))
        gateway.create(a_class(name, driver=f"{name}.example.com"))
        node = gateway.create(
            {
                "kind": "Node",
                "metadata": {"name": name},
                "status": {
                    "capacity": {"cpu": "8", "memory": "8Gi", "pods": "10"},
                    "allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10"},
                    "conditions": [{"type": "Ready", "status": "True"}],
                },
            }
        )
        piece = a_slice(name, node=name, driver=f"{name}.example.com", devices=2)
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": node["metadata"]["uid"]}
        piece["metadata"]["ownerReferences"] = [owner]
        gateway.create(piece)
        gateway.create(a_claim("shared", name, device_class=name))
        spec = a_claim("x", name, device_class=name)["spec"]
        gateway.create(
            {
                "kind": "ResourceClaimTemplate",
                "metadata": {"name": "template", "namespace": name},
                "spec": {"spec": spec},
            }
        )

    def start_pod(self):
        """Makes the Pod, and returns when the scheduler has placed it and both claims are held."""
        pod = a_pod("p", self.name, claim="shared")
        pod["spec"]["nodeSelector"] = {}
        pod["spec"]["tolerations"] = [{"operator": "Exists"}]
        pod["spec"]["resourceClaims"].append(
            {"name": "own", "resourceClaimTemplateName": "template"}
        )
        pod["spec"]["containers"][0]["resources"]["claims"].append({"name": "own"})
        self.gateway.create(pod)
        until(lambda: self.gateway.get(Ref("Pod", "p", self.name))["spec"].get("nodeName"))

    def delete(self, noun):
        name, gateway = self.name, self.gateway
        match noun:
            case "claim":
                gateway.delete(Ref("ResourceClaim", "shared", name))
            case "template":
                gateway.delete(Ref("ResourceClaimTemplate", "template", name))
            case "pod":  # as its kubelet would in the end
                gateway.delete(Ref("Pod", "p", name), grace_seconds=0)
            case "class":
                gateway.delete(Ref("DeviceClass", name))
            case "namespace":
                gateway.delete(Ref("Namespace", name))
            case "node":
                gateway.delete(Ref("Node", name))
            case "driver":
                gateway.delete(Ref("ResourceSlice", name))

    def gone(self):
        return not Observed.objects.filter(namespace=self.name).exclude(kind="Event").exists() and (
            not Observed.objects.filter(name=self.name)
            .exclude(kind__in=["Event", "Lease"])
            .exists()
        )


@pytest.fixture
def gateway(plane):
    return connect(plane.admin_kubeconfig)


def test_deletions_in_every_order(gateway):
    """One world for each order, side by side, each a step further every round."""
    worlds = {order: World(gateway) for order in ORDERS}
    with following(gateway):
        until(listed)
        for world in worlds.values():
            world.start_pod()
        same(gateway)
        for step in range(len(ORDER)):
            for order, world in worlds.items():
                world.delete(order[step])
            for order, world in worlds.items():
                if order[step] == "claim" and "pod" in order[step:]:
                    _claim_waits_for_its_pod(world.name)
        for order, world in worlds.items():
            # A namespace deleted first asks its Pods to end gently, and here no kubelet ends them.
            world.delete("pod")
            until(world.gone, what=f"everything gone after {', '.join(order)}")
        same(gateway)


def _claim_waits_for_its_pod(namespace):
    until(
        lambda: Observed.objects.filter(
            kind="ResourceClaim", namespace=namespace, name="shared", deleting=True
        )
    )
    row = mirror.find("ResourceClaim", "shared", namespace)
    assert row is not None
    assert row.phase == "reserved"
    assert PROTECTION in row.obj["metadata"]["finalizers"]


def test_a_claims_way_through_the_mirror(gateway):
    """pending → reserved on a node → pending again when its last Pod is gone; the Pod's own claim
    is generated, named by the Pod, and goes with it."""
    world = World(gateway)
    claims = Observed.objects.filter(kind="ResourceClaim", namespace=world.name)

    def phases():
        return sorted(claims.values_list("phase", "node"))

    with following(gateway):
        until(lambda: phases() == [("pending", "")])
        world.start_pod()
        until(lambda: phases() == [("reserved", world.name)] * 2)
        pod = until(lambda: mirror.find("Pod", "p", world.name))
        until(lambda: (pod.refresh_from_db(), pod.node)[1] == world.name)
        own = claims.exclude(name="shared").get()
        assert own.owner_uid == pod.uid
        assert own.classes == [world.name]
        assert pod.uses == sorted(["shared", "template", own.name])
        world.delete("pod")
        until(lambda: phases() == [("pending", "")])
        same(gateway)
        for noun in ("namespace", "class", "node"):
            world.delete(noun)
        until(world.gone)
