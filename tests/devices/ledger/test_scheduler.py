"""The ledger against the real kube-scheduler: what it says is left, and not one unit more, fits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from devices import cluster
from playground.plane.controlplane import ControlPlane
from tests.devices.ledger.settling import Place, run
from tests.playground.planes import NEWEST, OLDER, StartPlane


@pytest.fixture(scope="module")
def place(plane: ControlPlane) -> Iterator[Place]:
    made = Place(cluster.connect(plane.admin_kubeconfig), "ledger-short", plane.release, seed=11)
    made.build()
    yield made
    made.remove()


def test_what_the_ledger_says_fits_is_scheduled_and_one_unit_more_is_not(place, capsys) -> None:
    tally = run(place, pods=24, probes=5, every=8)
    assert (tally.misses, tally.differences) == ([], []), str(tally)


@pytest.mark.long
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("release", [NEWEST, OLDER])
@pytest.mark.parametrize("seed", [1, 2])
def test_of_three_hundred_pods(release, seed, start_plane: StartPlane, capsys) -> None:
    plane = start_plane(release)
    made = Place(cluster.connect(plane.admin_kubeconfig), f"ledger-{seed}", release, seed)
    made.build()
    try:
        tally = run(made, pods=300, probes=50, every=12)
    finally:
        made.remove()
    with capsys.disabled():
        print(f"\n{release}, seed {seed}: {tally}")
    assert (tally.misses, tally.differences) == ([], []), str(tally)
