"""Turns per second against the real API server, and a sweep over 50,000 claims beside news.

BERTH_BENCH_SHARE=0.1 makes it a tenth. Figures are printed and written to bench-results/; nothing
fails for being slow, for a shared machine would make that a lottery.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from celery import current_app
from django.db import connection
from django.utils import timezone

from devices.asks import reconcile
from devices.asks.claims import release_claim
from devices.cluster import connect
from devices.cluster.gateway import Gateway
from devices.dra.lifecycle import State
from devices.models import Claim, TemplateVersion
from devices.tasks import sweep_claims
from playground.plane.components import API_SERVER, ETCD, Tuning
from playground.plane.controlplane import ControlPlane
from portal.outbox.lines import hint
from tenants.access import Access
from tests.factories import GPU_CONTENT, make_access, make_claim, make_version
from tests.playground.planes import NEWEST, built

pytestmark = [pytest.mark.bench, pytest.mark.cluster, pytest.mark.django_db(transaction=True)]

SHARE = float(os.environ.get("BERTH_BENCH_SHARE", "1"))
ASKS = max(20, int(400 * SHARE))
SWEPT = int(50_000 * SHARE)
WORKERS = (1, 4)
RESULTS = Path(__file__).parents[2] / "bench-results" / "turns.json"
NAMESPACE = "bench-turns"


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    plane = ControlPlane(
        tmp_path_factory.mktemp("bench"),
        built(NEWEST),
        components=(ETCD, API_SERVER),
        tuning=Tuning(audit=False),
    )
    with plane:
        yield connect(plane.admin_kubeconfig)


def test_turns(gateway: Gateway, capsys: pytest.CaptureFixture[str]) -> None:
    access = make_access(namespaces=(NAMESPACE,))
    figures: dict[str, float] = {}
    with capsys.disabled():
        print("\n\nTurns")

        def show(name: str, value: float, unit: str = "") -> None:
            figures[name] = round(value, 3)
            print(f"  {name:<58}{value:>12,.2f} {unit}")

        version = make_version("gpu", {**GPU_CONTENT, "shared": True})
        for workers in WORKERS:
            _turns(gateway, access, version, workers, show)
        _sweep(access, version, show)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(figures, indent=2))


def _turns(
    gateway: Gateway,
    access: Access,
    version: TemplateVersion,
    workers: int,
    show: Callable[[str, float, str], None],
) -> None:
    """Turns that make, that only look, and that take away, by so many threads."""
    now = timezone.now()
    made = [
        make_claim(access, version, name=f"turn-{workers}-{number}", now=now).public_id
        for number in range(ASKS)
    ]
    if workers == WORKERS[0]:
        reconcile.turn(made[0], gateway=gateway, now=now)  # the namespace is made once

    def turn(public_id: str) -> None:
        try:
            reconcile.turn(public_id, gateway=gateway, now=timezone.now())
        finally:
            if workers > 1:
                connection.close()

    def rate(what: str) -> None:
        began = time.perf_counter()
        with ThreadPoolExecutor(workers) as pool:
            list(pool.map(turn, made))
        show(f"{what}, {workers} at once", ASKS / (time.perf_counter() - began), "turns/s")

    rate("turns that make the object")
    rate("turns that find all as it should be")
    for public_id in made:
        release_claim(access=access, public_id=public_id, request_id="bench", now=now)
    rate("turns that take it away")
    states = set(Claim.objects.filter(public_id__in=made).values_list("state", flat=True))
    assert states == {State.RELEASED}


def _sweep(
    access: Access, version: TemplateVersion, show: Callable[[str, float, str], None]
) -> None:
    """A sweep over many rows, and what comes first of the queue while it waits there: news."""
    now = timezone.now()
    claim = make_claim(access, version, name="swept", now=now)
    Claim.objects.filter(pk=claim.pk).update(state=State.APPLIED)
    claim.refresh_from_db()
    rows = (_copy(claim, number, looked_at=now - timedelta(minutes=11)) for number in range(SWEPT))
    Claim.objects.bulk_create(rows, batch_size=2_000)
    began = time.perf_counter()
    due = reconcile.unseen(now, older_than=timedelta(minutes=10))
    show(f"the oldest of {SWEPT:,} rows to look at", (time.perf_counter() - began) * 1000, "ms")
    assert len(due) == min(500, SWEPT)
    with current_app.connection_for_read() as broker:
        queue = broker.SimpleQueue("celery")
        queue.queue.purge()
        began = time.perf_counter()
        sweep_claims()
        show("one sweep of 500, sent", (time.perf_counter() - began) * 1000, "ms")
        hint(reconcile.RECONCILE, "the-news")
        first = queue.get(timeout=10)
        assert "the-news" in str(first.payload), "news go before what a sweep sent"
        first.ack()
        queue.queue.purge()
        queue.close()
    show("sweeps until all were called (500 each 30 s)", SWEPT / 500 / 2, "min")


def _copy(claim: Claim, number: int, **changed: object) -> Claim:
    fields = {
        field.attname: getattr(claim, field.attname)
        for field in Claim._meta.concrete_fields
        if field.attname not in {"id", "public_id"}
    }
    name = f"swept-{number}"
    return Claim(**{**fields, "name": name, "object_name": name, **changed})
