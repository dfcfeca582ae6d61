"""A real Kubernetes control plane on loopback: etcd, API server, scheduler, controller-manager.

    with ControlPlane(Path("/tmp/plane")) as plane:
        run(["kubectl", "--kubeconfig", plane.admin_kubeconfig, "get", "nodes"])

Everything it needs lies in its folder: data, certificates, kubeconfigs, logs, notes about its
processes. Several run side by side in different folders. Started again on the same folder it has
the same data and, unless somebody else took them meanwhile, the same ports.
"""

from __future__ import annotations

import contextlib
import fcntl
import shutil
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from playground.building.gobuild import Tell, say_nothing
from playground.building.releases import DEFAULT_RELEASE, build, known_release, minor
from playground.errors import PlaygroundError
from playground.plane import history, memory, readiness
from playground.plane.certificates import Authority
from playground.plane.components import (
    ALL,
    API_SERVER,
    COMPONENTS,
    CONTROLLER_MANAGER,
    ETCD,
    FAULTS,
    PORTS,
    PROXY,
    SCHEDULER,
    Layout,
    Tuning,
    command,
    environment,
)
from playground.plane.https import Answer, ask
from playground.plane.identities import ADMIN, ADMIN_GROUP, Identities
from playground.plane.memory import Memory
from playground.plane.programs import Programs
from playground.plane.proxy import Fault
from playground.plane.tokens import request_token
from playground.running.ports import choose

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
        self._programs = Programs(self.folder, self.components)
        earlier = Memory.read(self.folder)
        if earlier and minor(earlier.release) != minor(self.release):
            raise PlaygroundError(
                f"{self.folder} holds data of release {earlier.release}: wipe it first, or give "
                f"release {self.release} a folder of its own."
            )

    @classmethod
    def open(cls, folder: Path) -> Self:
        """The control plane that was last started in `folder`, with the same options.

        Raises `PlaygroundError` where there was none.
        """
        known = Memory.read(Path(folder))
        if known is None:
            raise PlaygroundError(f"There is no control plane in {folder}.")
        return cls(
            folder,
            known.release,
            gates=known.gates,
            emulated_version=known.emulated_version,
            components=known.components,
            tuning=known.tuning,
        )

    # Addresses and identities

    @property
    def url(self) -> str:
        """Base URL of the API server, for example https://127.0.0.1:23456."""
        return f"https://127.0.0.1:{self._ports()[API_SERVER]}"

    @property
    def proxy_url(self) -> str:
        """The proxy's URL, for kubeconfigs of those who shall suffer `set_fault`."""
        self._programs[PROXY]
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
            undo.callback(self._programs.stop_all)  # also for Ctrl-C in the middle
            self._programs.end_leftovers(tied=tied)
            for attempt in range(3):
                try:
                    self._start_all(tied)
                    break
                except PlaygroundError as error:
                    if attempt == 2 or "address already in use" not in str(error):
                        raise
                    self._programs.stop_all()
            readiness.wait_for_default_objects(self.ask, self.components, self.tuning)
            undo.pop_all()
        return self

    def stop(self) -> None:
        """Scheduler and controllers, API server, etcd: TERM, then KILL; at most 10 s together."""
        if self.folder.exists():
            with self._exclusively():
                self._programs.stop_all()

    def wipe(self) -> None:
        """Stops, and removes data, certificates, kubeconfigs and logs."""
        self.stop()
        for name in ("data", "certs", "kubeconfigs", "logs", "run"):
            shutil.rmtree(self.folder / name, ignore_errors=True)
        for name in (memory.FILE, FAULTS, "lock"):
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
        self._programs.stop(name, kill=kill)

    def start_component(self, name: str, *, tied: bool | None = None) -> None:
        """Starts one component again and waits until it is ready.

        It is tied to this process where that is asked for, or where other components are.
        """
        if tied is None:
            tied = self._programs.any_tied_here()
        self._start(name, tied)
        self._wait_ready(name)

    def pause(self, name: str) -> None:
        """Freezes a component (SIGSTOP): connections stay open and nobody answers."""
        self._programs[name].pause()

    def resume(self, name: str) -> None:
        """Lets a paused component go on."""
        self._programs[name].signal(signal.SIGCONT)

    def set_fault(self, fault: Fault) -> None:
        """What is wrong with the way through the proxy from now on; `Fault()` mends it."""
        self._programs[PROXY]
        fault.write(self.folder / FAULTS)

    def states(self) -> dict[str, str]:
        """`running`, `paused` or `stopped` for each component of this control plane."""
        return self._programs.states()

    def pids(self) -> dict[str, int]:
        """Process ids of the components that run."""
        return self._programs.pids()

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

    def _start_all(self, tied: bool) -> None:
        """In two steps: the scheduler gives up at once where no API server answers."""
        self._choose_ports()
        (self.folder / FAULTS).unlink(missing_ok=True)
        for name in (SCHEDULER, CONTROLLER_MANAGER):
            self._identities.write_component(name, self.url)
        for step in ((ETCD, API_SERVER), (CONTROLLER_MANAGER, SCHEDULER, PROXY)):
            present = [name for name in step if name in self.components]
            for name in present:
                self._start(name, tied)
            for name in present:
                self._wait_ready(name)

    def _start(self, name: str, tied: bool) -> None:
        wanted = command(name, self._layout())
        self._programs.start(name, wanted, environment(name, self.tuning), tied=tied)

    def _ports(self) -> Mapping[str, int]:
        known = Memory.read(self.folder)
        if known is None:
            raise PlaygroundError(f"The control plane in {self.folder} was never started.")
        return known.ports

    def _choose_ports(self) -> None:
        """Keeps the ports of the last run where they are free or still ours.

        Where the API server has to move, the kubeconfigs handed out move with it; clients that
        are running have read theirs already and must be started again.
        """
        earlier = Memory.read(self.folder)
        before = earlier.ports if earlier else {}
        owners = {port: ETCD if port.startswith(ETCD) else port for port in PORTS}
        running = self._programs.running()
        ours = {port for port, owner in owners.items() if owner in running}
        Memory(
            self.release,
            self.gates,
            self.emulated_version,
            self.components,
            self.tuning,
            choose(PORTS, before, ours),
        ).write(self.folder)
        if API_SERVER in before:
            self._identities.move(f"https://127.0.0.1:{before[API_SERVER]}", self.url)

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
        readiness.wait_until_ready(name, self._programs[name], self._layout())

    @contextlib.contextmanager
    def _exclusively(self) -> Iterator[None]:
        """One start or stop at a time, also between processes."""
        with (self.folder / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
