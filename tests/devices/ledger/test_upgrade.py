"""The cluster's release changes under claims in use: what is lost is named, what is bound stays.

1.36 and 1.37 write the accounting in different fields. An API server drops fields that it does not
know, of objects in etcd as of those that are sent to it. Back is not tried: the etcd of 1.36
refuses data that the etcd of 1.37 wrote.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from devices import cluster
from devices.cluster.gateway import Ref
from devices.dra.charges import Rule
from devices.dra.ledgerlog import node_sums
from devices.dra.quantity import parse
from playground.plane.controlplane import ControlPlane
from playground.plane.memory import Memory
from tests.devices.ledger.settling import Place
from tests.playground.planes import NEWEST, OLDER, built

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


def started(folder: Path, release: str) -> ControlPlane:
    """The control plane of that release on the data that another one left."""
    known = Memory.read(folder)
    if known is not None:
        replace(known, release=built(release)).write(folder)
    return ControlPlane(folder, built(release)).start(tied=True)


def claim_a_core(place: Place, name: str, node: str) -> str:
    place.gateway.create(
        {
            "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": place.name},
            "spec": place._asking("core"),
        }
    )
    spec = place._pinned([place._container("m", ["core"])], node)
    spec["resourceClaims"] = [{"name": "core", "resourceClaimName": name}]
    return place._pod(f"{name}-pod", spec)


def differing(place: Place) -> set[tuple[str, str, str]]:
    return {(one.code, str(one.log), str(one.status)) for one in place.book.differences}


def test_what_an_upgrade_loses_is_named(tmp_path: Path) -> None:
    frm, to = OLDER, NEWEST
    plane = started(tmp_path / "plane", frm)
    place = Place(cluster.connect(plane.admin_kubeconfig), "ledger-up", frm, seed=5)
    node = place.nodes[0]
    try:
        place.build()
        claim_a_core(place, "before", node)
        place.settle()
        place.look()
        assert place.book.differences == ()
        charged = node_sums(place.book.charges.values())[node, "cpu"]
        mapped = [e for e in place.book.charges.values() if e.rule is Rule.MAPPING]
        assert mapped and charged is not None
    finally:
        plane.stop()
    plane = started(tmp_path / "plane", to)
    try:
        place.gateway = cluster.connect(plane.admin_kubeconfig)
        place.release = ".".join(to.split(".")[:2])
        for name in place.nodes:
            place._status(name, ready=True)
        place.look()
        lost = differing(place)
        assert {code for code, _, _ in lost} == {"LEDGER_SHAPE_LOST"}
        assert {status for _, _, status in lost} == {"0"}
        assert node_sums(place.book.charges.values())[node, "cpu"] == charged
        pod = place.gateway.get(Ref("Pod", "before-pod", place.name)) or {}
        [told] = pod["status"]["nodeAllocatableResourceClaimStatuses"]
        assert not told.keys() & {"mapping", "overhead", "resources"}
        # The driver of the new release publishes anew: the log keeps what was bound, the Pod's
        # status still says nothing, and the next Pod is counted by all three.
        for name in place.nodes:
            place.generation[name] += 1
            place.publish(name)
        place.look()
        assert {code for code, _, _ in differing(place)} == {"LEDGER_POD_STATUS_DIFFERS"}
        place._delete("Pod", "before-pod", place.name)
        claim_a_core(place, "after", node)
        place.settle()
        place.look()
        assert place.book.differences == ()
        assert node_sums(place.book.charges.values())[node, "cpu"] >= parse("1")
    finally:
        plane.stop()
