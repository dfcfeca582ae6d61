"""A process that fills a database with one of everything and prints who may ask, as JSON.

`python -m tests.portal.apiworld`, with DATABASE_URL; what it makes is what the matrix asks about.
"""

from __future__ import annotations

import json
import os
from datetime import timedelta

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")


def main() -> None:
    django.setup()
    from django.test import override_settings
    from django.utils import timezone

    from tenants.access import platform_of, tenant_for
    from tenants.models import User
    from tenants.tokens import make_token
    from tests.matrix.world import build

    now = timezone.now()
    with override_settings(PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"]):
        world = build()
    accesses = {
        "tenant": tenant_for(User.objects.get(username="rosa"), "tidewater"),
        "platform": platform_of(User.objects.get(username="admin")),
    }
    tokens = {
        kind: make_token(
            access=access,
            name="contract",
            scopes=["read", "operate", "admin", *(["request"] if kind == "tenant" else [])],
            expires_at=now + timedelta(hours=6),
            now=now,
            request_id="request-0001",
        ).text
        for kind, access in accesses.items()
    }
    print(json.dumps({"values": world.values, "tokens": tokens}))


if __name__ == "__main__":
    main()
