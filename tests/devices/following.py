"""A watch process in a thread of the test, and whether the mirror equals the cluster."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from django.db import connections

from devices.cluster.gateway import Gateway, NotServed
from devices.mirror.kinds import MIRRORED
from devices.mirror.store import Changed
from devices.models import Observed, Sync
from devices.watching import Watch, watch

# Leases and Events come and go by themselves while two lists are compared.
RESTLESS = {"Lease", "Event"}


class Following:
    """What a running watch process told."""

    def __init__(self) -> None:
        self.changes: list[Changed] = []
        self.turns = 0
        self.well: bool | None = None

    def tell(self, changes: Sequence[Changed]) -> None:
        self.changes += changes

    def turned(self) -> None:
        self.turns += 1


@contextmanager
def following(gateway: Gateway, **options: Any) -> Iterator[Following]:
    """Runs a watch process until the block ends; it must end well, and within 5 s."""
    told = Following()
    stop = threading.Event()
    wake = {kind: told.tell for kind in MIRRORED}
    work = Watch(gateway, wake=wake, turned=told.turned, **options)

    def run() -> None:
        told.well = watch(work, stop)
        connections.close_all()

    thread = threading.Thread(target=run, name="watch process")
    thread.start()
    try:
        yield told
    finally:
        stop.set()
        thread.join(5)
    assert not thread.is_alive(), "the watch process did not end"
    assert told.well


def listed() -> bool:
    """Every kind was listed once, or is known not to be there."""
    rows = list(Sync.objects.all())
    return len(rows) == len(MIRRORED) and all(
        row.listed_at or not row.served or row.error for row in rows
    )


def of_cluster(gateway: Gateway) -> Counter[tuple[str, str, str]]:
    """(kind, uid, version) of everything that the mirror should have."""
    found: Counter[tuple[str, str, str]] = Counter()
    for mirrored in MIRRORED.values():
        if mirrored.kind in RESTLESS:
            continue
        try:
            listing = gateway.list(mirrored.kind, namespace=mirrored.namespace)
        except NotServed:
            continue
        for obj in listing.items:
            meta = obj["metadata"]
            found[mirrored.kind, meta["uid"], meta["resourceVersion"]] += 1
    return found


def of_mirror() -> Counter[tuple[str, str, str]]:
    rows = Observed.objects.exclude(kind__in=RESTLESS)
    return Counter(rows.values_list("kind", "uid", "resource_version"))


def same(gateway: Gateway, *, seconds: float = 30.0) -> None:
    """The mirror becomes equal to the cluster; fails with the difference otherwise."""
    end = time.monotonic() + seconds
    while (there := of_cluster(gateway)) != (here := of_mirror()):
        if time.monotonic() > end:
            raise AssertionError(f"missing: {there - here}, too much: {here - there}")
        time.sleep(0.1)


def until(seen: Callable[[], Any], *, seconds: float = 30.0, what: str = "it") -> Any:
    """What `seen` returns once it is true; fails after `seconds`."""
    end = time.monotonic() + seconds
    while not (found := seen()):
        assert time.monotonic() < end, f"not seen in time: {what}"
        time.sleep(0.05)
    return found
