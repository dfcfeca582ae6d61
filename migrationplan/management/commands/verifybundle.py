"""Checks a bundle of evidence: against its own manifest, and against what Berth recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from migrationplan.evidence.bundle import verified
from migrationplan.models import Evidence

MOST = 20


class Command(BaseCommand):
    help = "Prove that nothing in a bundle of evidence was changed, dropped or added."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help="the tar")
        parser.add_argument(
            "--alone",
            action="store_true",
            help="without Berth's database: whoever changed it may have changed its manifest too",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            with Path(options["file"]).open("rb") as file:
                found = verified(file)
        except OSError as error:
            raise CommandError(f"{options['file']} cannot be read: {error.strerror}") from error
        wrong = [str(problem) for problem in found.problems]
        recorded = None
        if not options["alone"]:
            recorded = Evidence.objects.filter(digest=found.digest).first()
            if recorded is None:
                wrong.append(f"Berth recorded no bundle with sha256:{found.digest}")
        if wrong:
            more = [f"and {len(wrong) - MOST} more"] if len(wrong) > MOST else []
            raise CommandError("it does not prove\n" + "\n".join([*wrong[:MOST], *more]))
        self.stdout.write(f"{found.files} files, each as its manifest says")
        self.stdout.write(f"sha256:{found.digest}")
        if recorded is None:
            self.stdout.write("whether Berth made it was not asked")
        else:
            when = f"{recorded.made_at:%F %T} UTC"
            self.stdout.write(f"Berth recorded it as evidence {recorded.public_id} at {when}")
