"""What can be broken, and that it is well again afterwards."""

from __future__ import annotations

import inspect
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devices.cluster.gateway import Ref, Unreachable
from playground.commands.table import main
from playground.errors import PlaygroundError
from playground.faults.table import TABLE, broken, find
from playground.fleet.fleet import Fleet
from playground.fleet.site import gateway
from playground.fleet.spec import load
from playground.plane.components import COMPONENTS, PROXY
from playground.plane.controlplane import ControlPlane
from tests.playground.conftest import Ground, a_claim, a_pod, condition
from tests.playground.planes import NEWEST, built

GPU = "gpu.helios.example"
MENDS_ITSELF = {"driver-restart", "kubelet-restart", "history-compacted"}


@pytest.mark.parametrize("fault", TABLE.values(), ids=lambda fault: fault.name)
def test_every_fault_says_what_it_does_and_can_be_mended(fault: Any) -> None:
    assert fault.help
    assert (fault.end is None) == (fault.name in MENDS_ITSELF)
    if fault.end is not None:
        assert set(fault.options(mend=True)) <= set(fault.options())
    for parameter in fault.options().values():
        assert parameter.annotation in ("str", "int", "float", "bool"), "a command can take it"


def test_an_unknown_fault_names_the_known_ones() -> None:
    with pytest.raises(PlaygroundError, match=r"no fault nonsense; there are .*driver-down"):
        find("nonsense")


