"""Real nodes, as far as no kubelet is needed: what they are told, and who can have them."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from playground.building.releases import minor, releases
from playground.fleet.spec import load
from playground.realnodes import config, init, parts
from playground.realnodes.cgroups import hierarchies
from playground.realnodes.config import Layout, Settings
from playground.realnodes.guard import full_name, images_of
from playground.realnodes.machine import cgroup_name

ROOT = Path(__file__).resolve().parents[3]

V1 = """\
30 24 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755
31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct
32 30 0:28 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory
33 30 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw
"""
V2 = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"


def a_layout(**more: object) -> Layout:
    layout = {
        "folder": Path("/srv/plane/nodes/real-1"),
        "name": "real-1",
        "cgroup": "berth-node-0123456789",
        "kubelet_port": 26810,
        "healthz_port": 26811,
        "client_authority": Path("/srv/plane/certs/ca.crt"),
        "serving_certificate": Path("/srv/plane/certs/kubelet-real-1.crt"),
        "serving_key": Path("/srv/plane/certs/kubelet-real-1.key"),
        "runc": "/usr/sbin/runc",
        "snapshotter": "overlayfs",
        "gates": {"DRADeviceTaints": True},
    }
    return Layout(**(layout | more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("mounts", "found"),
    [
        pytest.param(V1, ["cpu,cpuacct", "memory", "unified"], id="one for each controller"),
        pytest.param(V2, ["."], id="one for all"),
    ],
)
def test_where_the_hierarchies_are(tmp_path: Path, mounts: str, found: list[str]) -> None:
    file = tmp_path / "mountinfo"
    file.write_text(mounts)
    assert list(hierarchies(file)) == [Path("/sys/fs/cgroup") / name for name in found]


def test_the_kubelet_listens_on_loopback_only_and_lets_in_who_has_rights() -> None:
    told = config.kubelet(a_layout(), Settings())
    assert told["address"] == told["healthzBindAddress"] == "127.0.0.1"
    assert told["readOnlyPort"] == 0
    assert told["authentication"]["anonymous"] == {"enabled": False}
    assert told["authorization"] == {"mode": "Webhook"}


def test_settings_reach_the_kubelet() -> None:
    taint = {"key": "example.com/new", "value": "", "effect": "NoSchedule"}
    settings = Settings(
        labels={"b": "2", "a": "1"},
        taints=(taint,),
        sync_seconds=0.5,
        status_seconds=3,
        kubelet={"topologyManagerPolicy": "best-effort"},
    )
    told = config.kubelet(a_layout(), settings)
    assert told["syncFrequency"] == "0.5s"
    assert told["nodeStatusUpdateFrequency"] == "3s"
    assert told["registerWithTaints"] == [taint]
    assert told["topologyManagerPolicy"] == "best-effort"
    assert "--node-labels=a=1,b=2" in config.flags(a_layout(), settings, Path("/k"))


def test_containerd_is_told_in_toml_even_where_a_folder_has_a_blank() -> None:
    told = tomllib.loads(config.containerd(a_layout(folder=Path("/srv/a plane/n"))))
    plugins = told["plugins"]
    runtime = plugins["io.containerd.cri.v1.runtime"]
    assert runtime["cni"]["conf_dir"] == "/srv/a plane/n/cni"
    assert runtime["cdi_spec_dirs"] == ["/var/run/cdi"]
    assert runtime["containerd"]["runtimes"]["runc"]["options"]["BinaryName"] == "/usr/sbin/runc"
    assert plugins["io.containerd.nri.v1.nri"]["disable"] is True


def test_sockets_of_shims_fit_into_a_socket_address() -> None:
    """A Unix socket's path has 107 bytes at most; containerd names shims' by 64 digits."""
    told = tomllib.loads(config.containerd(a_layout()))
    folder = told["plugins"]["io.containerd.shim.v1.manager"]["socket_dir"]
    assert len(f"{folder}/{'0' * 64}") <= 107


def test_nodes_of_one_name_in_two_folders_have_two_cgroups() -> None:
    assert cgroup_name(Path("/a/nodes/real-1")) != cgroup_name(Path("/b/nodes/real-1"))


@pytest.mark.parametrize("release", releases())
def test_the_kubelet_is_of_the_control_planes_modules(release: str) -> None:
    """Equal versions are compiled once, and a node is of the release that it says it is."""

    def replaced(path: Path) -> str:
        return path.read_text().partition("\nreplace (")[2].partition("\n)")[0]

    own = replaced(parts.SOURCES / f"kubelet-{minor(release)}" / "go.mod")
    assert own == replaced(ROOT / "playground" / "go" / minor(release) / "go.mod")
    assert own


def test_what_is_not_built_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_CACHE", str(tmp_path))
    with pytest.raises(parts.PlaygroundError, match=r"build --real-nodes --release 1\.37\.2"):
        parts.built("1.37")


@pytest.mark.parametrize(
    ("platform", "user", "says"),
    [
        pytest.param("darwin", 0, "need Linux", id="another system"),
        pytest.param("linux", 1000, "need root", id="an ordinary user"),
    ],
)
def test_why_a_machine_can_have_none(
    monkeypatch: pytest.MonkeyPatch, platform: str, user: int, says: str
) -> None:
    monkeypatch.setattr(sys, "platform", platform)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    assert says in parts.why_not()
    assert "\n" not in parts.why_not()


def test_tools_that_are_missing_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(parts, "find_tool", lambda name: "" if name == "runc" else "/bin/true")
    assert "apt-get install runc" in parts.why_not()


def test_the_first_process_refuses_to_be_another_one(tmp_path: Path) -> None:
    """It kills every process that it sees, which must not be the machine's."""
    command = [sys.executable, "-m", "playground.realnodes.init", str(tmp_path), "berth-node-x"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert not (tmp_path / init.READY).exists()


def test_the_demos_workloads_find_their_images() -> None:
    assert full_name("tidewater/vit:3.2") == "docker.io/tidewater/vit:3.2"
    assert full_name("127.0.0.1:5000/x:1") == "127.0.0.1:5000/x:1"
    assert "docker.io/tidewater/vit:3.2" in images_of(load("demo"))
    assert images_of(load("empty")) == ("docker.io/library/busybox:stable",)
