"""Sixty-four processes for the last units, on the real PostgreSQL: none oversold, none lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import pytest
from django.db import connection
from django.db.models import Count, Sum

from devices.models import Claim
from tenants.limits import devices_of, strip
from tenants.models import BudgetLine
from tenants.sums import sums_of
from tests.factories import make_access, make_version

ROOT = Path(__file__).parents[2]
CLIENTS, ASKS, LIMIT = 64, 2, 40


def own_database() -> str:
    """The address of this test's database, for other programs."""
    server, _, _ = os.environ["DATABASE_URL"].partition("?")
    rest = os.environ["DATABASE_URL"][len(server) :]
    head, _, _ = server.rpartition("/")
    return f"{head}/{connection.settings_dict['NAME']}{rest}"


def in_use() -> Decimal:
    lines = BudgetLine.objects.filter(given_back_at=None, measure="devices")
    return lines.aggregate(total=Sum("amount"))["total"] or Decimal(0)


@pytest.mark.django_db(transaction=True)
def test_sixty_four_clients_for_the_last_units(capsys: pytest.CaptureFixture[str]) -> None:
    access = make_access(limits={"gpu": LIMIT})
    make_version()
    program = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "tests.tenants.asking",
            access.user.username,
            access.tenant.slug,
            str(CLIENTS),
            str(ASKS),
        ],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": own_database(), "DATABASE_POOL_SIZE": "1"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with program:
        assert program.stdin and program.stdout
        assert program.stdout.readline() == "ready\n"
        began = time.monotonic()
        program.stdin.write("go\n")
        program.stdin.flush()
        most = Decimal(0)
        answers = []
        for line in program.stdout:
            answers.append(json.loads(line))
            most = max(most, in_use())
        took = time.monotonic() - began
    said = [answer for answer in answers if answer is not None]
    assert len(said) == CLIENTS, "every process came to its end"
    accepted = [one for answer in said for one in answer["accepted"]]
    refused = [one for answer in said for one in answer["refused"]]
    returned = [one for answer in said for one in answer["returned"]]
    assert len(accepted) + len(refused) == CLIENTS * ASKS, "every ask had an answer"
    assert set(refused) == {"LIMIT_REACHED"}
    assert most <= LIMIT
    assert len(accepted) >= LIMIT

    # Not lost: each accepted ask has its row and its lines, and nothing else has.
    assert set(Claim.objects.values_list("public_id", flat=True)) == set(accepted)
    lines = BudgetLine.objects.values_list("source").annotate(Count("pk")).order_by()
    assert dict(lines) == dict.fromkeys(accepted, 2)
    assert in_use() == len(accepted) - len(returned) <= LIMIT
    left = strip(devices_of("gpu"), Decimal(LIMIT), sums_of(access.tenant)).free
    assert left == LIMIT - in_use()
    with capsys.disabled():
        print(
            f"\n{CLIENTS} processes, {CLIENTS * ASKS} asks for {LIMIT} devices in {took:.1f} s: "
            f"{len(accepted)} accepted, {len(returned)} given back, {len(refused)} refused, "
            f"{max(0, int(in_use()) - LIMIT)} oversold, 0 lost"
        )
