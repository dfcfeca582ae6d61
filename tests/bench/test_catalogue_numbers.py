"""The catalogue over 40,000 devices (design: p95 ≤ 150 ms a page or list, the picture warm).

The mirror is filled as the watch process fills it; what is measured is one request of a page after
the other in one process, by the clock and by what the processor did for it. Nothing fails for being
slow.
"""

from __future__ import annotations

import json
import os
import statistics
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from devices.catalogue import holdings
from devices.catalogue.offers import counts_of, store
from devices.forecasts.warm import fresh
from tenants.models import PlatformRole
from tests.bench.test_rules_numbers import DRIVER, objects
from tests.devices.demofleet import mirror
from tests.devices.pages import client_of
from tests.factories import make_person, make_tenant

pytestmark = [pytest.mark.bench, pytest.mark.django_db]

DEVICES = int(os.environ.get("BERTH_BENCH_DEVICES", "40000"))
SAMPLES = int(os.environ.get("BERTH_BENCH_SAMPLES", "20"))
RESULTS = Path(__file__).parents[2] / "bench-results" / "catalogue.json"
PAGES = (
    "catalogue/",
    "catalogue/?view=table",
    "catalogue/?q=80+GB",
    f"catalogue/classes/{DRIVER}/",
    "pools/",
    f"pools/{DRIVER}/node-00042/",
    "nodes/",
    "nodes/node-00042/",
    f"devices/{DRIVER}/node-00042/gpu-1/",
    "capabilities/",
)
OPERATIONS = ("classes", "search?q=80+GB", "pools", "nodes", "devices", f"devices?class={DRIVER}")


def filled() -> Iterator[dict[str, Any]]:
    """The cluster of the rules' numbers, as whole objects."""
    versions = {"Node": "v1", "Pod": "v1"}
    for kind, obj in objects(DEVICES):
        yield {"apiVersion": versions.get(kind, "resource.k8s.io/v1"), "kind": kind, **obj}


def in_parts(found: Iterable[dict[str, Any]], size: int = 5000) -> Iterator[list[dict[str, Any]]]:
    part: list[dict[str, Any]] = []
    for one in found:
        part.append(one)
        if len(part) == size:
            yield part
            part = []
    yield part


def measured(client: Client, address: str) -> dict[str, float]:
    """The middle and the late of many requests, in milliseconds, and the queries of one."""
    assert client.get(address).status_code == 200, address
    with CaptureQueriesContext(connection) as asked:
        client.get(address)
    queries = len(asked)  # read later, it would count what Django has forgotten by then
    walls, works = [], []
    for _ in range(SAMPLES):
        wall, work = time.perf_counter(), time.process_time()
        client.get(address)
        walls.append((time.perf_counter() - wall) * 1000)
        works.append((time.process_time() - work) * 1000)
    walls.sort()
    works.sort()
    return {
        "p50": round(statistics.median(walls)),
        "p95": round(walls[int(len(walls) * 0.95)]),
        "processor p50": round(statistics.median(works)),
        "processor p95": round(works[int(len(works) * 0.95)]),
        "queries": queries,
    }


def test_pages_over_a_large_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    for part in in_parts(filled()):
        mirror(part)
    timed: dict[str, dict[str, float]] = {}

    def once(name: str, began: float) -> None:
        timed[name] = {"p50": round((time.perf_counter() - began) * 1000)}

    began = time.perf_counter()
    seen = fresh()
    once("the picture, whole", began)
    assert seen is not None
    began, now = time.perf_counter(), timezone.now()
    store(counts_of(seen.prepared()), now=now, seen_at=seen.as_of)
    once("counting everything, first", began)
    began = time.perf_counter()
    holdings.record(seen.now, now)
    once("writing all holdings, first", began)
    began = time.perf_counter()
    holdings.record(seen.now, now)
    once("writing holdings again", began)
    tenant = make_tenant("tidewater", ("team-42",), {DRIVER: 8})
    member = client_of(make_person("tim", tenant))
    person = make_person("otto")
    PlatformRole.objects.create(user=person, role="operator")
    for client, root, api in (
        (member, "/t/tidewater/", "/api/v1/tenants/tidewater/"),
        (client_of(person), "/platform/", "/api/v1/platform/"),
    ):
        for path in PAGES:
            timed[root + path] = measured(client, root + path)
        for path in OPERATIONS:
            timed[api + path] = measured(client, api + path)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(timed, indent=2))
    with capsys.disabled():
        print(f"\n\nThe catalogue over {DEVICES:,} devices, in milliseconds")
        for name, found in timed.items():
            print(f"  {name:<64}{'  '.join(f'{key} {value:>5}' for key, value in found.items())}")
