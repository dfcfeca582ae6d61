"""Proves the audit chain, or names the first line that breaks it."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from portal.audit.models import AuditLine
from portal.audit.record import verify


class Command(BaseCommand):
    help = "Prove that no audit line was changed, dropped or reordered."

    def handle(self, *args: Any, **options: Any) -> None:
        broken = verify()
        if broken:
            raise CommandError(f"the chain breaks at line {broken.number}: {broken.why}")
        self.stdout.write(f"{AuditLine.objects.count()} audit lines, each follows the one before")
