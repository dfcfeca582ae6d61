"""Removes somebody's second factor, once an administrator knows that it is really they who ask."""

from __future__ import annotations

import uuid
from typing import Any

from allauth.mfa.models import Authenticator
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone

from portal.audit.record import record
from tenants.models import User


class Command(BaseCommand):
    help = "Remove the authenticator app and the recovery codes of a person who lost both."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["username"]).first()
        if user is None:
            raise CommandError(f"nobody is called {options['username']}")
        removed, _ = Authenticator.objects.filter(user=user).delete()
        if removed:
            record(
                action="second_factor.removed",
                subject=f"person {user.person}",
                request_id=f"command-{uuid.uuid4()}",
                at=timezone.now(),
            )
        self.stdout.write(f"{user.username}: {removed} removed; the password alone counts now")
