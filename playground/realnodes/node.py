"""One real node on this machine: its own kubelet and containerd, in namespaces of its own.

    node = RealNode(folder, plane, "real-1").start(tied=True)
    node.kill_kubelet()
    node.start_kubelet()
    node.wipe()

Everything of it lies in its folder. `machine.py` says how it is kept apart from this machine.
`stop` is pulling the plug; a start on the same folder is a reboot.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, Self

import psutil

from playground.building.images import STAND_IN, image_name
from playground.errors import PlaygroundError
from playground.plane.certificates import write_private
from playground.plane.components import GATES
from playground.plane.controlplane import ControlPlane
from playground.plane.https import Answer, ask
from playground.plane.identities import ADMIN_GROUP
from playground.realnodes import config, held, nodefiles, parts
from playground.realnodes.cgroups import NodeCgroup
from playground.realnodes.config import CONTAINERD_SOCKET, Layout, Settings
from playground.realnodes.machine import Machine
from playground.realnodes.parts import Parts
from playground.running.ports import choose

FILE = "node.json"
KUBELET, CONTAINERD = "kubelet", "containerd"
PORTS = (KUBELET, "healthz")


class RealNode:
    """One node in one folder, on one control plane.

    `release` is the kubelet's, by default the control plane's. Its containerd has all images of
    `playground.building.images`; `aliases` are names of images for which the stand-in runs.
    """

    def __init__(
        self,
        folder: Path,
        plane: ControlPlane,
        name: str,
        *,
        release: str = "",
        settings: Settings | None = None,
        aliases: Iterable[str] = (),
    ):
        self.folder = Path(folder).absolute()
        self.plane = plane
        self.name = name
        self.release = release or plane.release
        self.settings = settings or Settings()
        self.aliases = tuple(aliases)
        self.machine = Machine(self.folder, name)

    @classmethod
    def open(cls, folder: Path, plane: ControlPlane) -> Self:
        """The node that was last started in `folder`, with the same options.

        Raises `PlaygroundError` where there was none.
        """
        try:
            read = json.loads((Path(folder) / FILE).read_text())
            return cls(
                folder,
                plane,
                read["name"],
                release=read["release"],
                settings=Settings(**read["settings"]),
                aliases=read["aliases"],
            )
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            raise PlaygroundError(f"There is no real node in {folder}.") from None

    # Life

    def start(self, *, tied: bool = False, wait: bool = True) -> Self:
        """Boots it, starts containerd and kubelet, and with `wait` returns when the Node is Ready.

        With `tied` it ends, and leaves nothing, when this Python process ends, even by kill -9.
        Raises `PlaygroundError`, and leaves nothing running in that case.
        """
        if reason := parts.why_not():
            raise PlaygroundError(reason)
        programs = parts.built(self.release)
        with contextlib.ExitStack() as undo:
            undo.callback(self.stop)  # also for Ctrl-C in the middle
            if not self.machine.is_on(tied=tied):
                self.stop()
                parts.check_watches()
                self._remember(programs)
                self.machine.boot(tied=tied)
            if not self.containerd_pid:
                self.start_containerd()
            self._import_images()
            if not self.kubelet_pid:
                self.start_kubelet(wait=wait)
            undo.pop_all()
        return self

    def stop(self) -> None:
        """Pulls the plug: no process, mount, cgroup or socket stays. The Node object does.

        Also what a killed node left; stopping a stopped one is fine.
        """
        self.machine.halt()

    def wipe(self) -> None:
        """Stops it and removes its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
        if self.folder.exists():
            raise PlaygroundError(f"{self.folder} cannot be removed.")

    def __enter__(self) -> Self:
        return self.start(tied=True)

    def __exit__(self, *_: object) -> None:
        self.wipe()

    # Its parts, for faults

    @property
    def running(self) -> bool:
        """Whether it is switched on; its kubelet and containerd may be down all the same."""
        return bool(self.machine.first_pid)

    @property
    def kubelet_pid(self) -> int:
        """0 where the kubelet does not run."""
        return self.machine.pid(KUBELET)

    @property
    def containerd_pid(self) -> int:
        """0 where containerd does not run."""
        return self.machine.pid(CONTAINERD)

    @property
    def held(self) -> str:
        """What a fault keeps down, so that nobody starts it by himself: `kubelet`, `node` or ""."""
        return held.read(self.folder).what

    def kill_kubelet(self, *, hold: bool = False) -> None:
        """kill -9: containers go on, the Node is lost after the control plane's grace (50 s)."""
        if hold:
            held.note(self.folder, KUBELET)
        self.machine.end(KUBELET, signal.SIGKILL)

    def unplug(self) -> None:
        """Pulls the plug, and holds it; `plug_in` boots it."""
        keeper = self.machine.keeper if self.running else held.read(self.folder).keeper
        held.note(self.folder, held.NODE, keeper)
        self.stop()

    def plug_in(self) -> None:
        """Boots it after `unplug`, to end with whom it ended before, where that one is alive."""
        keeper = held.read(self.folder).keeper
        held.forget(self.folder)
        if keeper in (0, os.getpid()):
            self.start(tied=bool(keeper), wait=False)

    def stop_kubelet(self) -> None:
        """TERM, as a service manager does it."""
        self.machine.end(KUBELET, signal.SIGTERM)

    def start_kubelet(self, *, wait: bool = True) -> None:
        """Starts it (again); with `wait` returns when it has called the Node Ready itself."""
        began = time.time()
        layout = self._layout()
        told = json.dumps(config.kubelet(layout, self.settings), indent=2)
        write_private(self.folder / "kubelet.json", told.encode())
        kubeconfig = self.plane.kubeconfig(f"system:node:{self.name}", ["system:nodes"])
        arguments = config.flags(layout, self.settings, kubeconfig)
        self.machine.start(KUBELET, [str(self._programs.kubelet), *arguments])
        held.forget(self.folder)
        if wait:
            self.machine.wait("the Node Ready", lambda: self.ready_since(began), KUBELET)

    def check_kubelet(self) -> None:
        """Raises `PlaygroundError` with its last words where it does not run."""
        program = self.machine.program(KUBELET)
        if program.running() is None:
            raise PlaygroundError(f"The kubelet of {self.name} ended:\n{program.last_words()}")

    def kill_containerd(self) -> None:
        """kill -9: containers go on under their shims."""
        self.machine.end(CONTAINERD, signal.SIGKILL)

    def start_containerd(self) -> None:
        """Starts it (again) and returns when it answers."""
        programs = self._programs
        network = self.folder / "cni"
        network.mkdir(exist_ok=True)
        (network / config.CNI_PLUGIN).write_text(config.network_plugin())
        (network / config.CNI_PLUGIN).chmod(0o755)
        (network / config.CNI_NETWORK).write_text(json.dumps(config.network()))
        (self.folder / "containerd.toml").write_text(config.containerd(self._layout()))
        command = [str(programs.containerd), "--config", str(self.folder / "containerd.toml")]
        # containerd looks for its shim in PATH.
        path = f"{programs.containerd.parent}:{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
        self.machine.start(CONTAINERD, command, {"PATH": path})
        ask_it = [str(programs.ctr), "-a", CONTAINERD_SOCKET, "plugins", "list", "id==cri"]
        answers = lambda: self.enter(*ask_it).stdout.rstrip().endswith(" ok")  # noqa: E731
        self.machine.wait("containerd answering the kubelet", answers, CONTAINERD)

    def import_image(self, archive: Path) -> None:
        """Gives its containerd the images of an OCI archive."""
        self._ctr("images", "import", str(archive))

    @property
    def control(self) -> Path:
        """The folder of the files that steer its drivers and plugins (`nodefiles.py`)."""
        return self.folder / "kubelet" / "berth"

    def write_devices(self, content: Mapping[str, Any]) -> None:
        """What drivers and plugins find on this node, when they start."""
        nodefiles.write(self.control / nodefiles.DEVICES, content)

    def write_faults(self, content: Mapping[str, Any]) -> None:
        """What is wrong with them from now on; {} mends everything."""
        nodefiles.write(self.control / nodefiles.FAULTS, content)

    # What there is to see

    @property
    def cgroup(self) -> NodeCgroup:
        """What all its Pods are in."""
        return self.machine.cgroup

    @property
    def ports(self) -> Mapping[str, int]:
        """On loopback: `kubelet`, `healthz`; {} before the first start."""
        return dict(self._memory().get("ports", {}))

    @property
    def api_environment(self) -> dict[str, str]:
        """What a container with the node's network needs in its environment to find the API
        server: there is no kube-proxy, so the address that Kubernetes gives it leads nowhere."""
        host, port = self.plane.url.removeprefix("https://").split(":")
        return {"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port}

    def processes(self) -> list[psutil.Process]:
        """Every process on the node, its first one included."""
        return self.machine.processes()

    def enter(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Runs a command on the node (its processes, its mounts); returns what it said."""
        return self.machine.enter(*command)

    def path(self, seen: str) -> Path:
        """Where this machine finds a file that the node sees as `seen`, while the node runs."""
        return Path(f"/proc/{self.machine.first_pid}/root{seen}")

    def log(self, namespace: str, pod: str, container: str) -> str:
        """What a container of a Pod wrote; "" where there is nothing (yet)."""
        pods = self.folder / "log" / "pods"
        found = sorted(pods.glob(f"{namespace}_{pod}_*/{container}/*.log"))
        lines = [line for path in found for line in path.read_text().splitlines()]
        return "\n".join(line.split(" ", 3)[3] for line in lines)  # time, stream, tag, words

    def metrics(self, path: str = "/metrics") -> Answer:
        """The kubelet's own answer, asked as the API server would."""
        authority = self.plane.authority
        user = "kube-apiserver-kubelet-client"
        client = authority.client("kubelet-client", user, [ADMIN_GROUP])
        url = f"https://127.0.0.1:{self.ports[KUBELET]}{path}"
        return ask(url, ca_file=authority.certificate, client=client)

    def condition(self) -> Mapping[str, Any]:
        """The Node's condition Ready; {} while there is no Node."""
        answer = self.plane.ask(f"/api/v1/nodes/{self.name}")
        if answer.status != 200:
            return {}
        conditions = json.loads(answer.body).get("status", {}).get("conditions", ())
        return next((one for one in conditions if one["type"] == "Ready"), {})

    def ready_since(self, moment: float) -> bool:
        """Whether the kubelet itself has said Ready after `moment` (seconds since 1970)."""
        ready = self.condition()
        if ready.get("status") != "True":
            return False
        beat = datetime.fromisoformat(ready["lastHeartbeatTime"])
        return beat.timestamp() >= int(moment) and self.metrics("/healthz").status == 200

    # Inside

    def _import_images(self) -> None:
        """What its containerd has already, from before a reboot, is not given again."""
        archives = parts.images(self.release)
        wanted = json.dumps([*(path.name for path in archives), *self.aliases])
        note = self.folder / "imported.json"
        if note.exists() and note.read_text() == wanted:
            return
        for archive in archives:
            self.import_image(archive)
        for alias in self.aliases:
            self._ctr("images", "tag", "--force", image_name(STAND_IN), alias)
        note.write_text(wanted)

    def _ctr(self, *arguments: str) -> None:
        ctr = self._programs.ctr
        done = self.enter(str(ctr), "-a", CONTAINERD_SOCKET, "-n", "k8s.io", *arguments)
        if done.returncode:
            raise PlaygroundError(f"containerd of {self.name} refused: {done.stderr.strip()}")

    @property
    def _programs(self) -> Parts:
        """Those it was booted with, also where newer ones were built since."""
        return Parts(**{name: Path(path) for name, path in self._memory()["programs"].items()})

    def _memory(self) -> Mapping[str, Any]:
        """What its folder remembers of the last boot; {} before the first."""
        try:
            return dict(json.loads((self.folder / FILE).read_text()))
        except (FileNotFoundError, ValueError):
            return {}

    def _remember(self, programs: Parts) -> None:
        """The options for `open`, and ports: those of the last time where they are free."""
        self.control.mkdir(parents=True, exist_ok=True)
        content = {
            "name": self.name,
            "release": self.release,
            "settings": asdict(self.settings),
            "aliases": self.aliases,
            "programs": {name: str(path) for name, path in asdict(programs).items()},
            "ports": choose(PORTS, self.ports, ()),
        }
        write_private(self.folder / FILE, json.dumps(content, indent=2).encode())

    def _layout(self) -> Layout:
        serving = self.plane.authority.server(f"kubelet-{self.name}", [self.name])
        minor_number = int(self.release.split(".")[1])
        gates = {gate: True for gate, since in GATES.items() if since <= minor_number}
        gates |= {gate: on for gate, on in self.plane.gates.items() if gate in gates}
        return Layout(
            folder=self.folder,
            name=self.name,
            cgroup=self.cgroup.name,
            kubelet_port=self.ports[KUBELET],
            healthz_port=self.ports["healthz"],
            client_authority=self.plane.ca_file,
            serving_certificate=serving.certificate,
            serving_key=serving.key,
            runc=str(self._programs.runc),
            snapshotter=_snapshotter(self.folder),
            gates=gates,
        )


def _snapshotter(folder: Path) -> str:
    """An overlay cannot lie on an overlay, which is what a container's own root often is."""
    said = subprocess.run(
        ["stat", "--file-system", "--format=%T", str(folder)], capture_output=True, text=True
    ).stdout
    return "native" if said.strip() == "overlayfs" else "overlayfs"
