"""The control groups of one real node: one folder of its own in every hierarchy of the machine.

Works alike where each controller has a hierarchy of its own (cgroup v1) and where there is one for
all (v2). Used inside a node's namespaces too, so it imports the standard library only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")


def hierarchies(mounts: Path = MOUNTS) -> tuple[Path, ...]:
    """Where cgroup file systems are mounted, in the order of mounting."""
    found = []
    for line in mounts.read_text().splitlines():
        before, _, after = line.partition(" - ")
        if after.split()[0] in ("cgroup", "cgroup2"):
            found.append(Path(before.split()[4]))
    return tuple(dict.fromkeys(found))


class NodeCgroup:
    """The cgroup `/<name>` in every hierarchy; the kubelet puts all its Pods below it."""

    def __init__(self, name: str):
        self.name = name

    @property
    def folders(self) -> tuple[Path, ...]:
        """Those that exist."""
        return tuple(root / self.name for root in hierarchies() if (root / self.name).is_dir())

    def make(self) -> None:
        """The kubelet ends at once where a hierarchy has no folder for it.

        Under v2 a child has only the controllers that its parent hands down.
        """
        for root in hierarchies():
            control = root / "cgroup.subtree_control"
            offered = root / "cgroup.controllers"
            if control.exists() and offered.exists():
                for name in offered.read_text().split():
                    with contextlib.suppress(OSError):  # one that real-time tasks forbid, say
                        control.write_text(f"+{name}")
            (root / self.name).mkdir(exist_ok=True)

    def processes(self) -> set[int]:
        """Ids of all processes in it and below, as the caller's pid namespace numbers them."""
        found: set[int] = set()
        for folder in self.folders:
            for path in folder.rglob("cgroup.procs"):
                with contextlib.suppress(OSError):
                    found |= {int(line) for line in path.read_text().split()}
        return found - {0}  # 0: not of our namespace

    def remove(self, *, patience: float = 5.0) -> bool:
        """Kills what is still in it and removes it; False where something stays all the same."""
        until = time.monotonic() + patience
        while self.folders:
            for pid in self.processes():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            for folder in self.folders:
                _remove(folder)
            if time.monotonic() > until:
                return not self.folders
            if self.folders:
                time.sleep(0.02)
        return True


def _remove(folder: Path) -> None:
    """Folders from below; one that is busy (its processes are just ending) is left for later."""
    for path, _, _ in os.walk(folder, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(path)
