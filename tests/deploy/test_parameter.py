"""An API server that stops reading the policies' parameter: the doctor tells, a restart mends.

On control planes of its own: what it does to them holds until they are restarted.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from devices import cluster
from devices.cluster.gateway import Ref
from devices.doctor import asking
from devices.doctor.seen import Parameter
from devices.dra.names import Manager
from devices.dra.namespaces import policy_config
from playground.plane.controlplane import ControlPlane
from tests.deploy.ground import POLICY_KINDS, SYSTEM, policies, rights, until
from tests.playground.planes import NEWEST, OLDER, built

API_SERVER = "kube-apiserver"
#: An API server compares policies and bindings once a second.
A_LOOK = 1.0


@pytest.fixture(
    params=[
        pytest.param(NEWEST, marks=pytest.mark.cluster, id=NEWEST),
        pytest.param(OLDER, marks=[pytest.mark.cluster136, pytest.mark.long], id=OLDER),
    ]
)
def own_plane(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ControlPlane]:
    with ControlPlane(tmp_path, built(request.param)).start(tied=True) as plane:
        yield plane


def test_whether_the_parameter_is_read_is_told(own_plane: ControlPlane) -> None:
    admin = cluster.connect(own_plane.admin_kubeconfig)
    for obj in rights():
        admin.apply(obj, manager="berth-playground", force=True)
    worker = cluster.connect(own_plane.service_account_kubeconfig(SYSTEM, "berth-worker"))

    def write(extended: str) -> None:
        worker.apply(policy_config({"gpu": extended}), manager=Manager.TENANT, force=True)

    def install() -> None:
        for obj in policies():
            admin.apply(obj, manager="berth-playground", force=True)

    def seen() -> Parameter:
        found = asking.parameter(worker)
        assert isinstance(found, Parameter), found
        return found

    install()
    until(lambda: isinstance(asking.parameter(worker), Parameter))
    for extended in ("first.example/gpu", "second.example/gpu"):
        write(extended)
        assert seen().read == seen().written != ""

    bindings = [one for one in policies() if one["kind"] == POLICY_KINDS[0]]
    for obj in bindings:
        admin.delete(Ref(obj["kind"], obj["metadata"]["name"]))
    time.sleep(3 * A_LOOK)
    install()
    write("third.example/gpu")
    until(lambda: isinstance(asking.parameter(worker), Parameter))
    assert seen().read != seen().written

    own_plane.stop_component(API_SERVER)
    own_plane.start_component(API_SERVER)
    assert until(lambda: (found := seen()).read == found.written and found)
