"""Devices that several nodes can use: which slices are taken, and where the line lands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from devices import cluster
from devices.cluster.gateway import Ref, Rejected
from devices.dra.ledgerlog import Act, node_sums
from devices.dra.quantity import parse
from playground.plane.controlplane import ControlPlane
from tests.devices.ledger.settling import DRIVER, Place, until

Obj = dict[str, Any]


@pytest.fixture(scope="module")
def place(plane: ControlPlane) -> Iterator[Place]:
    made = Place(cluster.connect(plane.admin_kubeconfig), "ledger-fabric", plane.release, seed=3)
    made.build()
    yield made
    made.gateway.delete(Ref("ResourceSlice", f"{made.name}-fabric"))
    made.remove()


def a_fabric_slice(place: Place, values: list[str]) -> Obj:
    """One device that every node with one of these labels can use, and that costs 2 CPUs."""
    term = {"matchExpressions": [{"key": "at", "operator": "In", "values": values}]}
    cost = place._cost(cpu={"times": "2"})
    attributes = {f"{DRIVER}/kind": {"string": "core"}}
    return {
        "kind": "ResourceSlice",
        "metadata": {"name": f"{place.name}-fabric"},
        "spec": {
            "driver": DRIVER,
            "nodeSelector": {"nodeSelectorTerms": [term]},
            "pool": {"name": f"{place.name}-fabric", "generation": 1, "resourceSliceCount": 1},
            "devices": [{"name": "drawer-0", "attributes": attributes, **cost}],
        },
    }


def test_the_line_of_a_device_for_several_nodes_goes_with_its_pod(place: Place) -> None:
    for node in place.nodes:
        place.withdraw(node)
    place.gateway.create(a_fabric_slice(place, place.nodes))
    claim = {
        "kind": "ResourceClaim",
        "metadata": {"name": "drawer", "namespace": place.name},
        "spec": place._asking("core"),
    }
    place.gateway.create(claim)
    for node in place.nodes:
        spec = place._pinned([place._container("m", ["core"])], node)
        spec["resourceClaims"] = [{"name": "core", "resourceClaimName": "drawer"}]
        name = place._pod(place._name("moves"), spec)
        place.settle()
        place.look()
        assert place.book.differences == ()
        [line] = [
            line
            for line in place.book.standing.values()
            if line.act is Act.CHARGE and line.entry.device
        ]
        assert (line.entry.node, line.entry.amount) == (node, parse("2"))
        assert line.entry.payer == f"claim/{place.name}/drawer"
        place._delete("Pod", name, place.name)
        place.settle()
        place.look()
        assert not any(line.entry.device for line in place.book.standing.values())
        assert node_sums(place.book.charges.values()) == {}


@pytest.mark.cluster
def test_1_37_refuses_a_slice_for_nodes_of_which_one_lacks_the_feature(
    plane_137: ControlPlane,
) -> None:
    place = Place(cluster.connect(plane_137.admin_kubeconfig), "ledger-mixed", "1.37.2", seed=4)
    place.build()
    try:
        for node in place.nodes:
            place.withdraw(node)
        place.gateway.merge(
            Ref("Node", place.nodes[1]), {"status": {"declaredFeatures": []}}, subresource="status"
        )
        mixed = a_fabric_slice(place, place.nodes)

        def refused() -> bool:
            try:
                place.gateway.create(mixed, dry_run=True)
            except Rejected as error:
                return f'"{place.nodes[1]}" does not support' in str(error)
            return False

        until(refused, "the API server took a slice for a node without the feature")
        place.gateway.create(a_fabric_slice(place, place.nodes[:1]))
    finally:
        place.gateway.delete(Ref("ResourceSlice", f"{place.name}-fabric"))
        place.remove()
