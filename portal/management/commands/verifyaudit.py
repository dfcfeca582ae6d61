"""Proves the audit chain, or names the lines that break it."""

from __future__ import annotations

from itertools import islice
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from portal.audit.models import AuditLine
from portal.audit.record import all_breaks, head

MOST = 20


class Command(BaseCommand):
    help = "Prove that no audit line was changed, dropped or reordered."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--expect",
            metavar="NUMBER:DIGEST",
            help="a line that an earlier run printed: proves that the end was not cut off",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        found = [f"line {one.number}: {one.why}" for one in islice(all_breaks(), MOST + 1)]
        if options["expect"]:
            number, _, digest = options["expect"].partition(":")
            if not AuditLine.objects.filter(number=number, digest=digest).exists():
                found.append(f"line {number}: it is not the one that was kept elsewhere")
        if found:
            more = ["and more"] if len(found) > MOST else []
            raise CommandError("the chain breaks\n" + "\n".join([*found[:MOST], *more]))
        number, digest = head()
        self.stdout.write(f"{number} audit lines, each follows the one before")
        if number:
            self.stdout.write(f"keep this elsewhere: {number}:{digest}")