def test_a_fault_without_its_options_or_its_fleet_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fault", "driver-down", "--folder", str(tmp_path)]) == 1
    assert capsys.readouterr().err == "driver-down needs --node.\n"
    assert main(["fault", "driver-down", "--node", "n1", "--folder", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith(f"No fleet runs in {tmp_path}")


# Devices


def test_a_device_that_vanishes_in_use_stays_with_its_claim(ground: Ground) -> None:
    ground.make(a_claim("c"), a_pod("work", claim="c", node="gpu-1"))
    before = ground.ready("work")
    device = ground.results("c")[0]["device"]
    with broken(ground.fleet, "device-gone", node="gpu-1", device=device):
        ground.wait("unpublished", lambda: device not in ground.devices("gpu-1"))
        assert ground.results("c")[0]["device"] == device
        assert ground.pod("work")["status"] == before["status"]
        ground.make(a_claim("all", count=4), a_pod("four", claim="all", node="gpu-1"))
        ground.wait("does not fit", lambda: ground.said("four", "FailedScheduling"))
    ground.wait("published", lambda: device in ground.devices("gpu-1"))


def test_a_device_tainted_no_execute_ends_its_pods(ground: Ground) -> None:
    ground.make(a_claim("c"), a_pod("work", claim="c", node="gpu-1"))
    ground.ready("work")
    device = ground.results("c")[0]["device"]
    with broken(ground.fleet, "device-tainted", node="gpu-1", device=device, effect="NoExecute"):
        ground.gone("Pod", "work")
    assert ground.said("work", "DeviceTaintManagerEviction") == "Marking for deletion"

    def tainted() -> list[str]:
        devices = [device for one in ground.slices("gpu-1") for device in one["spec"]["devices"]]
        return [device["name"] for device in devices if device.get("taints")]

    ground.wait("no taint", lambda: not tainted())


def test_a_device_that_is_not_well_shows_in_the_pod_and_nowhere_else(ground: Ground) -> None:
    ground.make(a_claim("c"), a_pod("work", claim="c", node="gpu-1"))
    ground.ready("work")
    device = ground.results("c")[0]["device"]

    def health() -> dict[str, str]:
        (container,) = ground.pod("work")["status"]["containerStatuses"]
        (resource,) = container["allocatedResourcesStatus"][0]["resources"]
        return {key: resource.get(key, "") for key in ("health", "message")}

    with broken(ground.fleet, "device-unhealthy", node="gpu-1", device=device):
        sick = {"health": "Unhealthy", "message": "ECC error"}
        ground.wait("unhealthy", lambda: health() == sick)
        assert condition(ground.pod("work"), "Ready") == "True"
    ground.wait("healthy", lambda: health()["health"] == "Healthy")
    with broken(ground.fleet, "driver-down", node="gpu-1"):
        ground.wait("unknown", lambda: health()["health"] == "Unknown")
    ground.wait("healthy again", lambda: health()["health"] == "Healthy")


def test_preparing_takes_its_time(ground: Ground) -> None:
    slow = 20.0
    with broken(ground.fleet, "prepare-slow", node="gpu-1", seconds=slow):
        ground.make(a_claim("c"), a_pod("work", claim="c", node="gpu-1"))
        began = time.monotonic()
        ground.ready("work")
    assert time.monotonic() - began >= slow * ground.fleet.spec.time_scale


# Slices


def test_slices_that_are_stale_do_not_tell_of_a_vanished_device(ground: Ground) -> None:
    with broken(ground.fleet, "slices-stale", node="gpu-1"):
        find("device-gone").do(
            ground.fleet, mend=False, arguments={"node": "gpu-1", "device": "gpu-2"}
        )
        assert "gpu-2" in ground.devices("gpu-1")
    ground.wait("told late", lambda: "gpu-2" not in ground.devices("gpu-1"))
    find("device-gone").do(ground.fleet, mend=True, arguments={"node": "gpu-1", "device": "gpu-2"})
    ground.wait("four devices", lambda: len(ground.devices("gpu-1")) == 4)


def test_an_older_generation_appears_and_is_cleared_away(ground: Ground) -> None:
    def generations() -> set[int]:
        return {one["spec"]["pool"]["generation"] for one in ground.slices("gpu-1")}

    (newest,) = generations()
    with broken(ground.fleet, "slices-older", node="gpu-1"):
        assert generations() == {newest, newest - 1}
    ground.wait("one generation", lambda: generations() == {newest})


def test_slices_that_are_removed_come_back_by_themselves(ground: Ground) -> None:
    with broken(ground.fleet, "slices-removed", node="gpu-1", stay=True):
        assert not ground.slices("gpu-1")
    ground.wait("back when mended", lambda: len(ground.devices("gpu-1")) == 4)
    find("slices-removed").do(ground.fleet, mend=False, arguments={"node": "gpu-1"})
    ground.wait("back at the next re-sync", lambda: len(ground.devices("gpu-1")) == 4)


# The control plane


@pytest.fixture(scope="module")
def shaky(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    """A small fleet on a control plane that tests may break, with the proxy."""
    plane = ControlPlane(
        tmp_path_factory.mktemp("shaky"), built(NEWEST), components=(*COMPONENTS, PROXY)
    )
    with plane:
        fleet = Fleet(load("empty"), plane)
        fleet.start()
        yield fleet
        fleet.stop()


@pytest.fixture
def shaken(shaky: Fleet, request: pytest.FixtureRequest) -> Ground:
    ground = Ground(shaky, "default")
    account = lambda: ground.get("ServiceAccount", "default")  # noqa: E731
    ground.wait("the namespace's account", account)
    return ground


@pytest.mark.cluster
@pytest.mark.parametrize("name", ["apiserver-down", "apiserver-frozen"])
def test_a_fleet_lives_through_an_api_server_that_is_away(shaken: Ground, name: str) -> None:
    pod = f"before-{name}"
    shaken.make(a_pod(pod))
    shaken.ready(pod)
    with broken(shaken.fleet, name):
        shaken.fleet.site.turns.wake(("lease", "plain-01"))
    shaken.make(a_pod(f"after-{name}"))
    shaken.ready(f"after-{name}", seconds=60)
    assert condition(shaken.pod(pod), "Ready") == "True"


@pytest.mark.cluster
def test_a_fleet_lists_again_when_history_is_gone(shaken: Ground) -> None:
    with broken(shaken.fleet, "history-compacted"):
        shaken.make(a_pod("later"))
        shaken.ready("later", seconds=60)


@pytest.mark.cluster
def test_without_a_scheduler_a_pod_waits_without_a_word(shaken: Ground) -> None:
    with broken(shaken.fleet, "scheduler-down"):
        shaken.make(a_pod("waits"))
        assert "conditions" not in shaken.pod("waits")["status"]
    shaken.ready("waits", seconds=60)


@pytest.mark.cluster
def test_without_a_controller_manager_no_claim_is_made(shaken: Ground) -> None:
    with broken(shaken.fleet, "controller-manager-down"):
        shaken.make(a_claim("t", template=True), a_pod("claimless", template="t"))
        assert not shaken.pod("claimless")["status"].get("resourceClaimStatuses")
    made = lambda: shaken.pod("claimless")["status"].get("resourceClaimStatuses")  # noqa: E731
    shaken.wait("a claim", made, seconds=60)


@pytest.mark.cluster
@pytest.mark.parametrize(
    "name, arguments",
    [
        pytest.param("api-refused", {}, id="refused"),
        pytest.param("api-cut", {}, id="cut"),
        pytest.param("api-answers", {"answer": "429"}, id="429"),
        pytest.param("api-answers", {"answer": "500"}, id="500"),
        pytest.param("api-answers", {"answer": "html"}, id="html"),
    ],
)
def test_who_comes_through_the_proxy_suffers_and_recovers(
    shaken: Ground, name: str, arguments: dict[str, str]
) -> None:
    plane = shaken.fleet.plane
    through = gateway(plane.kubeconfig("sufferer", ["system:masters"], server=plane.proxy_url))
    assert through.get(Ref("Node", "plain-01"))
    with broken(shaken.fleet, name, **arguments):
        shaken.wait("suffering", lambda: unreachable(through))
        assert shaken.node("plain-01"), "the fleet goes straight to the API server"
    shaken.wait("recovered", lambda: not unreachable(through))


def unreachable(through: Any) -> bool:
    try:
        through.get(Ref("Node", "plain-01"))
    except Unreachable:
        return True
    return False


def test_options_of_faults_are_read_from_their_functions() -> None:
    options = find("prepare-fails").options()
    assert options["node"].default is inspect.Parameter.empty
    assert options["claims"].default == "*"
