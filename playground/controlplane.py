"""A real Kubernetes control plane on loopback: etcd, API server, scheduler, controller-manager.

    with ControlPlane(Path("/tmp/plane")) as plane:
        run(["kubectl", "--kubeconfig", plane.admin_kubeconfig, "get", "nodes"])

Everything it needs lies in its folder: data, certificates, kubeconfigs, logs, notes about its
processes. Several run side by side in different folders. Started again on the same folder it has
the same data and, unless somebody else took them meanwhile, the same ports.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import fcntl
import json
import random
import shutil
import signal
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote

from playground import kubeconfigs
from playground.build import (
    DEFAULT_RELEASE,
    PlaygroundError,
    Tell,
    binary_path,
    build,
    known_release,
    minor,
)
from playground.certificates import Authority, Pair, write_private, write_service_account_keys
from playground.components import (
    API_SERVER,
    COMPONENTS,
    CONTROLLER_MANAGER,
    ETCD,
    PORTS,
    SCHEDULER,
    Layout,
    Tuning,
    command,
)
from playground.https import Answer, ask
from playground.processes import Program

# Below the range from which systems take ports for outgoing connections, so that a port is still
# free when a stopped control plane wants it back.
PORT_RANGE = range(20_000, 32_000)
READY_WITHIN = 60.0
PATIENCE = {SCHEDULER: 1.5, CONTROLLER_MANAGER: 1.5, API_SERVER: 4.0, ETCD: 2.0}
TOKEN_SECONDS = 30 * 24 * 3600
ADMIN, ADMIN_GROUP = "playground-admin", "system:masters"
CLAIM_CONTROLLER = "resource-claim-controller"


class ControlPlane:
    """One control plane in one folder.

    `gates` overrides single feature gates (all of `components.GATES` are on by default).
    `emulated_version`, such as "1.35", serves what that release serves. `components` leaves parts
    out: without the controller-manager nobody gives back allocations whose consumer is missing.
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
        self.components = tuple(name for name in COMPONENTS if name in components)
        self.tuning = tuning or Tuning()
        if unknown := set(components) - set(COMPONENTS):
            raise PlaygroundError(f"No such component: {', '.join(sorted(unknown))}.")
        self._programs = {
            name: Program(
                self.folder / "run" / f"{name}.json", self.folder / "logs" / f"{name}.log"
            )
            for name in COMPONENTS
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
            tuning = Tuning(
                **{k: tuple(v) if isinstance(v, list) else v for k, v in state["tuning"].items()}
            )
            return cls(folder, state["release"], tuning=tuning, **options)
        except (FileNotFoundError, ValueError, KeyError, TypeError) as error:
            raise PlaygroundError(f"There is no control plane in {folder}.") from error

    # Addresses and identities

    @property
    def url(self) -> str:
        """Base URL of the API server, for example https://127.0.0.1:23456."""
        return f"https://127.0.0.1:{self._ports()[API_SERVER]}"

    @property
    def ca_file(self) -> Path:
        """PEM file of the authority that signed the servers' certificates and all clients'."""
        return self._authority().certificate

    @property
    def authority(self) -> Authority:
        """The playground's certificate authority, for servers of other parts (kubelet, proxy)."""
        return self._authority()

    @property
    def admin_kubeconfig(self) -> Path:
        """Kubeconfig of a member of system:masters."""
        return self.kubeconfig(ADMIN, [ADMIN_GROUP])

    def kubeconfig(self, user: str, groups: Sequence[str] = (), *, server: str = "") -> Path:
        """Kubeconfig with a client certificate for `user` in `groups`.

        A node is `system:node:NAME` in `system:nodes`. `server` replaces the API server's URL, for
        example by a proxy's. The file is the same for the same arguments and is written anew when
        the address changes.
        """
        name = kubeconfigs.file_name(user, *groups)
        path = self._kubeconfig_path(name if not server else kubeconfigs.file_name(name, server))
        client = self._authority().client(name, user, groups)
        return kubeconfigs.write(
            path, server=server or self.url, ca_file=self.ca_file, user=user, client=client
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
        user = f"system:serviceaccount:{namespace}:{name}"
        rest = [f"{k}={v}" for k, v in sorted((bound_to or {}).items())]
        return kubeconfigs.write(
            self._kubeconfig_path(kubeconfigs.file_name(user, server, *rest)),
            server=server or self.url,
            ca_file=self.ca_file,
            user=user,
            token=token,
            namespace=namespace,
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
        spec: dict[str, Any] = {"expirationSeconds": seconds}
        if bound_to:
            spec["boundObjectRef"] = {"apiVersion": "v1", **bound_to}
        answer = self.ask(
            f"/api/v1/namespaces/{quote(namespace)}/serviceaccounts/{quote(service_account)}/token",
            method="POST",
            body={
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": spec,
            },
        )
        if answer.status != 201:
            raise PlaygroundError(
                f"No token for ServiceAccount {namespace}/{service_account}: {_words(answer)}"
            )
        return str(answer.json()["status"]["token"])

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
        admin = self._authority().client(
            kubeconfigs.file_name(ADMIN, ADMIN_GROUP), ADMIN, [ADMIN_GROUP]
        )
        return ask(
            self.url + path,
            ca_file=self.ca_file,
            client=admin,
            method=method,
            body=body,
            content_type=content_type,
            timeout=timeout,
        )

    # Life

    def start(self, *, tied: bool = False, tell: Tell | None = None) -> Self:
        """Builds what is missing, starts what is not running, returns when all is ready.

        What an earlier run left is taken over where it is the same, else ended. With `tied` all
        processes end when this Python process ends, even by kill -9; nothing is taken over then.
        Raises `PlaygroundError` (also `BuildError`), and leaves nothing running in that case.
        """
        build(self.release, *([tell] if tell else []))
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
            self._wait_for_default_objects()
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
        for name in ("plane.json", "lock"):
            (self.folder / name).unlink(missing_ok=True)
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

        It is tied to this process where that is asked for, or where the other components are.
        """
        if tied is None:
            tied = any(self._program(other).tied for other in self.components)
        self._start(name, tied)
        self._wait_ready(name)

    def pause(self, name: str) -> None:
        """Freezes a component (SIGSTOP): connections stay open and nobody answers."""
        self._program(name).signal(signal.SIGSTOP)

    def resume(self, name: str) -> None:
        """Lets a paused component go on."""
        self._program(name).signal(signal.SIGCONT)

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
        """Makes the API server forget history: older resourceVersions get 410. Returns the oldest.

        Compacting etcd is not enough, for the API server's watch cache still serves what etcd has
        forgotten; so the API server is restarted (open watches end). One key is written in
        between: else a watcher that had seen everything would be at the newest version, not
        behind it.
        """
        self.stop_component(API_SERVER)
        key = base64.b64encode(b"/berth-playground/compacted").decode()
        put = self._ask_etcd("/v3/kv/put", {"key": key, "value": key})
        revision = int(put["header"]["revision"])
        self._ask_etcd("/v3/kv/compaction", {"revision": str(revision), "physical": True})
        self.start_component(API_SERVER)
        return revision

    # Inside

    def _ask_etcd(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        at = self._layout()
        answer = ask(
            at.url("etcd") + path,
            ca_file=at.etcd_authority,
            client=at.etcd_client,
            method="POST",
            body=body,
            timeout=30,
        )
        if answer.status != 200:
            raise PlaygroundError(f"etcd refused {path}: {_words(answer)}")
        return answer.json()

    def _program(self, name: str) -> Program:
        if name not in self.components:
            raise PlaygroundError(f"This control plane has no {name}.")
        return self._programs[name]

    def _command(self, name: str) -> list[str]:
        return [str(binary_path(self.release)), *command(name, self._layout())]

    def _start_all(self, tied: bool) -> None:
        """In two steps: the scheduler gives up at once where no API server answers."""
        self._choose_ports()
        self._write_identities()
        for step in ((ETCD, API_SERVER), (CONTROLLER_MANAGER, SCHEDULER)):
            present = [name for name in step if name in self.components]
            for name in present:
                self._start(name, tied)
            for name in present:
                self._wait_ready(name)

    def _start(self, name: str, tied: bool) -> None:
        program, wanted = self._program(name), self._command(name)
        if program.running() and program.command() == wanted:
            if program.tied_here or not (tied or program.tied):
                program.signal(signal.SIGCONT)
                return
        program.stop(PATIENCE[name])
        program.start(wanted, tied=tied)

    def _end_leftovers(self, tied: bool) -> None:
        """Ends what is not one of ours any more, and with `tied` all that is not tied to us."""
        for name in reversed(COMPONENTS):
            program = self._programs[name]
            if name not in self.components or (tied and not program.tied_here):
                program.stop(PATIENCE[name])

    def _stop_all(self) -> None:
        """Those that only talk to the API server first and together, etcd last."""
        clients = (SCHEDULER, CONTROLLER_MANAGER)
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
        ports: dict[str, int] = {}
        for name in PORTS:
            port = before.get(name, 0)
            if not port or not (name in ours or _is_free(port)):
                port = _free_port(taken=[*before.values(), *ports.values()])
            ports[name] = port
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
            kubeconfigs.move(self.folder / "kubeconfigs", old, self.url)

    def _authority(self) -> Authority:
        return Authority(self.folder / "certs", "berth-playground")

    def _kubeconfig_path(self, name: str) -> Path:
        return self.folder / "kubeconfigs" / f"{name}.kubeconfig"

    def _layout(self) -> Layout:
        authority = self._authority()
        etcd_authority = Authority(self.folder / "certs" / "etcd", "berth-playground-etcd")
        return Layout(
            folder=self.folder,
            release=self.release,
            emulated_version=self.emulated_version,
            gates=self.gates,
            tuning=self.tuning,
            ports=self._ports(),
            authority=authority.certificate,
            authority_pair=authority.pair,
            etcd_authority=etcd_authority.certificate,
            server=authority.server(
                "kube-apiserver",
                [
                    "kubernetes",
                    "kubernetes.default",
                    "kubernetes.default.svc",
                    "kubernetes.default.svc.cluster.local",
                    "10.0.0.1",
                ],
            ),
            etcd=etcd_authority.server("etcd"),
            etcd_client=etcd_authority.client("kube-apiserver", "kube-apiserver"),
            kubelet_client=authority.client(
                "kubelet-client", "kube-apiserver-kubelet-client", [ADMIN_GROUP]
            ),
            service_account=write_service_account_keys(self.folder / "certs"),
            kubeconfigs={
                name: self._kubeconfig_path(name) for name in (SCHEDULER, CONTROLLER_MANAGER)
            },
        )

    def _write_identities(self) -> None:
        """Kubeconfigs of the components that are clients of the API server."""
        at = self._layout()
        for name, path in at.kubeconfigs.items():
            client: Pair = self._authority().client(name, f"system:{name}")
            kubeconfigs.write(
                path, server=self.url, ca_file=self.ca_file, user=f"system:{name}", client=client
            )

    def _wait_ready(self, name: str) -> None:
        at = self._layout()
        program = self._program(name)
        port, path = {
            ETCD: ("etcd", "/health"),
            API_SERVER: (API_SERVER, "/readyz"),
            SCHEDULER: (SCHEDULER, "/readyz"),
            CONTROLLER_MANAGER: (CONTROLLER_MANAGER, "/healthz"),
        }[name]
        ca_file = at.etcd_authority if name == ETCD else at.authority
        client = at.etcd_client if name == ETCD else None
        answer = Answer(0, b"")
        for _ in _tries(READY_WITHIN):
            if program.running() is None:
                raise PlaygroundError(f"{name} ended while it started:\n{program.last_words()}")
            answer = ask(at.url(port) + path, ca_file=ca_file, client=client, timeout=5)
            if answer.status == 200:
                return
        raise PlaygroundError(
            f"{name} is not ready after {READY_WITHIN:.0f} s: {_words(answer)}\n"
            f"{program.last_words()}"
        )

    def _wait_for_default_objects(self) -> None:
        """Default rights and ServiceAccounts come seconds after /readyz; Pods need them."""
        if API_SERVER not in self.components:
            return
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        wanted = [f"{rbac}/clusterroles/cluster-admin", "/api/v1/namespaces/kube-node-lease"]
        if CONTROLLER_MANAGER in self.components:
            wanted.append("/api/v1/namespaces/default/serviceaccounts/default")
            if self.tuning.makes_claims:
                wanted.append(f"{rbac}/clusterrolebindings/system:controller:{CLAIM_CONTROLLER}")
                wanted.append(f"/api/v1/namespaces/kube-system/serviceaccounts/{CLAIM_CONTROLLER}")
        for _ in _tries(READY_WITHIN):
            wanted = [path for path in wanted if self.ask(path).status != 200]
            if not wanted:
                return
        raise PlaygroundError(f"Not there {READY_WITHIN:.0f} s after the start: {wanted}")

    @contextlib.contextmanager
    def _exclusively(self) -> Iterator[None]:
        """One start or stop at a time, also between processes."""
        with (self.folder / "lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Go's servers do
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _free_port(taken: Sequence[int]) -> int:
    """A random free port: two control planes that start together rarely choose the same."""
    for port in random.sample(PORT_RANGE, 200):
        if port not in taken and _is_free(port):
            return port
    raise PlaygroundError("No free port on 127.0.0.1 between 20000 and 32000: end what holds them.")


def _tries(seconds: float, pause: float = 0.05) -> Iterator[None]:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        yield
        time.sleep(pause)


def _words(answer: Answer) -> str:
    """The message of a Kubernetes Status, or whatever else was said."""
    try:
        return str(answer.json().get("message", "")) or f"HTTP {answer.status}"
    except ValueError:
        return answer.body.decode(errors="replace")[:300] or f"HTTP {answer.status}"
