"""`python -m playground fault`: breaks something, or mends it again."""

from __future__ import annotations

import argparse
import inspect
from pathlib import Path

from playground.commands.fleet import mailbox
from playground.commands.plane import FOLDER
from playground.errors import PlaygroundError
from playground.faults.table import TABLE
from playground.plane.controlplane import ControlPlane
from playground.realnodes import nodes
from playground.realnodes.node import FILE, RealNode

TYPES = {"str": str, "int": int, "float": float}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One subcommand for each fault, its options those of its function."""
    names = parser.add_subparsers(dest="fault", required=True, metavar="FAULT")
    for fault in TABLE.values():
        its = names.add_parser(fault.name, help=fault.help, description=inspect.getdoc(fault.begin))
        its.add_argument("--folder", type=Path, default=FOLDER, help="of the control plane")
        if fault.end is not None:
            its.add_argument("--mend", action="store_true", help=inspect.getdoc(fault.end))
        for name, parameter in fault.options().items():
            _add_option(its, name, parameter)


def _add_option(parser: argparse.ArgumentParser, name: str, parameter: inspect.Parameter) -> None:
    option = _option(name)
    if parameter.annotation == "bool":
        parser.add_argument(option, action="store_true")
        return
    given = None if parameter.default is inspect.Parameter.empty else parameter.default
    kind = TYPES[parameter.annotation]
    words = f"default {given}" if given else ("" if given is not None else "needed")
    parser.add_argument(option, type=kind, default=given, help=words)


def _option(name: str) -> str:
    """`device_class` as it is typed."""
    return f"--{name.replace('_', '-')}"


def run(options: argparse.Namespace) -> int:
    """Returns the exit code. Raises PlaygroundError with a sentence for people."""
    fault = TABLE[options.fault]
    mend = bool(getattr(options, "mend", False))
    arguments = {name: getattr(options, name) for name in fault.options(mend=mend)}
    if missing := [_option(name) for name, value in arguments.items() if value is None]:
        raise PlaygroundError(f"{fault.name} needs {' and '.join(missing)}.")
    if real := real_node(options.folder, arguments.get("node", "")):
        print(fault.do(real, mend=mend, arguments=arguments))
    elif fault.of_fleet:
        letters = mailbox(options.folder)
        print(letters.ask("fault", fault=fault.name, mend=mend, arguments=arguments))
    else:
        print(fault.do(ControlPlane.open(options.folder), mend=mend, arguments=arguments))
    return 0


def real_node(folder: Path, name: str) -> RealNode | None:
    """The real node of that name beside the control plane in `folder`; None where none is."""
    if not (folder / nodes.FOLDER / name / FILE).exists() or not name:
        return None
    return RealNode.open(folder / nodes.FOLDER / name, ControlPlane.open(folder))
