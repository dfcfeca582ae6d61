"""A real Kubernetes control plane on loopback: etcd, API server, scheduler, controller-manager.

    with ControlPlane(Path("/tmp/plane")) as plane:
        run(["kubectl", "--kubeconfig", plane.admin_kubeconfig, "get", "nodes"])

Everything it needs lies in its folder: data, certificates, kubeconfigs, logs, notes about its
processes. Several run side by side in different folders. Started again on the same folder it has
the same data and, unless somebody else took them meanwhile, the same ports.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from playground import history, readiness
from playground.build import (
    DEFAULT_RELEASE,
    PlaygroundError,
    Tell,
    build,
    known_release,
    minor,
    say_nothing,
)
from playground.certificates import Authority, write_private
from playground.components import (
    API_SERVER,
    COMPONENTS,
    CONTROLLER_MANAGER,
    ETCD,
    PORTS,
    PROXY,
    SCHEDULER,
    Layout,
    Tuning,
    command,
    environment,
)
from playground.https import Answer, ask
from playground.identities import ADMIN, ADMIN_GROUP, Identities
from playground.ports import choose
from playground.processes import Program
from playground.proxy import Fault
from playground.tokens import request_token

PATIENCE = {PROXY: 0.5, SCHEDULER: 1.5, CONTROLLER_MANAGER: 1.5, API_SERVER: 4.0, ETCD: 2.0}
ALL = (*COMPONENTS, PROXY)
TOKEN_SECONDS = 30 * 24 * 3600


class ControlPlane:
    """One control plane in one folder.

    `gates` overrides single feature gates (all of `components.GATES` are on by default).
    `emulated_version`, such as "1.35", serves what that release serves. `components` leaves parts
    out (without the controller-manager nobody gives back allocations whose consumer is missing) or
    adds the `proxy` of `proxy.py`.
    Raises `PlaygroundError` where the folder holds data of another release.
    """

    def __init__(
        self,
        folder: Path,
        release: str = DEFAULT_RELEASE,
        *,
        gates: Mapping[str, bool] | None = None,
        emulated_version: str | None = None,
        components: Sequence[str] = COMPONENTS,
        tuning: Tuning | None = None,
    ):
        self.folder = Path(folder).absolute()
        self.release = known_release(release)
        self.gates = dict(gates or {})
        self.emulated_version = emulated_version
        self.components = tuple(name for name in ALL if name in components)
        self.tuning = tuning or Tuning()
        if unknown := set(components) - set(ALL):
            raise PlaygroundError(f"No such component: {', '.join(sorted(unknown))}.")
        self._identities = Identities(self.folder)
        self._programs = {
            name: Program(
                self.folder / "run" / f"{name}.json", self.folder / "logs" / f"{name}.log"
            )
            for name in ALL
        }
        earlier = self._state().get("release", self.release)
        if minor(str(earlier)) != minor(self.release):
            raise PlaygroundError(
                f"{self.folder} holds data of release {earlier}: wipe it first, or give "
                f"release {self.release} a folder of its own."
            )

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The control plane that was last started in `folder`, with the same options.

        Raises `PlaygroundError` where there was none.
        """
        try:
            state = json.loads((Path(folder) / "plane.json").read_text())
            options = {k: state[k] for k in ("gates", "emulated_version", "components")}
            tuning = Tuning.read(state["tuning"])
            return cls(folder, state["release"], tuning=tuning, **options)
        except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
            raise PlaygroundError(f"There is no control plane in {folder}.") from error

    # Addresses and identities

    @property
    def url(self) -> str:
        """Base URL of the API server, for example https://127.0.0.1:23456."""
        return f"https://127.0.0.1:{self._ports()[API_SERVER]}"

    @property
    def proxy_url(self) -> str:
        """The proxy's URL, for kubeconfigs of those who shall suffer `set_fault`."""
        self._program(PROXY)
        return f"https://127.0.0.1:{self._ports()[PROXY]}"

    @property
    def ca_file(self) -> Path:
        """PEM file of the authority that signed the servers' certificates and all clients'."""
        return self.authority.certificate

    @property
    def authority(self) -> Authority:
        """The playground's certificate authority, for servers of other parts (kubelet, proxy)."""
        return self._identities.authority

    @property
    def admin_kubeconfig(self) -> Path:
        """Kubeconfig of a member of system:masters."""
        return self.kubeconfig(ADMIN, [ADMIN_GROUP])

    def kubeconfig(self, user: str, groups: Sequence[str] = (), *, server: str = "") -> Path:
        """Kubeconfig with a client certificate for `user` in `groups`.

        A node is `system:node:NAME` in `system:nodes`. `server` replaces the API server's URL, for
        example by a proxy's. The same arguments give the same file, written anew each time.
        """
        return self._identities.certificate_kubeconfig(
            user, groups, server=server or self.url, own_address=bool(server)
        )

    def service_account_kubeconfig(
        self,
        namespace: str,
        name: str,
        *,
        bound_to: Mapping[str, str] | None = None,
        seconds: int = TOKEN_SECONDS,
        server: str = "",
    ) -> Path:
        """Kubeconfig with a fresh token of an existing ServiceAccount; see `bound_token`."""
        token = self.bound_token(namespace, name, bound_to=bound_to, seconds=seconds)
        return self._identities.token_kubeconfig(
            namespace,
            name,
            token,
            bound_to or {},
            server=server or self.url,
            own_address=bool(server),
        )

    def bound_token(
        self,
        namespace: str,
        service_account: str,
        *,
        pod_name: str = "",
        pod_uid: str = "",
        bound_to: Mapping[str, str] | None = None,
        seconds: int = TOKEN_SECONDS,
    ) -> str:
        """A token by TokenRequest, dying with a Pod or any `{kind, name, uid}` it is bound to.

        A token of a Pod tells the Pod's node too (`authentication.kubernetes.io/node-name`), as
        one bound to `{"kind": "Node", …}` does. Raises `PlaygroundError` with the API server's
        own words where it refuses.
        """
        if pod_name:
            bound_to = {"kind": "Pod", "name": pod_name, "uid": pod_uid}
        return request_token(
            self.ask, namespace, service_account, bound_to=bound_to or {}, seconds=seconds
        )

    def ask(
        self,
        path: str,
        *,
        method: str = "GET",
        body: dict[str, Any] | None = None,
        content_type: str = "application/json",
        timeout: float = 10,
    ) -> Answer:
        """One raw request to the API server as the playground's admin."""
        return ask(
            self.url + path,
            ca_file=self.ca_file,
            client=self._identities.admin,
            method=method,
            body=body,
            content_type=content_type,
            timeout=timeout,
        )

    # Life

    def start(self, *, tied: bool = False, tell: Tell = say_nothing) -> Self:
        """Builds what is missing, starts what is not running, returns when all is ready.

        What an earlier run left is taken over where it is the same, else ended. With `tied` all
        processes end when this Python process ends, even by kill -9; nothing is taken over then.
        Raises `PlaygroundError` (also `BuildError`), and leaves nothing running in that case.
        """
        build(self.release, tell)
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._exclusively(), contextlib.ExitStack() as undo:
            undo.callback(self._stop_all)  # also for Ctrl-C in the middle
            self._end_leftovers(tied)
            for attempt in range(3):
                try:
                    self._start_all(tied)
                    break
                except PlaygroundError as error:
                    if attempt == 2 or "address already in use" not in str(error):
                        raise
                    self._stop_all()
            readiness.wait_for_default_objects(self.ask, self.components, self.tuning)
            undo.pop_all()
        return self

    def stop(self) -> None:
        """Scheduler and controllers, API server, etcd: TERM, then KILL; at most 10 s together."""
        if self.folder.exists():
            with self._exclusively():
                self._stop_all()

    def wipe(self) -> None:
        """Stops, and removes data, certificates, kubeconfigs and logs."""
        self.stop()
        for name in ("data", "certs", "kubeconfigs", "logs", "run"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for name in ("plane.json", "faults.json", "lock"):
            (self.folder / name).unlink(missing_ok=True)
        self._identities = Identities(self.folder)
        with contextlib.suppress(OSError):  # somebody keeps other things in it
            self.folder.rmdir()

    def __enter__(self) -> Self:
        return self.start(tied=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    # Single components, for faults

    def stop_component(self, name: str, *, kill: bool = False) -> None:
        """Ends one component; with `kill` at once, as a crash. Ending a stopped one is fine."""
        program = self._program(name)
        if kill:
            program.kill()
        else:
            program.stop(PATIENCE[name])

    def start_component(self, name: str, *, tied: bool | None = None) -> None:
        """Starts one component again and waits until it is ready.

        It is tied to this process where that is asked for, or where other components are.
        """
        if tied is None:
            tied = any(self._programs[other].tied_here for other in self.components)
        self._start(name, tied)
        self._wait_ready(name)

    def pause(self, name: str) -> None:
        """Freezes a component (SIGSTOP): connections stay open and nobody answers."""
        self._program(name).pause()

    def resume(self, name: str) -> None:
        """Lets a paused component go on."""
        self._program(name).signal(signal.SIGCONT)

    def set_fault(self, fault: Fault) -> None:
        """What is wrong with the way through the proxy from now on; `Fault()` mends it."""
        self._program(PROXY)
        fault.write(self.folder / "faults.json")

    def states(self) -> dict[str, str]:
        """`running`, `paused` or `stopped` for each component of this control plane."""
        words = {}
        for name in self.components:
            found = self._program(name).running()
            words[name] = "stopped" if found is None else "paused" if found.paused else "running"
        return words

    def pids(self) -> dict[str, int]:
        """Process ids of the components that run."""
        found = {name: self._program(name).running() for name in self.components}
        return {name: process.pid for name, process in found.items() if process}

    def compact(self) -> int:
        """Restarts the API server without its history: older resourceVersions get 410.

        Returns the oldest version that is left; see `history.compact`.
        """
        return history.compact(
            self._layout(),
            stop=lambda: self.stop_component(API_SERVER),
            start=lambda: self.start_component(API_SERVER),
        )

    # Inside

    def _program(self, name: str) -> Program:
        if name not in self.components:
            raise PlaygroundError(f"This control plane has no {name}.")
        return self._programs[name]

    def _start_all(self, tied: bool) -> None:
        """In two steps: the scheduler gives up at once where no API server answers."""
        self._choose_ports()
        (self.folder / "faults.json").unlink(missing_ok=True)
        for name in (SCHEDULER, CONTROLLER_MANAGER):
            self._identities.write_component(name, self.url)
        for step in ((ETCD, API_SERVER), (CONTROLLER_MANAGER, SCHEDULER, PROXY)):
            present = [name for name in step if name in self.components]
            for name in present:
                self._start(name, tied)
            for name in present:
                self._wait_ready(name)

    def _start(self, name: str, tied: bool) -> None:
        program, wanted = self._program(name), command(name, self._layout())
        theirs_is_fine = program.tied_here or not (tied or program.tied)
        if program.running() and program.command() == wanted and theirs_is_fine:
            program.signal(signal.SIGCONT)
        else:
            program.stop(PATIENCE[name])
            program.start(wanted, environment(name), tied=tied)

    def _end_leftovers(self, tied: bool) -> None:
        """Ends what is not one of ours any more, and with `tied` all that is not tied to us."""
        for name in reversed(ALL):
            program = self._programs[name]
            if name not in self.components or (tied and not program.tied_here):
                program.stop(PATIENCE[name])

    def _stop_all(self) -> None:
        """Those that only talk to the API server first and together, etcd last."""
        clients = (PROXY, SCHEDULER, CONTROLLER_MANAGER)
        for name in clients:
            self._programs[name].signal(signal.SIGTERM)
            self._programs[name].signal(signal.SIGCONT)
        for name in (*clients, API_SERVER, ETCD):
            self._programs[name].stop(PATIENCE[name])

    def _state(self) -> dict[str, Any]:
        try:
            read = json.loads((self.folder / "plane.json").read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return read if isinstance(read, dict) else {}

    def _ports(self) -> dict[str, int]:
        ports: dict[str, int] = self._state().get("ports", {})
        if not ports:
            raise PlaygroundError(f"The control plane in {self.folder} was never started.")
        return ports

    def _choose_ports(self) -> None:
        """Keeps the ports of the last run where they are free or still ours.

        Where the API server has to move, the kubeconfigs handed out move with it; clients that
        are running have read theirs already and must be started again.
        """
        before: dict[str, int] = self._state().get("ports", {})
        owners = {port: ETCD if port.startswith(ETCD) else port for port in PORTS}
        ours = {port for port, owner in owners.items() if self._programs[owner].running()}
        ports = choose(PORTS, before, ours)
        state = {
            "release": self.release,
            "ports": ports,
            "gates": self.gates,
            "emulated_version": self.emulated_version,
            "components": list(self.components),
            "tuning": dataclasses.asdict(self.tuning),
        }
        write_private(self.folder / "plane.json", json.dumps(state, indent=2).encode())
        if API_SERVER in before:
            old = f"https://127.0.0.1:{before[API_SERVER]}"
            self._identities.move(old, self.url)

    def _layout(self) -> Layout:
        return Layout(
            folder=self.folder,
            release=self.release,
            emulated_version=self.emulated_version,
            gates=self.gates,
            tuning=self.tuning,
            ports=self._ports(),
            identities=self._identities,
        )

    def _wait_ready(self, name: str) -> None:
        readiness.wait_until_ready(name, self._program(name), self._layout())

    @contextlib.contextmanager
    def _exclusively(self) -> Iterator[None]:
        """One start or stop at a time, also between processes."""
        with (self.folder / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
