"""Reads and writes by API while the cluster changes (design: p95 ≤ 150 ms and ≤ 400 ms).

5,000 reads and 500 writes a minute, 50 events a second; everything runs as in the demo, and nothing
fails for being slow. Several tokens, since each has a rate of its own.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import statistics
import threading
import time
import uuid
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from devices.cluster.gateway import Ref
from tests.bench import test_page_numbers as pages
from tests.journeys.conftest import Demo, demo
from tests.journeys.test_first_device import until

__all__ = ["demo"]

pytestmark = [pytest.mark.bench, pytest.mark.cluster]

READS = int(os.environ.get("BERTH_BENCH_READS", "5000"))
WRITES = int(os.environ.get("BERTH_BENCH_WRITES", "500"))
SECONDS = float(os.environ.get("BERTH_BENCH_SECONDS", "60"))
EVENTS_A_SECOND = 50
READERS, ASKERS = 5, 2
NAMESPACE = "tidewater-eval"
CLAIMS = "/api/v1/tenants/tidewater-vision/claims"
RESULTS = Path(__file__).parents[2] / "bench-results" / "api.json"


def a_token(address: str) -> str:
    """Made on the page, as a person would."""
    person = pages.Person(address, "plover")
    _, page = person.ask("GET", "/account/tokens/")
    csrf = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)
    assert csrf
    form = {"name": "bench", "tenant": "tidewater-vision", "scopes": ["read", "request"],
            "life": "7", "csrfmiddlewaretoken": csrf.group(1)}  # fmt: skip
    _, made = person.ask("POST", "/account/tokens/", urlencode(form, doseq=True))
    found = re.search(r"berth_[0-9a-f]+_[\w-]+", made)
    assert found
    return found.group(0)


class Caller(threading.Thread):
    """One program that asks at a steady pace; `took` are seconds from asking to the whole answer.

    A call that comes late because the one before was slow is counted from when it was due.
    """

    def __init__(self, address: str, token: str, calls: int, paths: list[str]) -> None:
        super().__init__()
        self.host = urlsplit(address).netloc
        self.token, self.calls, self.paths = token, calls, paths
        self.took: list[float] = []
        self.statuses: dict[int, int] = {}

    def run(self) -> None:
        connection = http.client.HTTPConnection(self.host, timeout=60)
        began = time.perf_counter()
        for number in range(self.calls):
            due = began + number * SECONDS / self.calls
            time.sleep(max(0.0, due - time.perf_counter()))
            self.call(connection, number)
            status = connection.status  # type: ignore[attr-defined]
            self.statuses[status] = self.statuses.get(status, 0) + 1
            self.took.append(time.perf_counter() - due)
        connection.close()

    def call(self, connection: Any, number: int) -> None:
        headers = {"Authorization": f"Bearer {self.token}"}
        connection.request("GET", self.paths[number % len(self.paths)], headers=headers)
        answer = connection.getresponse()
        answer.read()
        connection.status = answer.status


class Asker(Caller):
    """Writes: an ask, then its release, in turn."""

    made = ""

    def call(self, connection: Any, number: int) -> None:
        path, body = CLAIMS, None
        if self.made:
            path, self.made = f"{CLAIMS}/{self.made}/release", ""
        else:
            body = {"template": "gpu", "namespace": NAMESPACE, "name": f"api-{number}",
                    "values": {"memory": "10", "gpus": 1}}  # fmt: skip
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json",
                   "Idempotency-Key": str(uuid.uuid4())}  # fmt: skip
        connection.request("POST", path, json.dumps(body) if body else None, headers)
        answer = connection.getresponse()
        told = json.loads(answer.read())
        connection.status = answer.status
        if answer.status == 201:
            self.made = told["id"]


def test_reads_and_writes_while_the_cluster_changes(
    demo: Demo, capsys: pytest.CaptureFixture[str]
) -> None:
    gateway = demo.gateway
    until(lambda: gateway.get(Ref("Namespace", NAMESPACE)))
    names = [f"api-bench-{number}" for number in range(20)]
    for name in names:
        requests = [{"name": "gpu", "exactly": {"deviceClassName": "h100-80gb"}}]
        gateway.create({
            "apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim",
            "metadata": {"name": name, "namespace": NAMESPACE},
            "spec": {"devices": {"requests": requests}},
        })  # fmt: skip
    tenant = "/api/v1/tenants/tidewater-vision"
    paths = [CLAIMS, f"{CLAIMS}?fields=id,state", f"{CLAIMS}/changes", f"{tenant}/templates",
             f"{tenant}/offers", f"{tenant}/limits"]  # fmt: skip
    readers = [
        Caller(demo.address, a_token(demo.address), int(READS * SECONDS / 60 / READERS), paths)
        for _ in range(READERS)
    ]
    askers = [
        Asker(demo.address, a_token(demo.address), int(WRITES * SECONDS / 60 / ASKERS), [])
        for _ in range(ASKERS)
    ]
    with pages.busy(gateway, names, EVENTS_A_SECOND) as written:
        began = time.perf_counter()
        for caller in (*readers, *askers):
            caller.start()
        for caller in (*readers, *askers):
            caller.join()
        took = time.perf_counter() - began
        events = written[0] / took
    figures: dict[str, Any] = {"events a second": round(events), "seconds": round(took, 1)}
    for kind, callers in (("reads", readers), ("writes", askers)):
        waits = sorted(one for caller in callers for one in caller.took)
        figures[f"{kind} a minute"] = round(len(waits) * 60 / took)
        figures[f"{kind}, p50 in ms"] = round(statistics.median(waits) * 1000)
        figures[f"{kind}, p95 in ms"] = round(waits[int(len(waits) * 0.95)] * 1000)
        statuses: dict[int, int] = {}
        for caller in callers:
            for status, count in caller.statuses.items():
                statuses[status] = statuses.get(status, 0) + count
        figures[f"{kind}, answers by status"] = statuses
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(figures, indent=2))
    with capsys.disabled():
        print("\n\nThe API while the cluster changes")
        for name, value in figures.items():
            print(f"  {name:<40}{value!s:>30}")
