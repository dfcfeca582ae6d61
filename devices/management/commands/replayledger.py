"""`manage.py replayledger FILE`: folds an exported ledger anew, on any machine."""

from __future__ import annotations

import sys
from argparse import ArgumentParser
from contextlib import ExitStack
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError

from devices.dra.ledgerfile import Replayed, first_difference, replay


class Command(BaseCommand):
    """Works offline: no cluster, no database. Line by line: a file may be of any length."""

    help = (
        "Replays an exported node ledger: proves that no line was changed, and prints what it "
        "comes to. With --against it names the first line that differs from another file."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="an exported ledger; - is the input")
        parser.add_argument("--against", metavar="FILE", help="another exported ledger")
        parser.add_argument("--zones", action="store_true", help="by NUMA zone as well")

    def handle(self, *args: Any, **options: Any) -> None:
        with ExitStack() as stack:
            done = replay(_opened(options["file"], stack))
        if done.fault is not None:
            raise CommandError(f"{options['file']}: {done.fault}.")
        for text in said(done, zones=options["zones"]):
            self.stdout.write(text)
        if options["against"]:
            with ExitStack() as stack:
                found = first_difference(
                    _opened(options["file"], stack), _opened(options["against"], stack)
                )
            if found is not None:
                raise CommandError(f"{found}: {options['file']}, {options['against']}.")
            self.stdout.write("both files have the same lines")


def said(done: Replayed, *, zones: bool = False) -> list[str]:
    """What a replay came to, as lines of text."""
    assert done.header is not None
    lines = [
        f"{done.lines} lines, {done.standing} stand; {done.doubled} doubled keys, "
        f"{done.older} older versions, {done.repeated} repeated",
        f"digest {done.digest} as exported",
    ]
    for (node, resource), amount in done.charged().items():
        lines.append(f"{node}\t{resource}\t{'unknown' if amount is None else amount}")
    for (node, resource, numa), nanos in sorted(
        done.zones.items(), key=lambda zone: (zone[0][:2], zone[0][2] is None, zone[0][2] or 0)
    ):
        if zones and nanos:
            zone = "no zone" if numa is None else f"zone {numa}"
            lines.append(f"{node}\t{resource}\t{zone}\t{nanos} billionths")
    return lines


def _opened(name: str, stack: ExitStack) -> BinaryIO:
    if name == "-":
        return sys.stdin.buffer
    try:
        return stack.enter_context(open(name, "rb"))
    except OSError as error:
        raise CommandError(f"{name} cannot be opened: {error.strerror}.") from error
