"""Breaks parts of a real node: its kubelet by signals, its programs by the file they look at.

What `playground.faults.parts` asks for, on a real node. Several processes may break and mend one
node: all that is wrong is written in its folder.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import time
from collections.abc import Iterator, Mapping
from typing import Any

from devices.cluster.gateway import Gateway
from playground.errors import PlaygroundError
from playground.fleet.driver import Trouble
from playground.fleet.install import PROGRAM
from playground.fleet.site import Identities
from playground.realnodes.node import RealNode
from playground.realnodes.nodefiles import DEVICES, FAULTS, faults_of, trouble_of

Obj = dict[str, Any]
Labels = Mapping[str, str]
# Of `faults.json`: where the programs of a kind stand, and what is no `Trouble` of a driver.
PLACES = {"driver": "drivers", "plugin": "plugins"}
PROCESS = ("down", "crash", "ignoreKubelet")


class RealParts:
    """The parts of one real node; `node` is the name that a fault was asked for."""

    def __init__(self, real: RealNode, node: str) -> None:
        if node != real.name:
            raise PlaygroundError(f"{node} is not the real node {real.name}.")
        self.real = real
        self._identities = Identities(real.plane)
        self.admin: Gateway = self._identities.admin

    # Programs

    def driver(self, name: str) -> str:
        if name:
            return name
        names = [one["name"] for one in self._described("drivers") if one["pools"]]
        if len(names) != 1:
            choice = " or ".join(names) or "none is there"
            raise PlaygroundError(f"Which driver on {self.real.name}: {choice}?")
        return str(names[0])

    @contextlib.contextmanager
    def trouble(self, driver: str) -> Iterator[Trouble]:
        with self._entry("driver", self.driver(driver)) as entry:
            trouble = trouble_of(entry)
            yield trouble
            kept = {key: entry[key] for key in PROCESS if key in entry}
            entry.clear()
            entry.update(faults_of(trouble), **kept)

    health_told = trouble  # the program looks at the file by itself

    def publish(self, driver: str) -> None:
        """Its helper does that by itself, whenever a slice of it changes."""

    def crash(self, kind: str, name: str, *, hold: bool) -> None:
        with self._entry(kind, name) as entry:
            # Any number higher than that of the last crash.
            entry.update({"down": True} if hold else {"crash": time.time_ns()})

    def let_go(self, kind: str, name: str) -> None:
        with self._file() as content:
            for known, entry in content.get(PLACES[kind], {}).items():
                if name in ("", known):
                    entry.pop("down", None)

    def plugins(self) -> list[str]:
        """As the file calls them: by their resource."""
        return [str(one["resource"]) for one in self._described("plugins") if one["devices"]]

    def slices(self, driver: str) -> tuple[Gateway, list[Obj]]:
        name = self.driver(driver)
        gateway = self._identities.of_pod(self._pod(f"driver:{name}"))
        fields = f"spec.nodeName={self.real.name},spec.driver={name}"
        return gateway, list(gateway.list("ResourceSlice", fields=fields).items)

    def _pod(self, program: str) -> Obj:
        fields = f"spec.nodeName={self.real.name}"
        for pod in self.admin.list("Pod", fields=fields).items:
            if pod["metadata"].get("annotations", {}).get(PROGRAM) == program:
                return dict(pod)
        raise PlaygroundError(f"{program} has no Pod on {self.real.name}.")

    # Paths

    def switches(self) -> tuple[Labels, Labels]:
        drivers = {f"driver:{one['name']}" for one in self._described("drivers") if one["pools"]}
        plugins = {f"--resource={one}" for one in self.plugins()}
        to_driver: dict[str, str] = {}
        to_plugin: dict[str, str] = {}
        for one in self.admin.list("DaemonSet").items:
            template = one["spec"]["template"]
            program = template["metadata"].get("annotations", {}).get(PROGRAM, "")
            words = [word for box in template["spec"]["containers"] for word in box.get("args", ())]
            if program in drivers:
                to_driver |= template["spec"].get("nodeSelector", {})
            elif program.startswith("plugin:") and not plugins.isdisjoint(words):
                to_plugin |= template["spec"].get("nodeSelector", {})
        return to_driver, to_plugin

    def given(self) -> Labels:
        return self.real.settings.labels

    # The machine

    def stop_kubelet(self) -> None:
        self.real.kill_kubelet(hold=True)

    def start_kubelet(self) -> None:
        self.real.start_kubelet(wait=False)

    def power_off(self) -> None:
        self.real.unplug()

    def power_on(self) -> None:
        self.real.plug_in()

    # Files

    def _described(self, kind: str) -> list[Obj]:
        content = json.loads((self.real.control / DEVICES).read_text())
        return list(content[kind])

    @contextlib.contextmanager
    def _entry(self, kind: str, name: str) -> Iterator[Obj]:
        with self._file() as content:
            place = content.setdefault(PLACES[kind], {})
            entry = place.setdefault(name, {})
            yield entry
            if not entry:
                del place[name]

    @contextlib.contextmanager
    def _file(self) -> Iterator[Obj]:
        """What is wrong, to be changed; written when the block ends. One process at a time."""
        self.real.control.mkdir(parents=True, exist_ok=True)
        with (self.real.control / f".{FAULTS}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            path = self.real.control / FAULTS
            content = json.loads(path.read_text()) if path.exists() else {}
            yield content
            self.real.write_faults(content)
