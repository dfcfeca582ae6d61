"""`manage.py exportledger`: the node ledger as JSON lines that any machine can replay."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from datetime import datetime
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError

from devices.fleet.ownershipbook import moment_of
from devices.ledger.exports import export


class Command(BaseCommand):
    """Reads the log only; what is written meanwhile is left for the next file."""

    help = "Writes the node ledger as JSON lines: a header, then one line for every line of it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--from", dest="since", default="", help="a moment in UTC; the first")
        parser.add_argument("--to", dest="until", default="", help="a moment in UTC; now")
        parser.add_argument("--output", default="-", help="a file; - is the output")

    def handle(self, *args: Any, **options: Any) -> None:
        moments = []
        for name in ("since", "until"):
            moment, wrong = moment_of(options[name])
            if wrong:
                raise CommandError(wrong)
            moments.append(moment)
        if options["output"] == "-":
            try:
                _write(sys.stdout.buffer, moments)
            except BrokenPipeError:  # whoever read it has seen enough
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return
        try:
            with open(options["output"], "xb") as file:
                lines = _write(file, moments)
        except OSError as error:
            raise CommandError(f"{options['output']}: {error.strerror}.") from error
        self.stdout.write(f"{lines} lines written to {options['output']}")


def _write(file: BinaryIO, moments: list[datetime | None]) -> int:
    """Writes the file; returns how many lines of the log it has."""
    lines = -1  # the header is none
    for line in export(*moments):
        file.write(line)
        lines += 1
    file.flush()
    return lines
