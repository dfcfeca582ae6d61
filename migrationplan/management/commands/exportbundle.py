"""Writes a bundle of evidence to a file: one that was collected, or one of a pool and a span."""

from __future__ import annotations

import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from django.utils.dateparse import parse_datetime

from devices.models import NodePool
from migrationplan.evidence.collecting import collect, exported
from migrationplan.models import Evidence, Move
from portal.errors import Invalid


class Command(BaseCommand):
    help = "Write a bundle of evidence (a tar with a manifest of digests) to a file."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file", help='where to; "-" is standard output')
        parser.add_argument("--evidence", metavar="ID", help="one that was collected before")
        parser.add_argument("--pool", metavar="SLUG", help="collect one of this node pool")
        parser.add_argument(
            "--move", metavar="ID", action="append", default=[],
            help="only of this move; may be given several times",
        )  # fmt: skip
        parser.add_argument("--since", metavar="TIME", help="such as 2026-11-30T09:00Z")
        parser.add_argument("--until", metavar="TIME", help="now where it is left out")
        parser.add_argument("--why", default="exported by a command", help="what it is for")

    def handle(self, *args: Any, **options: Any) -> None:
        found = _kept(options["evidence"]) if options["evidence"] else _collected(options)
        if options["file"] == "-":
            for piece in exported(found):
                sys.stdout.buffer.write(piece)
            return
        with Path(options["file"]).open("wb") as out:
            for piece in exported(found):
                out.write(piece)
        self.stdout.write(f"evidence {found.public_id}: {len(found.files)} files, {found.size} B")
        self.stdout.write(f"sha256:{found.digest}")


def _kept(public_id: str) -> Evidence:
    found = Evidence.objects.filter(public_id=public_id).first()
    if found is None:
        raise CommandError(f"no evidence {public_id} was collected")
    return found


def _collected(options: dict[str, Any]) -> Evidence:
    if not options["pool"] or not options["since"]:
        raise CommandError("give --evidence, or --pool and --since")
    pool = NodePool.objects.filter(slug=options["pool"]).first()
    if pool is None:
        raise CommandError(f"no node pool {options['pool']}")
    moves = list(Move.objects.filter(pool=pool, public_id__in=options["move"]))
    if missing := set(options["move"]) - {move.public_id for move in moves}:
        raise CommandError(f"no move of it is called {', '.join(sorted(missing))}")
    try:
        return collect(
            pool,
            moves if options["move"] else None,
            _moment(options["since"]),
            _moment(options["until"]) if options["until"] else None,
            why=options["why"],
            now=timezone.now(),
            request_id="exportbundle",
        )
    except Invalid as error:
        raise CommandError(error.message) from error


def _moment(text: str) -> datetime:
    try:
        found = parse_datetime(text)
    except ValueError:
        found = None
    if found is None:
        raise CommandError(f"{text} is no moment such as 2026-11-30T09:00Z")
    return found if timezone.is_aware(found) else timezone.make_aware(found)
