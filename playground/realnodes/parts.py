"""The programs of a real node: kubelet and containerd built once per user, runc from the system."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path

from playground.building import gobuild
from playground.building.go_programs import PROGRAMS, recipe
from playground.building.gobuild import BuildError, Recipe, Tell, say_nothing
from playground.building.images import build_images
from playground.building.releases import DEFAULT_RELEASE, known_release, minor, version_stamps
from playground.errors import PlaygroundError

SOURCES = Path(__file__).resolve().parent / "go"
SHELF = "realnodes"
CONTAINERD = "containerd"
SHIM = "containerd-shim-runc-v2"
CTR = "ctr"
# Of the system's own programs, and Debian's packages that have them.
TOOLS = {
    "unshare": "util-linux",
    "nsenter": "util-linux",
    "setsid": "util-linux",
    "mount": "mount",
    "runc": "runc",
}

WATCHES = 12  # seen: containerd 2, kubelet 6; some to spare


@dataclass(frozen=True, slots=True)
class Parts:
    """Where a real node's programs are."""

    kubelet: Path
    containerd: Path  # its shim and ctr lie beside it
    runc: Path

    @property
    def ctr(self) -> Path:
        return self.containerd.with_name(CTR)


def why_not() -> str:
    """Why this machine can have no real node, in one sentence; "" where it can.

    Whether the programs are built already is another question (`built`).
    """
    if sys.platform != "linux":
        return "Real nodes need Linux; the simulated ones run everywhere."
    if os.geteuid() != 0:
        return "Real nodes need root; the simulated ones run as any user."
    missing = sorted({package for tool, package in TOOLS.items() if not find_tool(tool)})
    if missing:
        return (
            f"Real nodes need {' and '.join(missing)} (Debian: apt-get install"
            f" {' '.join(missing)}); the simulated ones do not."
        )
    tried = subprocess.run(
        ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "true"], capture_output=True
    )
    if tried.returncode:
        return "Real nodes need the right to mount, which this container does not give."
    return ""


def check_watches() -> None:
    """Raises `PlaygroundError` where this user's share of the machine's file watches is used up.

    containerd and kubelet need some for each node (inotify instances, 128 a user by default); so
    does every control plane. Without them they start, and then do half their work.
    """
    libc = ctypes.CDLL(None)
    taken = [libc.inotify_init() for _ in range(WATCHES)]
    for handle in taken:
        if handle >= 0:
            os.close(handle)
    if min(taken) < 0:
        raise PlaygroundError(
            "Too many programs of this user watch files, so a real node could not: end other"
            " playgrounds, or raise it (sysctl fs.inotify.max_user_instances=1024)."
        )


def find_tool(name: str) -> str:
    """Path of a program of the system, also where the user's PATH lacks sbin; "" without one."""
    path = f"{os.environ.get('PATH', '')}:/usr/local/sbin:/usr/sbin:/sbin"
    return shutil.which(name, path=path) or ""


def kubelet_recipe(release: str) -> Recipe:
    release = known_release(release)
    folder = SOURCES / f"kubelet-{minor(release)}"
    return Recipe(
        shelf=SHELF,
        name=f"kubelet-{release}",
        title=f"the kubelet {release}",
        purpose="the kubelet",
        sources=(folder / "go.mod", folder / "go.sum"),
        program="kubelet",
        packages=("k8s.io/kubernetes/cmd/kubelet",),
        stamps=version_stamps(release),
        check=lambda place: _says(place / "kubelet", f"Kubernetes v{release}"),
    )


def containerd_recipe() -> Recipe:
    folder = SOURCES / "containerd"
    return Recipe(
        shelf=SHELF,
        name=CONTAINERD,
        title=CONTAINERD,
        purpose=CONTAINERD,
        sources=(folder / "go.mod", folder / "go.sum"),
        program=CONTAINERD,
        packages=tuple(
            f"github.com/containerd/containerd/v2/cmd/{name}" for name in (CONTAINERD, SHIM, CTR)
        ),
        tags="no_btrfs,no_zfs,no_devmapper,osusergo,netgo",
        check=lambda place: _says(place / CONTAINERD, "containerd github.com/containerd"),
    )


def build(
    release: str = DEFAULT_RELEASE,
    tell: Tell = say_nothing,
    cancelled: threading.Event | None = None,
) -> Parts:
    """The programs and images for nodes of a release; builds what is missing (2 minutes after a
    control plane of the same release, whose compiled packages are used again).

    Raises `BuildError`; see `gobuild.build`.
    """
    gobuild.build(kubelet_recipe(release), tell, cancelled)
    gobuild.build(containerd_recipe(), tell, cancelled)
    build_images(release, tell, cancelled)
    return built(release)


def images(release: str = DEFAULT_RELEASE) -> tuple[Path, ...]:
    """The archives of all images of a node, where `built` says that all is there."""
    return build_images(release)


def is_built(release: str = DEFAULT_RELEASE) -> bool:
    """Whether nothing is missing that `build` makes."""
    recipes = [
        kubelet_recipe(release),
        containerd_recipe(),
        *(recipe(name, release) for name in PROGRAMS),
    ]
    return all(one.folder.exists() for one in recipes)


def built(release: str = DEFAULT_RELEASE) -> Parts:
    """The programs, where all are there. Raises `PlaygroundError`, which says what to run."""
    release = known_release(release)
    if not is_built(release):
        raise PlaygroundError(
            f"Real nodes of Kubernetes {release} are not built yet: run"
            f" `python -m playground build --real-nodes --release {release}` (some minutes)."
        )
    return Parts(
        kubelet=kubelet_recipe(release).folder / "kubelet",
        containerd=containerd_recipe().folder / CONTAINERD,
        runc=Path(find_tool("runc")),
    )


def _says(program: Path, wanted: str) -> None:
    """A program that does not start, or is another one, must never reach the cache."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=60).stdout
    if not said.startswith(wanted):
        raise BuildError(f"The built {program.name} says {said.strip()!r}, not {wanted!r}.")
