"""The command lines of etcd and the three Kubernetes parts, for each release the playground has."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from playground.building.releases import binary_path
from playground.plane.identities import Identities

ETCD = "etcd"
API_SERVER = "kube-apiserver"
SCHEDULER = "kube-scheduler"
CONTROLLER_MANAGER = "kube-controller-manager"
# In the order of starting; stopping goes the other way.
COMPONENTS = (ETCD, API_SERVER, CONTROLLER_MANAGER, SCHEDULER)
PROXY = "proxy"  # not one of Kubernetes' parts: starts only where it is asked for
ALL = (*COMPONENTS, PROXY)
PORTS = (ETCD, "etcd-peer", API_SERVER, SCHEDULER, CONTROLLER_MANAGER, PROXY)
FAULTS = "faults.json"  # in the control plane's folder: what the proxy does
REPOSITORY = Path(__file__).resolve().parents[2]

# The features of devices that Berth shows, and the minor release of 1.x that first has the gate
# (pkg/features/kube_features.go); an older or emulated release refuses a gate it does not know.
GATES: Mapping[str, int] = {
    "DRAResourceClaimDeviceStatus": 32,
    "DRADeviceTaints": 33,
    "DRAPartitionableDevices": 33,
    "DRAConsumableCapacity": 34,
    "DRADeviceBindingConditions": 34,
    "DRAExtendedResource": 34,
    "DRADeviceTaintRules": 35,
    "DRAListTypeAttributes": 36,
    "DRANodeAllocatableResources": 36,
    "DRAResourcePoolStatus": 36,
}
ETCD_QUOTA = 8 * 1024**3
AUDIT_POLICY = REPOSITORY / "deploy" / "audit-policy.yaml"


@dataclass(frozen=True, slots=True)
class Tuning:
    """What large or special runs change; the defaults suit a demo of some ten nodes."""

    max_requests_inflight: int = 0  # 0: the API server's own default (400)
    max_mutating_requests_inflight: int = 0  # 0: its own default (200)
    disabled_admission_plugins: tuple[str, ...] = ()
    controllers: tuple[str, ...] = ("*",)  # "-node-lifecycle-controller": nodes stay Ready
    controllers_qps: int = 200
    scheduler_qps: int = 200
    node_grace: int = 0  # seconds without a heartbeat until a node is lost; 0: the default (50)
    garbage_percent: int = 0  # Go's GOGC, 0: 100; 400 saves a fifth of the work, costs memory
    audit: bool = True

    @classmethod
    def read(cls, written: Mapping[str, Any]) -> Self:
        """What `dataclasses.asdict` and JSON made of one."""
        options: dict[str, Any] = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in written.items()
        }
        return cls(**options)

    @property
    def makes_claims(self) -> bool:
        """Whether the controller that makes claims from templates runs."""
        name = "resourceclaim-controller"
        wanted = "*" in self.controllers or name in self.controllers
        return wanted and f"-{name}" not in self.controllers


@dataclass(frozen=True, slots=True)
class Layout:
    """Everything the command lines need to know about one control plane."""

    folder: Path
    release: str
    emulated_version: str | None
    gates: Mapping[str, bool]
    tuning: Tuning
    ports: Mapping[str, int]
    identities: Identities

    def url(self, port: str) -> str:
        return f"https://127.0.0.1:{self.ports[port]}"

    @property
    def served_minor(self) -> int:
        """36 for release 1.36.3; the emulated one where one is emulated."""
        return int((self.emulated_version or self.release).split(".")[1])


def command(name: str, layout: Layout) -> list[str]:
    """The whole command line of one component."""
    if name == PROXY:
        return _proxy(layout)
    lines = {
        ETCD: _etcd,
        API_SERVER: _api_server,
        SCHEDULER: _scheduler,
        CONTROLLER_MANAGER: _controller_manager,
    }
    return [str(binary_path(layout.release)), name, *lines[name](layout)]


def environment(name: str, tuning: Tuning) -> dict[str, str]:
    """What is added to the environment of one component."""
    if name == PROXY:
        return {"PYTHONPATH": str(REPOSITORY)}
    return {"GOGC": str(tuning.garbage_percent)} if tuning.garbage_percent else {}


def gates_of(name: str, layout: Layout) -> dict[str, bool]:
    """The gates set for one component: all of `GATES` that the release knows, then the chosen.

    Scheduler and controller-manager read DeviceTaintRules in the version of their own release (v1
    since 1.37). Where an older one is emulated the API server does not serve that version, and the
    scheduler would never become ready: rules can then be written, but nobody heeds them.
    """
    gates = {gate: True for gate, since in GATES.items() if layout.served_minor >= since}
    own_minor = int(layout.release.split(".")[1])
    unserved = layout.served_minor < 37 <= own_minor
    if name != API_SERVER and unserved and "DRADeviceTaintRules" in gates:
        gates["DRADeviceTaintRules"] = False
    return gates | dict(layout.gates)


def _etcd(at: Layout) -> list[str]:
    client, peer = at.url("etcd"), at.url("etcd-peer")
    pair, authority = at.identities.etcd_server, at.identities.etcd_authority.certificate
    return [
        "--name=playground",
        f"--data-dir={at.folder / 'data' / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=playground={peer}",
        *(f"--{kind}cert-file={pair.certificate}" for kind in ("", "peer-")),
        *(f"--{kind}key-file={pair.key}" for kind in ("", "peer-")),
        *(f"--{kind}trusted-ca-file={authority}" for kind in ("", "peer-")),
        "--client-cert-auth",
        "--peer-client-cert-auth",
        f"--quota-backend-bytes={ETCD_QUOTA}",
        "--unsafe-no-fsync",  # a killed process loses nothing; only a killed machine would
        "--log-level=error",
    ]


def _api_server(at: Layout) -> list[str]:
    tuning = at.tuning
    flags = [
        "--bind-address=127.0.0.1",
        "--advertise-address=127.0.0.1",  # a machine without a network has no other
        "--endpoint-reconciler-type=none",  # endpoints may not be on loopback
        f"--secure-port={at.ports[API_SERVER]}",
        f"--tls-cert-file={at.identities.server.certificate}",
        f"--tls-private-key-file={at.identities.server.key}",
        f"--client-ca-file={at.identities.authority.certificate}",
        f"--requestheader-client-ca-file={at.identities.front_proxy_authority.certificate}",
        "--requestheader-allowed-names=front-proxy-client",
        f"--etcd-servers={at.url('etcd')}",
        f"--etcd-cafile={at.identities.etcd_authority.certificate}",
        f"--etcd-certfile={at.identities.etcd_client.certificate}",
        f"--etcd-keyfile={at.identities.etcd_client.key}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-account-key-file={at.identities.service_account.certificate}",
        f"--service-account-signing-key-file={at.identities.service_account.key}",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        f"--kubelet-client-certificate={at.identities.kubelet_client.certificate}",
        f"--kubelet-client-key={at.identities.kubelet_client.key}",
        f"--kubelet-certificate-authority={at.identities.authority.certificate}",
        "--kubelet-preferred-address-types=InternalIP,Hostname",
        "--runtime-config=" + ",".join(_runtime_config(at)),
        *_release_flags(API_SERVER, at),
    ]
    if tuning.disabled_admission_plugins:
        flags.append("--disable-admission-plugins=" + ",".join(tuning.disabled_admission_plugins))
    if tuning.max_requests_inflight:
        flags.append(f"--max-requests-inflight={tuning.max_requests_inflight}")
    if tuning.max_mutating_requests_inflight:
        flags.append(f"--max-mutating-requests-inflight={tuning.max_mutating_requests_inflight}")
    if tuning.audit:
        flags += [
            f"--audit-policy-file={AUDIT_POLICY}",
            f"--audit-log-path={at.folder / 'logs' / 'audit.log'}",
            "--audit-log-maxsize=20",  # MiB
            "--audit-log-maxbackup=2",
        ]
    return flags


def _runtime_config(at: Layout) -> list[str]:
    """API versions that are off by default.

    DeviceTaintRule is served as v1alpha3 to 1.35, as v1beta2 too in 1.36, and as v1 from 1.37 on;
    ResourcePoolStatusRequest as v1alpha3 only. Who switches DRADeviceTaintRules off gets a release
    as it comes, without the older versions.
    """
    on = "true" if at.gates.get("DRADeviceTaintRules", True) else "false"
    versions = [f"resource.k8s.io/v1alpha3={on}"]
    if at.served_minor >= 33:
        versions.append(f"resource.k8s.io/v1beta2={on}")
    return versions


def _scheduler(at: Layout) -> list[str]:
    return [
        *_client_of_the_api_server(SCHEDULER, at),
        f"--kube-api-qps={at.tuning.scheduler_qps}",
        f"--kube-api-burst={at.tuning.scheduler_qps * 2}",
    ]


def _controller_manager(at: Layout) -> list[str]:
    return [
        *_client_of_the_api_server(CONTROLLER_MANAGER, at),
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={at.identities.service_account.key}",
        f"--root-ca-file={at.identities.authority.certificate}",
        f"--cluster-signing-cert-file={at.identities.authority.pair.certificate}",
        f"--cluster-signing-key-file={at.identities.authority.pair.key}",
        f"--controllers={','.join(at.tuning.controllers)}",
        f"--kube-api-qps={at.tuning.controllers_qps}",
        f"--kube-api-burst={at.tuning.controllers_qps * 2}",
        *(
            (f"--node-monitor-grace-period={at.tuning.node_grace}s", "--node-monitor-period=1s")
            if at.tuning.node_grace
            else ()
        ),
    ]


def _proxy(at: Layout) -> list[str]:
    pair = at.identities.server
    return [
        sys.executable,
        *("-m", "playground.plane.proxy"),
        f"--port={at.ports[PROXY]}",
        f"--target={at.ports[API_SERVER]}",
        f"--certificate={pair.certificate}",
        f"--key={pair.key}",
        f"--faults={at.folder / FAULTS}",
    ]


def _client_of_the_api_server(name: str, at: Layout) -> list[str]:
    kubeconfig = at.identities.component_path(name)
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--leader-elect=false",
        "--bind-address=127.0.0.1",
        f"--secure-port={at.ports[name]}",
        f"--tls-cert-file={at.identities.server.certificate}",
        f"--tls-private-key-file={at.identities.server.key}",
        *_release_flags(name, at),
    ]


def _release_flags(name: str, at: Layout) -> list[str]:
    gates = gates_of(name, at).items()
    flags = ["--feature-gates=" + ",".join(f"{gate}={str(on).lower()}" for gate, on in gates)]
    if at.emulated_version:
        flags.append(f"--emulated-version={at.emulated_version}")
    return flags
