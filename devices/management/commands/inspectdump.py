"""`manage.py inspectdump FILE…`: what the rules answer about a cluster that somebody printed."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from devices.dra.dump import Place, Problem, read_dump
from devices.dra.gates import NEWEST, RELEASES, GateError, parse
from devices.inspection.answers import inspect
from devices.inspection.records import records
from devices.inspection.text import text


class Command(BaseCommand):
    """Works offline: no cluster, no database."""

    help = (
        "Reads what kubectl get … -o yaml (or json) printed and answers: pools, capacity, who fits "
        "where and why not, leaks, owners, charges."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "files", nargs="+", metavar="FILE", help="files to read; - is the input"
        )
        parser.add_argument("--json", action="store_true", help="one JSON object per line")
        parser.add_argument(
            "--gates",
            default="default",
            help="features of the cluster: default, all, and Name=true,Name=false after either",
        )
        parser.add_argument(
            "--release",
            default=NEWEST,
            help=f"release of the cluster: {', '.join(RELEASES)} ({NEWEST} where not given)",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            gates = parse(options["gates"], options["release"])
        except GateError as error:
            raise CommandError(f"{error}.") from error
        unread: list[Problem] = []
        dump = read_dump(_contents(options["files"], unread))
        inspected = inspect(dump, gates, tuple(unread))
        lines = (
            (json.dumps(record, ensure_ascii=False) for record in records(inspected))
            if options["json"]
            else map(_printable, text(inspected))
        )
        try:
            for line in lines:
                self.stdout.write(line)
            self.stdout.flush()
        except BrokenPipeError:  # whoever read the output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return
        if not dump.objects:
            raise CommandError("Nothing was read that says anything about devices.")


def _contents(names: list[str], unread: list[Problem]) -> Iterator[tuple[str, bytes]]:
    """The content of each file; one that cannot be opened is noted."""
    for name in names:
        shown = os.fsencode(name).decode("utf-8", "replace")  # names of files need not be text
        try:
            if name == "-":
                yield "standard input", sys.stdin.buffer.read()
            else:
                yield shown, Path(name).read_bytes()
        except OSError as error:
            unread.append(Problem(Place(shown, 0), f"cannot be opened: {error.strerror}"))


def _printable(line: str) -> str:
    """Text of drivers and tenants without what would move the cursor or turn the writing round."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)
