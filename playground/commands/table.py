"""The subcommands of `python -m playground`: a table of modules, imported when asked for.

A module offers `add_arguments(parser)` and `run(options)`, which returns the exit code and raises
`PlaygroundError` with a sentence for people. Where one module serves several subcommands, their
row names the functions.
"""

from __future__ import annotations

import argparse
import importlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from playground.errors import PlaygroundError


@dataclass(frozen=True, slots=True)
class Row:
    """One subcommand: its module, one line of help, and its two functions."""

    module: str
    help: str
    arguments: str = "add_arguments"
    run: str = "run"


PLANE = "playground.commands.plane"
TABLE: dict[str, Row] = {
    "build": Row(PLANE, "build the control plane of a release", "build_arguments", "run_build"),
    "up": Row(PLANE, "start the control plane and leave it running", "up_arguments", "run_up"),
    "down": Row(PLANE, "stop the control plane; its data stays", "down_arguments", "run_down"),
    "status": Row(PLANE, "say what runs", "status_arguments", "run_status"),
    "kubeconfig": Row(
        PLANE, "write a kubeconfig for somebody", "kubeconfig_arguments", "run_kubeconfig"
    ),
    "fleet": Row("playground.commands.fleet", "simulated machines on a control plane that is up"),
    "fault": Row("playground.commands.fault", "break something, or mend it again"),
    "load": Row("playground.commands.load", "make object sets live, statuses included"),
    "demo": Row("playground.commands.demo", "the whole portal over a simulated cluster"),
    "services": Row("playground.commands.services", "PostgreSQL and Valkey without the demo"),
}


def main(words: Sequence[str]) -> int:
    """Runs one subcommand; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m playground",
        description="A real Kubernetes control plane with simulated hardware.",
    )
    subcommands = parser.add_subparsers(dest="subcommand", required=True, metavar="COMMAND")
    chosen = next((word for word in words if not word.startswith("-")), "")
    for name, row in TABLE.items():
        its_parser = subcommands.add_parser(name, help=row.help, description=row.help)
        if name == chosen:
            getattr(importlib.import_module(row.module), row.arguments)(its_parser)
    options = parser.parse_args(words)
    row = TABLE[options.subcommand]
    try:
        return int(getattr(importlib.import_module(row.module), row.run)(options))
    except PlaygroundError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
