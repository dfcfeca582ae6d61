"""Removes somebody's second factor, once an administrator knows that it is really they who ask."""

from __future__ import annotations

import uuid
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from tenants.models import User
from tenants.secondfactor import remove_second_factor


class Command(BaseCommand):
    help = "Remove the authenticator app and the recovery codes of a person who lost both."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")

    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError(f"nobody is called {options['username']}")
        removed = remove_second_factor(
            user, by=None, now=timezone.now(), request_id=f"command-{uuid.uuid4()}"
        )
        self.stdout.write(f"{user.username}: {removed} removed; the password alone counts now")
