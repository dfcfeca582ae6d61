"""The first process of a real node: it makes the node's view of the machine, and ends with it.

`node.py` starts it through `unshare`, as process 1 of a pid namespace and in a mount namespace of
its own. So nothing that happens on the node is mounted on the machine, and when this process ends,
however it ends, the kernel ends everything else on the node: kubelet, containerd, shims,
containers. The node sees itself where real ones do: /var/lib/kubelet, /run/containerd, /var/log.

Imports the standard library and nothing of the playground that does more.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from playground.realnodes.cgroups import NodeCgroup

READY = "ready"  # written into the node's folder once the view is made
# Folders of the node's own -> where it sees them. What lies there on the machine is hidden from it.
VIEW = {"kubelet": "/var/lib/kubelet", "containerd": "/var/lib/containerd", "log": "/var/log"}
VOLATILE = "/run"  # as after a reboot at each start: sockets, CDI files, containerd's state
# What a kubelet sets in /proc/sys for the whole machine (kubelet/cm/container_manager_linux.go).
# The node reads these values as set already, so it changes nothing that outlives it.
SYSCTLS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}


def make_view(folder: Path) -> None:
    """Mounts what the node sees otherwise than the machine; all in this mount namespace only."""
    _mount("--make-rshared", "/")  # volumes of Pods may ask for propagation, as under systemd
    _mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", VOLATILE)
    if not os.path.islink("/var/run"):
        _mount("--bind", VOLATILE, "/var/run")
    for own, seen in VIEW.items():
        (folder / own).mkdir(parents=True, exist_ok=True)
        Path(seen).mkdir(parents=True, exist_ok=True)
        _mount("--bind", str(folder / own), seen)
    for place in ("/run/containerd", "/run/cdi", "/var/log/pods", "/var/log/containers"):
        Path(place).mkdir(parents=True, exist_ok=True)
    for name, value in SYSCTLS.items():
        _pretend(folder / "sysctl", name, value)


def _pretend(folder: Path, name: str, value: int) -> None:
    real = Path("/proc/sys") / name
    if not real.exists() or real.read_text().strip() == str(value):
        return
    copy = folder / name.replace("/", ".")
    copy.parent.mkdir(exist_ok=True)
    copy.write_text(f"{value}\n")
    _mount("--bind", str(copy), str(real))


def _mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def live(*, tied: bool) -> None:
    """Buries the orphans of the node until a TERM comes, or with `tied` the lifeline is cut."""
    ended = False

    def end(*_: object) -> None:
        nonlocal ended
        ended = True

    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        signal.set_wakeup_fd(theirs.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, end)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        watched: list[int] = [ours.fileno(), *([sys.stdin.fileno()] if tied else [])]
        while not ended:
            _bury()
            ready, _, _ = select.select(watched, [], [])
            if ours.fileno() in ready:
                ours.recv(4096)
            if sys.stdin.fileno() in ready and not os.read(sys.stdin.fileno(), 1):
                return


def _bury() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def end_all(cgroup: NodeCgroup, *, patience: float = 10.0) -> None:
    """Kills every other process of the node, waits until they are gone, removes the cgroups."""
    until = time.monotonic() + patience
    while others() and time.monotonic() < until:
        with contextlib.suppress(ProcessLookupError):
            os.kill(-1, signal.SIGKILL)  # everyone in this pid namespace but process 1
        _bury()
        time.sleep(0.01)
    cgroup.remove()


def others() -> set[int]:
    """Processes of this pid namespace beside this one."""
    return {int(name) for name in os.listdir("/proc") if name.isdigit()} - {os.getpid()}


def main(arguments: list[str]) -> int:
    """`python -m playground.realnodes.init FOLDER CGROUP`; ends by TERM."""
    folder, cgroup = Path(arguments[0]), NodeCgroup(arguments[1])
    if os.getpid() != 1:
        print("This is only for process 1 of a pid namespace: it kills all others.")
        return 2
    cgroup.make()
    make_view(folder)
    (folder / READY).touch()
    try:
        live(tied=os.environ.get("BERTH_LIFELINE") == "stdin")
    finally:
        end_all(cgroup)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
