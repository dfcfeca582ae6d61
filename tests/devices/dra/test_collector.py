"""A snapshot, and all that is derived from it, is freed at once when nobody holds it any more."""

from __future__ import annotations

import gc

from devices.dra.allocate import forecast
from devices.dra.capacity import capacity
from devices.dra.charges import charges, idle_charges
from devices.dra.collector import collector_at_rest
from devices.dra.drift import drift, labelled
from devices.dra.explain import explain
from devices.dra.hints import hints
from devices.dra.largest import largest
from devices.dra.leaks import leaks
from devices.dra.ledger import accounts
from devices.dra.makeroom import make_room
from devices.dra.offers import catalogue_counts
from devices.dra.ownership import ownership, same_hardware
from devices.dra.podverdict import pod_verdicts
from devices.dra.requests import Wish
from devices.dra.snapshot import Snapshot
from tests.devices.dra.cases import PATHS, snapshot


def everything(cluster: Snapshot) -> None:
    """Every question that there is."""
    for question in (
        capacity, charges, idle_charges, leaks, accounts, catalogue_counts, ownership, same_hardware
    ):  # fmt: skip
        question(cluster)
    drift(cluster, labelled(cluster))
    for name in cluster.classes:
        largest(cluster, name)
    for template in cluster.templates.values():
        wishes = [Wish(str(template.meta.name), template.spec)]
        forecast(cluster, wishes)
        hints(cluster, wishes, explain(cluster, wishes).forecast)
        make_room(cluster, wishes, 5)
    for pod in cluster.pods.values():
        list(pod_verdicts(cluster, pod))


def test_nothing_that_is_derived_holds_what_it_is_derived_from() -> None:
    for path in PATHS:  # what is kept for all snapshots, such as selectors, is made here
        everything(snapshot(path))
    gc.collect()
    with collector_at_rest():
        for path in PATHS:
            everything(snapshot(path))
        left = gc.collect()
    assert left == 0


def test_the_collector_is_as_before() -> None:
    assert gc.isenabled()
    with collector_at_rest(), collector_at_rest():
        assert not gc.isenabled()
    assert gc.isenabled()
