"""How long the pages of a plan over 5,000 nodes take (design: 150 ms), and making one.

Nodes stand in the mirror, a plan of four waves is made by the product's own verb, and its waves are
put where they would be in the middle of it. Nothing fails for being slow.
"""

from __future__ import annotations

import json
import os
import time
from datetime import timedelta
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from migrationplan.models import Move, Plan, Wave, WaveNode
from migrationplan.phases import Stand
from migrationplan.plans.wishes import WaveWish
from tests.bench.test_list_numbers import measured
from tests.migrationplan.test_plan import a_plan, a_pool, person

pytestmark = [pytest.mark.bench, pytest.mark.django_db]

NODES = int(os.environ.get("BERTH_BENCH_NODES", "5000"))
RESULTS = Path(__file__).parents[2] / "bench-results" / "plans.json"
WAVES = (
    WaveWish("Canary", 1),
    WaveWish("Retryable", 20, concurrency=20),
    WaveWish("Throughput", 60, concurrency=50),
    WaveWish("Long-running last", 100, concurrency=20),
)


def in_the_middle(plan: Plan) -> Wave:
    """Two waves are done and the third one has moved half of its nodes, each with its move."""
    now, waves = timezone.now(), list(plan.waves.order_by("position"))
    Wave.objects.filter(pk__in=[one.pk for one in waves[:3]]).update(
        started_at=now - timedelta(days=2)
    )
    for wave, share in zip(waves, (1.0, 1.0, 0.5, 0.0), strict=True):
        rows = list(wave.nodes.select_related("pool"))
        through = rows[: round(len(rows) * share)]
        for row in through:
            row.stand, row.why = Stand.CONVERTED.value, "done: seen to run"
            row.move = Move(
                pool=row.pool, node=row.node, node_uid=row.node_uid, direction="to DRA",
                step="done", since=now, begun_by=plan.made_by, begun_at=now, request_id="bench",
                ended_at=now,
            )  # fmt: skip
        Move.objects.bulk_create(row.move for row in through if row.move)
        WaveNode.objects.bulk_update(through, ["stand", "why", "move"], batch_size=1000)
        for number in range(300):
            wave.events.create(at=now, text=f"Node {number} is converted.")
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return waves[2]


def test_a_plan_of_5000_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    operator = person("olga", "operator")
    a_pool(operator, NODES)
    began = time.perf_counter()
    plan = a_plan(operator, *WAVES)
    made = time.perf_counter() - began
    wave = in_the_middle(plan)
    client = Client()
    client.force_login(operator.user)
    page, api = f"/platform/plans/{plan.public_id}/", f"/api/v1/platform/plans/{plan.public_id}"
    lists = {
        "plans": "/platform/plans/",
        "the plan": page,
        "  at the wave that runs": f"{page}waves/{wave.position}/",
        "  its last page of nodes": f"{page}waves/{wave.position}/?page=40",
        "  a change of it": f"{page}waves/{wave.position}/edit/",
        "moves": "/platform/moves/",
        "API: plans": "/api/v1/platform/plans",
        "API: the plan": api,
        "API: nodes of the wave": f"{api}/waves/{wave.position}/nodes?limit=100",
        "API: events of the wave": f"{api}/waves/{wave.position}/events",
    }
    figures = {}
    with capsys.disabled():
        print(f"\n\nA plan over {NODES:,} nodes (made in {made:.1f} s)")
        print(f"  {'':<40}{'p50':>9}{'p95':>9}{'queries':>9}")
        for name, p50, p95, queries in measured(client, lists):
            figures[name.strip()] = {"p50": round(p50, 1), "p95": round(p95, 1), "queries": queries}
            print(f"  {name:<40}{p50:>6.1f} ms{p95:>6.1f} ms{queries:>9}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(figures, indent=2))
