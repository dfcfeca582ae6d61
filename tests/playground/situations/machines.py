"""One node as a situation sees it, real or simulated: what can be done to it, in the same words."""

from __future__ import annotations

from typing import Any, Protocol

from playground import fleet_faults
from playground.fault_parts import pod_uids, trouble_of
from playground.fleet.fleet import Fleet
from playground.realnodes.node import RealNode

DRIVER = "gpu.helios.example"


class Machine(Protocol):
    """`scale`: its minutes last so much of a real node's."""

    name: str
    scale: float

    def prepare_fails(self, claims: str, text: str, *, whole_call: bool = False) -> None: ...

    def prepare_hangs(self, claims: str) -> None: ...

    def unprepare_fails(self, text: str) -> None: ...

    def unhealthy(self, device: str, text: str) -> None: ...

    def driver_down(self) -> None: ...

    def mend(self) -> None:
        """The driver is well, and runs."""

    def kill_kubelet(self) -> None: ...

    def start_kubelet(self) -> None: ...

    def unplug(self) -> None:
        """The whole machine is off."""


class Real:
    """A node with a real kubelet, driver and plugin."""

    scale = 1.0

    def __init__(self, node: RealNode) -> None:
        self.node = node
        self.name = node.name

    def _driver(self, **faults: Any) -> None:
        self.node.write_faults({"drivers": {DRIVER: faults}})

    def prepare_fails(self, claims: str, text: str, *, whole_call: bool = False) -> None:
        self._driver(prepare=[{"claims": claims, "fail": text, "wholeCall": whole_call}])

    def prepare_hangs(self, claims: str) -> None:
        self._driver(prepare=[{"claims": claims, "hang": True}])

    def unprepare_fails(self, text: str) -> None:
        self._driver(unprepare=[{"fail": text}])

    def unhealthy(self, device: str, text: str) -> None:
        self._driver(health={device: {"state": "Unhealthy", "message": text}})

    def driver_down(self) -> None:
        self._driver(down=True)

    def mend(self) -> None:
        self.node.write_faults({})

    def kill_kubelet(self) -> None:
        self.node.kill_kubelet()

    def start_kubelet(self) -> None:
        self.node.start_kubelet(wait=False)

    def unplug(self) -> None:
        self.node.stop()


class Simulated:
    """A node of a fleet."""

    def __init__(self, fleet: Fleet, name: str) -> None:
        self.fleet = fleet
        self.name = name
        self.scale = fleet.spec.time_scale
        self._sick: set[str] = set()

    def prepare_fails(self, claims: str, text: str, *, whole_call: bool = False) -> None:
        if whole_call:  # how gRPC hands on what the upstream helper makes of a driver's error
            text = f"rpc error: code = Unknown desc = prepare resource claims: {text}"
        fleet_faults.begin_prepare_fails(
            self.fleet, node=self.name, claims=claims, message=text, rpc=whole_call
        )

    def prepare_hangs(self, claims: str) -> None:
        fleet_faults.begin_prepare_fails(
            self.fleet, node=self.name, claims=claims, message="", hang=True
        )

    def unprepare_fails(self, text: str) -> None:
        fleet_faults.begin_unprepare_fails(self.fleet, node=self.name, message=text)

    def unhealthy(self, device: str, text: str) -> None:
        self._sick.add(device)
        fleet_faults.begin_device_unhealthy(self.fleet, node=self.name, device=device, message=text)

    def driver_down(self) -> None:
        fleet_faults.begin_driver_down(self.fleet, node=self.name)

    def mend(self) -> None:
        trouble = trouble_of(self.fleet, self.name, DRIVER)
        trouble.unprepare = ""
        fleet_faults.end_prepare_fails(self.fleet, node=self.name)
        while self._sick:
            fleet_faults.end_device_unhealthy(self.fleet, node=self.name, device=self._sick.pop())
        if pod_uids(self.fleet.kubelets[self.name], f"driver:{DRIVER}"):
            fleet_faults.end_driver_down(self.fleet, node=self.name)

    def kill_kubelet(self) -> None:
        self.fleet.kubelets[self.name].stop()

    def start_kubelet(self) -> None:
        self.fleet.kubelets[self.name].start()

    def unplug(self) -> None:
        self.fleet.kubelets[self.name].power_off()
