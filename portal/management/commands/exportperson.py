"""Hands out everything that Berth knows of a person, as JSON; no secrets."""

from __future__ import annotations

import json
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from tenants.erasure import known_of
from tenants.models import User


class Command(BaseCommand):
    help = "Write everything that is known of a person as JSON, by table."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError(f"nobody is called {options['username']}")
        self.stdout.write(json.dumps(known_of(user), indent=2, ensure_ascii=False))
