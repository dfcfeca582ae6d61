"""Erases a person: names, mail, roles, tokens and sessions. The audit keeps an opaque id."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from portal.errors import Refused
from tenants.erasure import erase
from tenants.models import User


class Command(BaseCommand):
    help = "Erase a person for ever. What they asked for stays, as that of nobody in particular."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")
        parser.add_argument("--yes", action="store_true", help="do not ask")

    def handle(self, *args: Any, **options: Any) -> None:
        name = options["username"]
        user = User.objects.filter(username=name).first()
        if user is None:
            raise CommandError(f"nobody is called {name}")
        if not options["yes"] and input(f"Type {name} again to erase them for ever: ") != name:
            raise CommandError("Nothing was erased.")
        try:
            erase(user, by="manage.py eraseperson", now=timezone.now())
        except Refused as refused:
            raise CommandError(refused.message) from refused
        self.stdout.write(f"{name} is erased; the audit names them person {user.person}.")
