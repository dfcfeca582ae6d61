"""The part of the demo that makes the cluster: build, start, rights, and Berth's own identities.

A process of its own, because a first build takes minutes during which the portal must answer. It
tells how far it is in two files of the demo's folder: the notice that every page shows, and the
steps that the demo's terminal shows. Once the cluster stands it watches over its components.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import sys
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import yaml

from devices.cluster import connect
from devices.cluster.gateway import ClusterError
from playground.building.gobuild import Progress
from playground.building.releases import binary_path, build
from playground.errors import PlaygroundError
from playground.plane.components import COMPONENTS, PROXY
from playground.plane.controlplane import ControlPlane
from playground.running.supervisor import write_whole

ROOT = Path(__file__).resolve().parents[2]
# What is applied before anything of Berth may talk to the cluster.
DEPLOY = (ROOT / "deploy" / "rbac", ROOT / "deploy" / "policies")
NAMESPACE = "berth-system"
# Process of the demo -> its ServiceAccount (deploy/rbac).
ACCOUNTS = {"watch": "berth-watch", "worker": "berth-worker"}
TOKEN_SECONDS = 365 * 24 * 3600
FIELD_MANAGER = "berth-playground"
TRY_AGAIN_AFTER = 60.0
# It sets 64 MB aside for each of two files of its log.
ETCD_NEEDS = 150_000_000


@dataclass(slots=True)
class Report:
    """What the terminal shows of the cluster; `steps` are (what was done, seconds it took)."""

    steps: list[tuple[str, float]] = field(default_factory=list)
    now: str = ""
    trouble: str = ""
    ready: bool = False


def notice_path(folder: Path) -> Path:
    """The file that the portal's banner shows; not there once the cluster is."""
    return folder / "notice.json"


def kubeconfig_path(folder: Path, process: str) -> Path:
    return folder / "kubeconfigs" / f"{process}.kubeconfig"


def plane_folder(folder: Path) -> Path:
    return folder / "controlplane"


def read_report(folder: Path) -> Report:
    try:
        return Report(**json.loads((folder / "cluster.json").read_text()))
    except (FileNotFoundError, ValueError, TypeError):
        return Report()


def forget_report(folder: Path) -> None:
    """Before a start: no process may take the last run's addresses for this one's."""
    (folder / "cluster.json").unlink(missing_ok=True)
    for process in ACCOUNTS:
        kubeconfig_path(folder, process).unlink(missing_ok=True)


def announce(folder: Path, text: str, done: int = 0, total: int = 0) -> None:
    """One sentence for every page; `done` of `total` draws a bar where `total` is known."""
    write_whole(notice_path(folder), json.dumps({"text": text, "done": done, "total": total}))


class Maker:
    """Brings the cluster of one demo up, and keeps it up until it is told to end."""

    def __init__(self, folder: Path, *, proxy: bool = False):
        self.folder = folder
        self.report = Report()
        self.proxy = proxy
        components = (*COMPONENTS, PROXY) if proxy else COMPONENTS
        self.plane = ControlPlane(plane_folder(folder), components=components)
        self._told = 0.0
        self._suspects: set[str] = set()

    def run(self) -> None:
        """Never returns by itself: tries again after trouble, restarts components that crash."""
        while not self.report.ready:
            try:
                self.make()
            except (PlaygroundError, ClusterError) as error:
                self.report.trouble = self._sentence(error)
                self._tell(f"{self.report.trouble} Trying again in a minute.", "waiting a minute")
                time.sleep(TRY_AGAIN_AFTER)
                self.report.trouble = ""
        while True:
            self.mend()
            time.sleep(1.0)

    def make(self) -> None:
        """Build, start, rights, identities; each step timed for the terminal."""
        if not binary_path(self.plane.release).exists():
            with self._step("control plane built"):
                build(self.plane.release, self._progress)
        with self._step("control plane started"):
            self._tell("The playground's control plane is starting.", "starting the control plane")
            self.plane.start(tied=True)
        with self._step("rights given"):
            self._tell("Berth is being given its rights in the cluster.", "giving rights")
            apply_deploy(self.plane.admin_kubeconfig, DEPLOY)
            self._write_kubeconfigs()
        notice_path(self.folder).unlink(missing_ok=True)
        self.report.ready = True
        self.report.now = ""
        self._save()

    def mend(self) -> None:
        """Starts components again that crashed; one that was stopped on purpose has no note.

        That note goes a moment after the process, so only what two looks find is a crash.
        """
        before, self._suspects = self._suspects, set()
        for name, state in self.plane.states().items():
            note = self.plane.folder / "run" / f"{name}.json"
            if state != "stopped" or not note.exists():
                continue
            if name not in before:
                self._suspects.add(name)
                continue
            print(f"{name} ended; starting it again", flush=True)
            with contextlib.suppress(PlaygroundError):  # the next look tries again
                self.plane.start_component(name)

    def _sentence(self, error: Exception) -> str:
        """A full disk has many faces, of which some are panics; so it is looked at first."""
        if shutil.disk_usage(self.folder).free < ETCD_NEEDS:
            return f"The disk under {self.folder} is full: make room for the cluster's data."
        return str(error)

    def _write_kubeconfigs(self) -> None:
        """A fresh token for each start, so that none runs out while a demo is in use."""
        server = self.plane.proxy_url if self.proxy else ""
        for process, account in ACCOUNTS.items():
            made = self.plane.service_account_kubeconfig(
                NAMESPACE, account, seconds=TOKEN_SECONDS, server=server
            )
            write_whole(kubeconfig_path(self.folder, process), made.read_text())

    def _progress(self, progress: Progress) -> None:
        if time.monotonic() - self._told < 0.5:
            return
        self._told = time.monotonic()
        text = "The playground's Kubernetes is being built, once for this machine"
        announce(self.folder, f"{text}: {progress}.", progress.done, progress.total)
        self.report.now = str(progress)
        self._save()

    def _tell(self, notice: str, now: str) -> None:
        announce(self.folder, notice)
        self.report.now = now
        self._save()

    @contextlib.contextmanager
    def _step(self, name: str) -> Any:
        began = time.monotonic()
        yield
        self.report.steps.append((name, round(time.monotonic() - began, 1)))
        self._save()

    def _save(self) -> None:
        write_whole(self.folder / "cluster.json", json.dumps(asdict(self.report)))


def apply_deploy(kubeconfig: Path, folders: Iterable[Path]) -> int:
    """Applies all YAML below `folders` as an admin would; returns how many objects.

    Namespaces first, because others lie in them; the rest in the order of the files.
    """
    gateway = connect(kubeconfig)
    objects = [
        obj
        for folder in folders
        for path in sorted(folder.glob("*.yaml"))
        for obj in yaml.safe_load_all(path.read_text())
        if obj
    ]
    for obj in sorted(objects, key=lambda obj: obj["kind"] != "Namespace"):
        gateway.apply(obj, manager=FIELD_MANAGER, force=True)
    return len(objects)


def _end(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)
    raise SystemExit(0)


def main(arguments: list[str]) -> int:
    """`python -m playground.demo.cluster FOLDER [--proxy]`, the demo's; ends by SIGTERM."""
    signal.signal(signal.SIGTERM, _end)
    maker = Maker(Path(arguments[0]), proxy="--proxy" in arguments[1:])
    try:
        maker.run()
    finally:
        maker.plane.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
