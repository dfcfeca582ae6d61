"""`python -m playground demo`, which is `make demo`: the whole portal over a simulated cluster."""

from __future__ import annotations

import argparse
import errno
from pathlib import Path

from playground.demo.demo import ROOT, Demo
from playground.demo.folder import reset
from playground.errors import PlaygroundError

DEFAULT_FOLDER = ROOT / ".demo"
DEFAULT_PORT = 8000


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--port", type=int, default=DEFAULT_PORT, help="of the pages")
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="where the data lies")
    parser.add_argument("--reset", action="store_true", help="stop it and forget its data")
    parser.add_argument("--fleet", default="demo", help="scenario of the simulated machines")
    parser.add_argument(
        "--real-nodes", type=int, default=0, metavar="N", help="N nodes with a real kubelet, too"
    )
    parser.add_argument(
        "--proxy", action="store_true", help="lead Berth through the proxy that makes api-* faults"
    )


def run(options: argparse.Namespace) -> int:
    """Runs until it is stopped; returns the exit code. Raises PlaygroundError with a sentence."""
    folder = options.folder.resolve()
    try:
        if options.reset:
            reset(folder)
        else:
            Demo(
                folder,
                options.port,
                options.fleet,
                proxy=options.proxy,
                real_nodes=options.real_nodes,
            ).run()
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise PlaygroundError(
                f"The disk under {folder} is full: make room and start again."
            ) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise PlaygroundError(
                f"{error.filename or folder} may not be changed by you: start the demo as the"
                " user who made it, or remove that folder."
            ) from error
        raise
    return 0
