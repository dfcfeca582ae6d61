"""How fast the mirror follows a cluster: what is measured, and against what."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from django.db import connection

from devices.cluster.gateway import Gateway, NotServed, Ref
from devices.mirror.kinds import MIRRORED
from devices.mirror.store import Changed
from devices.models import Leadership, Observed, Sync
from devices.watching import Watch, watch

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class RawList:
    """Every mirrored kind listed page by page and decoded, nothing else done with it."""

    seconds: float
    objects: int
    megabytes: float


def raw_list(gateway: Gateway, decode: Callable[[bytes], object]) -> RawList:
    began = time.perf_counter()
    objects, size = 0, 0
    for mirrored in MIRRORED.values():
        try:
            for page in gateway.pages(mirrored.kind, namespace=mirrored.namespace):
                for item in page.items:
                    decode(bytes(item))
                    size += len(item)
                objects += len(page.items)
        except NotServed:
            continue
    return RawList(time.perf_counter() - began, objects, size / 1e6)


def stdlib_decode(raw: bytes) -> object:
    return json.loads(raw)


fast_decode = msgspec.json.Decoder().decode


@contextmanager
def watch_process(kubeconfig: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A real watch process on the database of the run."""
    name = connection.settings_dict["NAME"]
    url = os.environ["DATABASE_URL"].replace("/berth?", f"/{name}?")
    env = {**os.environ, "DATABASE_URL": url, "BERTH_KUBECONFIG": str(kubeconfig)}
    env["LOG_LEVEL"] = "WARNING"
    command = [sys.executable, "manage.py", "watchcluster"]
    with subprocess.Popen(command, cwd=ROOT, env=env) as child:
        try:
            yield child
        finally:
            child.terminate()
            child.wait(10)


def first_sync_seconds() -> float:
    """From taking the lease to the last list stored, by the database's clock."""
    began = Leadership.objects.get().since
    ended = max(row.listed_at for row in Sync.objects.exclude(listed_at=None))
    return (ended - began).total_seconds()


def peak_megabytes(pid: int) -> float:
    """The most memory the process ever held (VmHWM)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    raise ValueError(f"no VmHWM of process {pid}")


def processor_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_listed(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        rows = list(Sync.objects.all())
        if len(rows) == len(MIRRORED) and all(row.listed_at or not row.served for row in rows):
            return
        time.sleep(0.2)
    raise AssertionError("not everything was listed in time")


def touch(gateway: Gateway, refs: list[Ref], *, threads: int = 8, at: float = 0.0) -> None:
    """Annotates each object with the time, at most `at` a second (0: as fast as it goes)."""
    began = time.perf_counter()

    def annotate(numbered: tuple[int, Ref]) -> None:
        number, ref = numbered
        if at and (early := began + number / at - time.perf_counter()) > 0:
            time.sleep(early)
        change = {"metadata": {"annotations": {"bench/at": repr(time.time())}}}
        gateway.merge(ref, change)

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(annotate, enumerate(refs)))


def typed_watch_seconds(kubeconfig: Path, since: str, count: int) -> float | None:
    """The official client's own loop over the same events: typed, as its examples show it.

    Of slices, because its 37.0.1 cannot watch claims at all (its model is named otherwise). None
    where the API server no longer had them all.
    """
    script = f"""
import time
from kubernetes import client, config, watch
config.load_kube_config({str(kubeconfig)!r})
api = client.ResourceV1Api()
api.list_resource_slice(limit=1)
began, seen = time.perf_counter(), 0
stream = watch.Watch().stream(
    api.list_resource_slice, resource_version={since!r}, timeout_seconds=600)
try:
    for event in stream:
        seen += 1
        if seen == {count}:
            break
    print(time.perf_counter() - began)
except client.ApiException as error:
    assert error.status == 410, error
"""
    done = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT
    )
    return float(done.stdout) if done.stdout else None


def backlog_seconds(gateway: Gateway, changes: int) -> float | None:
    """How long a starting watch process takes to store that many changes it missed.

    From its first batch to the last row, with the other kinds followed as always. None where the
    API server no longer had them all, so that the kind was listed instead.
    """
    stop = threading.Event()
    left = [changes]
    moments: list[float] = []
    listed_at = Sync.objects.get(kind="ResourceSlice").listed_at

    def wake(batch: Sequence[Changed]) -> None:
        moments.append(time.perf_counter())
        left[0] -= len(batch)
        if left[0] <= 0:
            stop.set()

    work = Watch(gateway, wake={"ResourceSlice": wake})
    thread = threading.Thread(target=watch, args=(work, stop))
    thread.start()
    thread.join(120)
    stop.set()
    if left[0] > 0 or Sync.objects.get(kind="ResourceSlice").listed_at != listed_at:
        return None
    return moments[-1] - moments[0]


def latencies(gateway: Gateway, refs: list[Ref], *, at: float) -> list[float]:
    """Seconds from before each write to its row being stored and told, at so many a second."""
    stop = threading.Event()
    seconds: list[float] = []

    def wake(changes: Sequence[Changed]) -> None:
        now = time.time()
        rows = Observed.objects.filter(uid__in=[change.uid for change in changes])
        for row in rows:
            seconds.append(now - float(row.obj["metadata"]["annotations"]["bench/at"]))

    work = Watch(gateway, wake={"ResourceClaim": wake})
    thread = threading.Thread(target=watch, args=(work, stop))
    thread.start()
    time.sleep(5)
    touch(gateway, refs, at=at)
    time.sleep(2)
    stop.set()
    thread.join(10)
    return seconds


def p95(values: list[float]) -> float:
    return statistics.quantiles(values, n=20)[-1]
