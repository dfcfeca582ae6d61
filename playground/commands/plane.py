"""`python -m playground` build, up, down, status and kubeconfig: a control plane that stays.

Where real nodes are asked for, they stay beside it.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from playground.building.gobuild import Progress
from playground.building.releases import DEFAULT_RELEASE, build, releases
from playground.plane import memory
from playground.plane.components import COMPONENTS, PROXY
from playground.plane.controlplane import ControlPlane
from playground.plane.identities import ADMIN, ADMIN_GROUP
from playground.realnodes import described, nodes, parts

FOLDER = Path(".run") / "playground"


def build_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--release", choices=_release_words(), help=f"default {DEFAULT_RELEASE}")
    parser.add_argument("--all", action="store_true", help="every release, newest first")
    parser.add_argument(
        "--real-nodes", action="store_true", help="kubelet and containerd for real nodes, too"
    )


def run_build(options: argparse.Namespace) -> int:
    chosen = releases() if options.all else (options.release or DEFAULT_RELEASE,)
    for release in chosen:
        print(build(release, _show), flush=True)
        if options.real_nodes and not (reason := parts.why_not()):
            made = parts.build(release, _show)
            print(f"{made.kubelet}\n{made.containerd}", flush=True)
        elif options.real_nodes:
            print(reason, file=sys.stderr)
    return 0


def up_arguments(parser: argparse.ArgumentParser) -> None:
    _folder(parser)
    parser.add_argument(
        "--release", choices=_release_words(), help=f"default {DEFAULT_RELEASE}, or as last time"
    )
    parser.add_argument("--gates", type=_gates, metavar="A=true,B=false", help="feature gates")
    parser.add_argument("--emulated-version", metavar="1.35", help="serve what that minor serves")
    parser.add_argument("--without", action="append", choices=COMPONENTS, help="leave a part out")
    parser.add_argument("--proxy", action="store_true", help="with the proxy that makes faults")
    parser.add_argument(
        "--real-nodes", type=int, default=0, metavar="N", help="N nodes with a real kubelet"
    )
    parser.add_argument("--scenario", default="demo", help="whose group `real` describes them")


def run_up(options: argparse.Namespace) -> int:
    """Returns when all is ready; given no options, a known folder starts as it was."""
    asked = (options.release, options.gates, options.emulated_version, options.without)
    if (options.folder / memory.FILE).exists() and not any(asked) and not options.proxy:
        plane = ControlPlane.open(options.folder)
    else:
        components = [name for name in COMPONENTS if name not in (options.without or ())]
        plane = ControlPlane(
            options.folder,
            options.release or DEFAULT_RELEASE,
            gates=options.gates,
            emulated_version=options.emulated_version,
            components=[*components, PROXY] if options.proxy else components,
        )
    plane.start(tell=_show)
    print(f"Kubernetes {plane.release} answers at {plane.url}")
    if options.real_nodes:
        _start_real_nodes(plane, options.real_nodes, options.scenario)
    print(f"export KUBECONFIG={shlex.quote(str(plane.admin_kubeconfig))}")
    return 0


def _start_real_nodes(plane: ControlPlane, count: int, scenario: str) -> None:
    """Where the machine can have none one sentence says so, and everything else goes on."""
    if reason := parts.why_not():
        print(reason, file=sys.stderr)
        return
    for node in nodes.start(plane, count, described.spec_of(scenario), tell=_show):
        print(f"Node {node.name} is Ready, with a real kubelet {node.release}")


def down_arguments(parser: argparse.ArgumentParser) -> None:
    _folder(parser)
    parser.add_argument("--wipe", action="store_true", help="forget the data, too")


def run_down(options: argparse.Namespace) -> int:
    plane = ControlPlane.open(options.folder)
    if options.wipe:
        nodes.wipe(plane)
        plane.wipe()
    else:
        nodes.stop(plane)
        plane.stop()
    return 0


def status_arguments(parser: argparse.ArgumentParser) -> None:
    _folder(parser)


def run_status(options: argparse.Namespace) -> int:
    """The exit code is 0 only where every component runs."""
    plane = ControlPlane.open(options.folder)
    emulated = f", as {plane.emulated_version}" if plane.emulated_version else ""
    print(f"Kubernetes {plane.release}{emulated} at {plane.url}")
    states, pids = plane.states(), plane.pids()
    for name, state in states.items():
        pid = pids.get(name)
        print(f"  {name:24} {state:8}" + (f" pid {pid}, {_memory(pid)}" if pid else ""))
    for node in nodes.known(plane):
        pid = node.kubelet_pid
        state = "running" if pid else "stopped"
        words = f" kubelet pid {pid}, {_memory(pid)}" if pid else ""
        print(f"  {'real node ' + node.name:24} {state:8}{words}")
    return 0 if set(states.values()) == {"running"} else 1


def kubeconfig_arguments(parser: argparse.ArgumentParser) -> None:
    _folder(parser)
    who = parser.add_mutually_exclusive_group()
    who.add_argument("--user", help="a person; default: the playground's admin")
    who.add_argument("--node", help="the kubelet of that node")
    who.add_argument("--service-account", metavar="NAMESPACE/NAME", help="by a token of 30 days")
    parser.add_argument("--group", action="append", default=[], help="for --user, repeatable")
    parser.add_argument("--through-proxy", action="store_true", help="server: the faults' proxy")


def run_kubeconfig(options: argparse.Namespace) -> int:
    """Prints the path of the file."""
    plane = ControlPlane.open(options.folder)
    server = plane.proxy_url if options.through_proxy else ""
    if options.service_account:
        namespace, _, name = options.service_account.rpartition("/")
        path = plane.service_account_kubeconfig(namespace or "default", name, server=server)
    elif options.node:
        path = plane.kubeconfig(f"system:node:{options.node}", ["system:nodes"], server=server)
    elif options.user:
        path = plane.kubeconfig(options.user, options.group, server=server)
    else:
        path = plane.kubeconfig(ADMIN, [ADMIN_GROUP], server=server)
    print(path)
    return 0


def _folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", type=Path, default=FOLDER, help=f"default {FOLDER}")


def _release_words() -> list[str]:
    return [word for release in releases() for word in (release, release.rpartition(".")[0])]


def _gates(text: str) -> dict[str, bool]:
    gates = {}
    for entry in text.split(","):
        name, _, word = entry.partition("=")
        if word not in ("true", "false"):
            raise argparse.ArgumentTypeError(f"{entry}: write NAME=true or NAME=false")
        gates[name] = word == "true"
    return gates


def _show(progress: Progress) -> None:
    """One line that is written over on a terminal; on a log one line for each hundredth."""
    if sys.stderr.isatty():
        print(f"\r\033[K{progress}", end="", file=sys.stderr, flush=True)
        if progress.total and progress.done >= progress.total:
            print(file=sys.stderr)
    elif not progress.total or progress.done % max(progress.total // 20, 1) == 0:
        print(progress, file=sys.stderr, flush=True)


def _memory(pid: int) -> str:
    """Resident memory in words; unknown where the system does not tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return "memory unknown"
    return f"{pages * 4096 / 1024**2:.0f} MiB"
