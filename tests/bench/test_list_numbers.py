"""How long lists take at 50,000 claims (design: any page or list p95 ≤ 150 ms, few queries).

Rows are written straight into the database, as their columns would be after a year of asking; the
pages and operations are then asked for as a signed-in browser or a token does, without a network.
Nothing fails for being slow, for a shared machine would make that a lottery.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from devices.models import Claim, ClaimEvent, SavedView, TemplateVersion
from devices.models.claim import new_public_id
from tenants.models import PlatformRole, Tenant, User
from tests.factories import make_person, make_tenant, make_version

pytestmark = [pytest.mark.bench, pytest.mark.django_db]

CLAIMS = int(os.environ.get("BERTH_BENCH_CLAIMS", "50000"))
ROUNDS = int(os.environ.get("BERTH_BENCH_ROUNDS", "30"))
EVENTS = 500
RESULTS = Path(__file__).parents[2] / "bench-results" / "lists.json"
STATES = ("in use", "in use", "in use", "pending", "allocated", "held", "failed", "released")
CLASSES = ("gpu", "h100-80gb", "a100-mig-1g", "nic-rdma", "fpga")
#: One in so many is of the rare kind that a filter looks for.
RARE = 5000

LISTS = {
    "claims of a tenant": "/t/tidewater/claims/",
    "  all states": "/t/tidewater/claims/?state=all",
    "  one state": "/t/tidewater/claims/?state=failed",
    "  part of a name, in many": "/t/tidewater/claims/?q=train&state=all",
    "  part of a name, in ten": "/t/tidewater/claims/?q=needle&state=all",
    "  part of a name, in none": "/t/tidewater/claims/?q=haystack&state=all",
    "  a common class": "/t/tidewater/claims/?class=gpu&state=all",
    "  a rare class": "/t/tidewater/claims/?class=rare&state=all",
    "  a namespace and a template": "/t/tidewater/claims/?namespace=tide-1&template=gpu",
    "  somebody who asked seldom": "/t/tidewater/claims/?by=seldom&state=all",
    "  over a month old": "/t/tidewater/claims/?age=over-30d&state=all",
    "  ends within a week": "/t/tidewater/claims/?ends=7d",
    "  needs attention": "/t/tidewater/claims/?attention=yes",
    "  by name": "/t/tidewater/claims/?sort=name&state=all",
    "  longest in its state": "/t/tidewater/claims/?sort=waiting&state=all",
    "  ends first": "/t/tidewater/claims/?sort=ends",
    "  a saved view": "/t/tidewater/claims/?view=needles",
    "claims of the platform": "/platform/claims/",
    "  of one tenant, by name": "/platform/claims/?tenant=basalt&sort=name",
    "API: claims of a tenant": "/api/v1/tenants/tidewater/claims?limit=50",
    "API: one class, by name": "/api/v1/tenants/tidewater/claims?class=gpu&sort=name",
    "API: claims of the platform": "/api/v1/platform/claims",
    "home of a tenant": "/t/tidewater/",
    "palette: a claim by its name": "/find/?q=needle&t=tidewater",
    "palette: nothing typed yet": "/find/?t=tidewater",
}


def fill() -> tuple[User, Claim]:
    """The rows; returns an owner who is also an operator, and a claim with a long history."""
    rolls = random.Random(7)
    tenants = [
        make_tenant("tidewater", tuple(f"tide-{n}" for n in range(8))),
        make_tenant("basalt", tuple(f"basalt-{n}" for n in range(4))),
    ]
    owner = make_person("rosa", tenants[0], "owner")
    PlatformRole.objects.create(user=owner, role="operator")
    people = [make_person(f"person-{n}", tenants[0]).person for n in range(40)]
    seldom = make_person("seldom", tenants[0]).person
    versions = [make_version(), make_version("pair"), make_version("slice")]
    now, places = timezone.now(), {one.pk: list(one.namespaces.all()) for one in tenants}

    def row(number: int) -> Claim:
        tenant: Tenant = tenants[0] if number % 10 else tenants[1]
        rare = number % RARE == 7
        state = rolls.choice(STATES)
        asked = now - timedelta(minutes=12 * (CLAIMS - number))
        ends = asked + timedelta(days=400) if rolls.random() < 0.3 else None
        version: TemplateVersion = rolls.choice(versions)
        name = f"{'needle' if rare else rolls.choice(('train', 'serve', 'eval'))}-{number}"
        held = state in {"in use", "allocated"}
        device = {"driver": "gpu.example.com", "pool": f"node-{number % 900}", "device": "gpu-0"}
        return Claim(
            public_id=new_public_id(),
            tenant=tenant,
            namespace=rolls.choice(places[tenant.pk]),
            name=name,
            object_name=f"{name}-{number}",
            shape="template",
            version=version,
            values={"count": 1},
            devices=[{"name": "gpu", "device_class": "gpu", "count": 1, "selectors": []}],
            classes=["rare"] if rare else [rolls.choice(CLASSES)],
            words="1 × GPU",
            asked_by=seldom if rare else rolls.choice(people),
            request_id=f"request-{number}",
            requested_at=asked,
            since=asked + timedelta(minutes=rolls.randint(1, 600)),
            released_at=now if state == "released" else None,
            expires_at=ends,
            note="for the review of May" if rolls.random() < 0.2 else "",
            state=state,
            code="NO_MATCHING_DEVICE_FREE" if state == "pending" else "",
            why="0/900 nodes are available: 900 cannot allocate all claims." * 2,
            placed=[{**device, "claim": name, "request": "gpu", "node": ""}] if held else [],
            pods=[
                {
                    "name": f"{name}-pod",
                    "phase": "Running",
                    "node": "",
                    "ready": True,
                    "message": "",
                }
            ]
            if held
            else [],
            node=f"node-{number % 900}" if held else "",
        )

    for first in range(0, CLAIMS, 5000):
        last = min(first + 5000, CLAIMS)
        Claim.objects.bulk_create(row(number) for number in range(first, last))
    long = Claim.objects.filter(tenant=tenants[0], state="in use").latest("pk")
    ClaimEvent.objects.bulk_create(
        ClaimEvent(claim=long, at=now, state="in use", text=f"Event {number}")
        for number in range(EVENTS)
    )
    SavedView.objects.create(
        tenant=tenants[0],
        owner=owner.person,
        slug="needles",
        name="Needles",
        query={"q": "needle", "state": "all"},
        made_at=now,
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return owner, long


def timed(ask: Callable[[], object]) -> list[float]:
    """Milliseconds of each of ROUNDS calls after two that warm up."""
    ask(), ask()
    spent = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        ask()
        spent.append((time.perf_counter() - began) * 1000)
    return spent


def measured(client: Client, lists: dict[str, str]) -> Iterator[tuple[str, float, float, int]]:
    """Per list: its name, p50 and p95 in milliseconds, and how many queries it asks."""
    for name, address in lists.items():

        def ask(address: str = address) -> None:
            answer = client.get(address)
            assert answer.status_code == 200, (address, answer.status_code)
            assert answer.content

        with CaptureQueriesContext(connection) as queries:
            ask()
        asked = len(queries)  # read later, it would count what Django has forgotten by then
        spent = timed(ask)
        yield name, statistics.median(spent), statistics.quantiles(spent, n=20)[-1], asked


def test_lists(capsys: pytest.CaptureFixture[str]) -> None:
    began = time.perf_counter()
    owner, long = fill()
    filled = time.perf_counter() - began
    client = Client()
    client.force_login(owner)
    deep = "/api/v1/tenants/tidewater/claims?limit=500"
    for _ in range(20):
        deep = client.get(deep).json()["next"]
    cursor = deep.rpartition("cursor=")[2].partition("&")[0]
    page = f"/t/tidewater/claims/{long.public_id}/"
    lists = {
        **LISTS,
        "  a page far down": f"/t/tidewater/claims/?state=all&cursor={cursor}",
        f"a claim with {EVENTS} events": page,
        "  its history": f"{page}history/",
    }
    figures = {}
    with capsys.disabled():
        print(f"\n\nLists over {CLAIMS:,} claims (written in {filled:.0f} s)")
        print(f"  {'':<40}{'p50':>9}{'p95':>9}{'queries':>9}")
        for name, p50, p95, queries in measured(client, lists):
            figures[name.strip()] = {"p50": round(p50, 1), "p95": round(p95, 1), "queries": queries}
            print(f"  {name:<40}{p50:>6.1f} ms{p95:>6.1f} ms{queries:>9}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(figures, indent=2))
