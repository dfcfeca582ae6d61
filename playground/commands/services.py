"""`python -m playground services`: PostgreSQL and Valkey for work on Berth without the demo."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
from pathlib import Path

from playground.errors import PlaygroundError
from playground.running.services import Services

DEFAULT_FOLDER = Path(".run") / "services"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """up, down, env and run, with the folder the data lies in."""
    parser.add_argument("--folder", type=Path, default=DEFAULT_FOLDER, help="where the data lies")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    actions.add_parser("up", help="start both and leave them running")
    actions.add_parser("down", help="stop both; the data stays")
    actions.add_parser(
        "env", help='lines for the shell: eval "$(python -m playground services env)"'
    )
    run = actions.add_parser("run", help="start both, run one command with their addresses, stop")
    run.add_argument("command", nargs=argparse.REMAINDER, help="after --")


def run(options: argparse.Namespace) -> int:
    """Returns the exit code. Raises PlaygroundError with a sentence for people."""
    match options.action:
        case "up":
            services = Services(options.folder, tied=False)
            services.start()
            _print_env(services)
        case "down":
            Services(options.folder).stop()
        case "env":
            services = Services(options.folder)
            if not services.running():
                raise PlaygroundError("Nothing runs here yet: python -m playground services up")
            _print_env(services)
        case "run":
            command = [part for part in options.command if part != "--"]
            with Services(options.folder, durable=False) as services:
                return subprocess.run(command, env={**os.environ, **services.env}).returncode
    return 0


def _print_env(services: Services) -> None:
    for name, value in services.env.items():
        print(f"export {name}={shlex.quote(value)}")
