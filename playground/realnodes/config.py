"""What kubelet and containerd of a real node are told: pure, from one frozen layout.

Paths are as the node sees them (`init.VIEW`); only what is in the node's own folder on the machine
(configuration, certificates) has its path there, for the node sees those too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

KUBELET_ROOT = "/var/lib/kubelet"
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
CDI_FOLDER = "/var/run/cdi"
LOGS = "/var/log/pods"
PAUSE_IMAGE = "localhost/berth/pause:1"
CNI_NETWORK = "10-berth.conflist"
CNI_PLUGIN = "berth-loopback"


@dataclass(frozen=True, slots=True)
class Settings:
    """What may differ between real nodes.

    `sync_seconds`: a preparation that failed is tried again after 1 to 1.5 times this (the
    kubelet's default is 60). `status_seconds`: how often the Node's status is renewed. `taints` are
    what the Node is born with, `{"key", "value", "effect"}` each. `kubelet` overrides any field
    of the KubeletConfiguration.
    """

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Mapping[str, str], ...] = ()
    sync_seconds: float = 1.0
    status_seconds: float = 10.0
    kubelet: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where things of one node are."""

    folder: Path
    name: str
    cgroup: str
    kubelet_port: int
    healthz_port: int
    client_authority: Path
    serving_certificate: Path
    serving_key: Path
    runc: str
    snapshotter: str
    gates: Mapping[str, bool]


def kubelet(at: Layout, settings: Settings) -> dict[str, Any]:
    """The KubeletConfiguration (kubelet.config.k8s.io/v1beta1)."""
    nothing = {
        signal: "0%"
        for signal in (
            "memory.available",
            "nodefs.available",
            "nodefs.inodesFree",
            "imagefs.available",
            "imagefs.inodesFree",
        )
    }
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": "127.0.0.1",
        "port": at.kubelet_port,
        "readOnlyPort": 0,
        "healthzBindAddress": "127.0.0.1",
        "healthzPort": at.healthz_port,
        "tlsCertFile": str(at.serving_certificate),
        "tlsPrivateKeyFile": str(at.serving_key),
        "authentication": {
            "anonymous": {"enabled": False},
            "webhook": {"enabled": True},
            "x509": {"clientCAFile": str(at.client_authority)},
        },
        "authorization": {"mode": "Webhook"},
        "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
        "failCgroupV1": False,
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{at.cgroup}",
        "cgroupsPerQOS": True,
        "enforceNodeAllocatable": ["pods"],
        "oomScoreAdj": 0,
        "failSwapOn": False,
        "localStorageCapacityIsolation": False,  # cannot see every machine's disk
        "makeIPTablesUtilChains": False,
        "evictionHard": nothing,  # a full disk of the machine is no business of the node
        "imageGCHighThresholdPercent": 100,
        # Nobody answers there; without it every Pod gets a warning that clusters do not have.
        "clusterDNS": ["10.0.0.10"],
        "clusterDomain": "cluster.local",
        "resolvConf": "",
        "staticPodPath": "",
        "podLogsDir": LOGS,
        "registerNode": True,
        "registerWithTaints": [dict(taint) for taint in settings.taints],
        "syncFrequency": _seconds(settings.sync_seconds),
        "nodeStatusUpdateFrequency": _seconds(settings.status_seconds),
        "nodeLeaseDurationSeconds": 40,
        "featureGates": dict(at.gates),
        **settings.kubelet,
    }


def _seconds(number: float) -> str:
    return f"{number:g}s"


def containerd(at: Layout) -> str:
    """containerd's configuration, version 4, as TOML."""
    off = ", ".join(
        f"'io.containerd.{name}'"
        for name in (
            "snapshotter.v1.blockfile",
            "snapshotter.v1.erofs",
            "differ.v1.erofs",
            "mount-handler.v1.erofs",
            "image-verifier.v1.bindir",
            "internal.v1.opt",
            "tracing.processor.v1.otlp",
            "internal.v1.tracing",
        )
    )
    return f"""version = 4
root = '/var/lib/containerd'
state = '/run/containerd'
oom_score = 0
imports = []
disabled_plugins = [{off}]
[plugins.'io.containerd.server.v1.grpc']
  address = '{CONTAINERD_SOCKET}'
[plugins.'io.containerd.server.v1.ttrpc']
  address = '{CONTAINERD_SOCKET}.ttrpc'
[plugins.'io.containerd.shim.v1.manager']
  socket_dir = '/run/containerd/s'
[plugins.'io.containerd.nri.v1.nri']
  disable = true
[plugins.'io.containerd.cri.v1.images']
  snapshotter = '{at.snapshotter}'
  [plugins.'io.containerd.cri.v1.images'.pinned_images]
    sandbox = '{PAUSE_IMAGE}'
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  disable_apparmor = true
  enable_criu = false
  cdi_spec_dirs = ['{CDI_FOLDER}']
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
    runtime_type = 'io.containerd.runc.v2'
    [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
      BinaryName = '{at.runc}'
      Root = '/run/containerd/runc'
      SystemdCgroup = false
  [plugins.'io.containerd.cri.v1.runtime'.cni]
    bin_dirs = ['{at.folder}/cni']
    conf_dir = '{at.folder}/cni'
    use_internal_loopback = true
"""


def network() -> dict[str, Any]:
    """The CNI configuration of every Pod that has not the node's own network."""
    return {"cniVersion": "1.0.0", "name": "berth", "plugins": [{"type": CNI_PLUGIN}]}


def network_plugin() -> str:
    """A CNI plugin (containernetworking SPEC 1.0.0) that connects a Pod with nothing.

    A Pod has its loopback, and an address to show, of the block that is kept for documentation
    (RFC 5737): whoever needs the API server uses the node's own network.
    """
    return """#!/bin/sh
case "$CNI_COMMAND" in
ADD)
    last=$((0x$(printf %.6s "$CNI_CONTAINERID") % 254 + 1))
    printf '{"cniVersion": "1.0.0", "interfaces": [{"name": "%s", "sandbox": "%s"}], ' \
        "$CNI_IFNAME" "$CNI_NETNS"
    printf '"ips": [{"address": "198.51.100.%s/32", "interface": 0}]}' "$last"
    ;;
VERSION) printf '{"cniVersion": "1.0.0", "supportedVersions": ["0.4.0", "1.0.0"]}' ;;
esac
"""


def flags(at: Layout, settings: Settings, kubeconfig: Path) -> list[str]:
    """The kubelet's command line behind the program's name."""
    chosen = [
        f"--config={at.folder / 'kubelet.json'}",
        f"--kubeconfig={kubeconfig}",
        f"--root-dir={KUBELET_ROOT}",
        f"--cert-dir={at.folder / 'certs'}",
        f"--hostname-override={at.name}",
    ]
    if settings.labels:
        pairs = ",".join(f"{key}={value}" for key, value in sorted(settings.labels.items()))
        chosen.append(f"--node-labels={pairs}")
    return chosen
