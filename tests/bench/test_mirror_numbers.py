"""The mirror's numbers at full size (design: 5,000 nodes, 40,000 devices, 50,000 claims and Pods).

BERTH_BENCH_SHARE=0.1 makes it a tenth. Figures are printed and written to bench-results/; nothing
fails for being slow, for a shared machine would make that a lottery.
"""

from __future__ import annotations

import json
import os
import statistics
from pathlib import Path

import pytest

from devices.cluster import connect
from devices.cluster.gateway import Ref
from devices.models import Observed
from playground.fleet.scale import Size, load
from playground.plane.components import API_SERVER, ETCD, Tuning
from playground.plane.controlplane import ControlPlane
from tests.bench import mirror_measures as measure
from tests.playground.planes import NEWEST, built

pytestmark = [pytest.mark.bench, pytest.mark.cluster, pytest.mark.django_db(transaction=True)]

SHARE = float(os.environ.get("BERTH_BENCH_SHARE", "1"))
SIZE = Size(
    nodes=int(5_000 * SHARE),
    claims=int(50_000 * SHARE),
    pods=int(50_000 * SHARE),
    namespaces=max(1, int(50 * SHARE)),
)
RESULTS = Path(__file__).parents[2] / "bench-results" / "mirror.json"


@pytest.fixture(scope="module")
def plane(tmp_path_factory):
    """A control plane with that much in it, and nobody who would change any of it."""
    plane = ControlPlane(
        tmp_path_factory.mktemp("bench"),
        built(NEWEST),
        components=(ETCD, API_SERVER),
        tuning=Tuning(audit=False, max_mutating_requests_inflight=1000, garbage_percent=400),
    )
    with plane:
        took = load(
            connect(plane.admin_kubeconfig),
            SIZE,
            release=NEWEST,
            tell=lambda what, count, seconds: print(f"  {count} {what} in {seconds:.0f} s"),
        )
        print(f"  loaded in {took:.0f} s")
        yield plane


def test_mirror(plane, capsys):
    with capsys.disabled():
        print("\n\nThe mirror")
        figures = _figures(plane)
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(figures, indent=2))
    assert figures["objects mirrored"] >= SIZE.nodes * 2 + SIZE.claims + SIZE.pods


def _figures(plane):
    kubeconfig = plane.admin_kubeconfig
    gateway = connect(kubeconfig)
    figures: dict[str, float] = {}

    def show(name: str, value: float, unit: str = "") -> None:
        figures[name] = round(value, 3)
        print(f"  {name:<58}{value:>12,.2f} {unit}")

    measure.raw_list(gateway, measure.fast_decode)  # the API server's caches are warm for both
    raw = measure.raw_list(gateway, measure.fast_decode)
    plain = measure.raw_list(gateway, measure.stdlib_decode)
    show("objects listed", raw.objects)
    show("their JSON", raw.megabytes, "MB")
    show("raw LIST and decode (msgspec)", raw.seconds, "s")
    show("raw LIST and decode (json of the standard library)", plain.seconds, "s")
    with measure.watch_process(kubeconfig) as child:
        measure.wait_listed(600)
        seconds = measure.first_sync_seconds()
        show("first sync into PostgreSQL", seconds, "s")
        show("  times the raw time (reach: at most 3)", seconds / raw.seconds, "x")
        show("  times the raw time, standard library", seconds / plain.seconds, "x")
        show("  processor time of the watch process", measure.processor_seconds(child.pid), "s")
        show("watch process, peak memory (reach: 400)", measure.peak_megabytes(child.pid), "MB")
    show("objects mirrored", Observed.objects.count())

    # So few that they are written within the 75 s for which the API server keeps history at least.
    slices = _refs("ResourceSlice")[:2_000]
    since = next(gateway.pages("ResourceSlice", size=1)).version
    measure.touch(gateway, slices)
    ours = measure.backlog_seconds(gateway, len(slices))
    typed = measure.typed_watch_seconds(kubeconfig, since, len(slices))
    if ours is None or typed is None:
        print("  watch events a second: not measured, the API server forgot them (busy machine?)")
    else:
        show("watch events stored a second", len(slices) / ours, "/s")
        show("  the official client's typed watch, storing nothing", len(slices) / typed, "/s")
        show("  as many as that (reach: at least 2)", typed / ours, "x")

    late = measure.latencies(gateway, _refs("ResourceClaim")[:2_000], at=200)
    show("write to stored and told, 200 a second, median", statistics.median(late) * 1000, "ms")
    show("write to stored and told, 200 a second, p95", measure.p95(late) * 1000, "ms")
    return figures


def _refs(kind):
    rows = Observed.objects.filter(kind=kind).order_by("uid")
    return [Ref(kind, row.name, row.namespace) for row in rows.only("name", "namespace")]
