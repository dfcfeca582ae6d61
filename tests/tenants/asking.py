"""A program that becomes many: each process asks for devices with a connection of its own.

Usage: python -m tests.tenants.asking PERSON TENANT PROCESSES ASKS. It prints "ready" once every
process waits, lets them all go at the next line on standard input, and prints what each was told as
one line of JSON. Processes are forked, because importing everything 64 times would take minutes.
"""

from __future__ import annotations

import json
import os
import sys


def ask(username: str, slug: str, asks: int) -> dict[str, list[str]]:
    """Asks `asks` times for one device, and gives the first, third, … that it got back at once, as
    a turn does that has seen it gone.
    """
    from django.db import transaction
    from django.utils import timezone

    from devices.asks.claims import request_claim
    from devices.models import TemplateVersion
    from tenants import budget
    from tenants.access import tenant_for
    from tenants.budget import OverLimit
    from tenants.models import User

    access = tenant_for(User.objects.get(username=username), slug)
    version = TemplateVersion.objects.select_related("template").get()
    namespace = access.tenant.namespaces.get().name
    said: dict[str, list[str]] = {"accepted": [], "refused": [], "returned": []}
    for number in range(asks):
        request_id = f"race-{os.getpid()}-{number}"
        try:
            claim = request_claim(
                access=access,
                version=version,
                namespace=namespace,
                name=f"race-{number}",
                values={},
                request_id=request_id,
                now=timezone.now(),
            )
        except OverLimit as refused:
            said["refused"].append(refused.code)
            continue
        said["accepted"].append(claim.public_id)
        if len(said["accepted"]) % 2 == 1:
            with transaction.atomic():
                budget.give_back(claim.public_id, request_id=request_id, now=timezone.now())
            said["returned"].append(claim.public_id)
    return said


def main(username: str, slug: str, processes: int, asks: int) -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    import django

    django.setup()
    import devices.asks.claims  # noqa: F401 (imported once, before there are many)

    gate, opened = os.pipe()
    answers = []
    for _ in range(processes):
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.close(opened)
            os.read(gate, 1)  # returns when the parent closes its end
            with os.fdopen(writing, "w") as out:
                json.dump(ask(username, slug, asks), out)
            os._exit(0)
        os.close(writing)
        answers.append(reading)
    print("ready", flush=True)
    sys.stdin.readline()
    os.close(opened)
    for reading in answers:
        with os.fdopen(reading) as answer:
            print(answer.read() or "null", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
