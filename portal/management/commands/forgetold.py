"""Deletes rows that are older than the settings say, as the daily task does."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand
from django.utils import timezone

from portal import retention


class Command(BaseCommand):
    help = "Forget what is older than KEEP_…_DAYS. With --dry-run, say how much that is."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--dry-run", action="store_true", help="delete nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        rehearse = options["dry_run"]
        for name, count in retention.forget(timezone.now(), rehearse=rehearse).items():
            self.stdout.write(f"{count:>8} {name}{' would go' if rehearse else ''}")
