"""Makes somebody an admin of the platform: the first one, or one in an emergency."""

from __future__ import annotations

import uuid
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction
from django.utils import timezone

from portal.audit.record import record
from tenants.models import PlatformRole, User


class Command(BaseCommand):
    help = "Make a person an admin of the platform; all other roles are given in the pages."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("username")

    @transaction.atomic
    def handle(self, *args: Any, **options: Any) -> None:
        user = User.objects.filter(username=options["username"], is_active=True).first()
        if user is None:
            raise CommandError(f"nobody who can sign in is called {options['username']}")
        _, made = PlatformRole.objects.get_or_create(user=user, role=PlatformRole.Role.ADMIN)
        if made:
            record(
                action="platform_role.given",
                subject=f"person {user.person}",
                request_id=f"command-{uuid.uuid4()}",
                at=timezone.now(),
                facts={"role": "admin", "by": "manage.py makeadmin"},
            )
        self.stdout.write(f"{user.username} is an admin of the platform")
