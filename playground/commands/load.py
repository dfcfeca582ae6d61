"""`python -m playground load FILE`: an object set becomes live objects, or says why not."""

from __future__ import annotations

import argparse
from pathlib import Path

from devices.cluster import connect
from devices.cluster.gateway import ClusterError
from playground.commands.plane import FOLDER
from playground.errors import PlaygroundError
from playground.plane.controlplane import ControlPlane
from playground.plane.load import NODE_ALLOCATABLE, load


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The files, and which cluster they go to."""
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE", help="YAML object sets")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of the control plane")
    parser.add_argument("--kubeconfig", type=Path, help="another cluster than the playground's")
    parser.add_argument(
        "--declare-features",
        action="store_true",
        help=f"let Nodes declare {NODE_ALLOCATABLE} where their slices need it",
    )


def run(options: argparse.Namespace) -> int:
    """Prints what was refused and why; the exit code is 1 where anything was."""
    kubeconfig = options.kubeconfig
    if kubeconfig is None:
        kubeconfig = ControlPlane.open(options.folder).admin_kubeconfig
    try:
        result = load(connect(kubeconfig), options.files, declare_features=options.declare_features)
    except ClusterError as error:
        raise PlaygroundError(f"The cluster does not answer: {error}") from error
    for note in result.notes:
        print(f"note: {note}")
    for refused in result.refused:
        print(f"refused: {refused}")
    print(f"{len(result.live)} objects are live, {len(result.refused)} refused.")
    return 1 if result.refused else 0
