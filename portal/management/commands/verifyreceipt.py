"""Proves the receipt of a closed tenant, or names what was changed on it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from devices.dra.receipt import faults
from devices.models import Closure
from devices.tenancy.receipts import proved


class Command(BaseCommand):
    help = "Prove the receipt of a closed tenant, stored or in a JSON file."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("slug", nargs="?", help="short name of the tenant")
        parser.add_argument("--file", type=Path, help="a receipt as the API gave it out")

    def handle(self, *args: Any, **options: Any) -> None:
        if bool(options["slug"]) == bool(options["file"]):
            raise CommandError("Name a tenant, or give a file with --file.")
        receipt, found = _of_file(options["file"]) if options["file"] else _stored(options["slug"])
        if found:
            raise CommandError("the receipt does not prove\n" + "\n".join(found))
        self.stdout.write(
            f"{receipt['tenant']['slug']}: {len(receipt['items'])} items, each and the whole prove"
        )
        self.stdout.write(f"SHA-256 {receipt['digest']}")


def _stored(slug: str) -> tuple[dict[str, Any], list[str]]:
    closure = Closure.objects.filter(tenant__slug=slug).exclude(receipt=None).first()
    if closure is None:
        raise CommandError(f"There is no receipt of a tenant {slug}.")
    return dict(closure.receipt or {}), proved(closure)


def _of_file(path: Path) -> tuple[dict[str, Any], list[str]]:
    try:
        receipt = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise CommandError(f"{path} is no receipt: {error}") from error
    if not isinstance(receipt, dict):
        raise CommandError(f"{path} is no receipt: it is not an object.")
    return receipt, faults(receipt)
