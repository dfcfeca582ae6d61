"""One ground per release, on the run's own control planes, only while this folder's tests run."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from playground.plane.controlplane import ControlPlane
from tests.deploy.acts import denied
from tests.deploy.attempts import ATTEMPTS
from tests.deploy.ground import Ground, grounds


@pytest.fixture(scope="package")
def ground(plane: ControlPlane) -> Iterator[Ground]:
    """Berth's rights and policies stand while these tests run, and are gone afterwards: tests
    elsewhere write as administrators what the policies keep for Berth.
    """
    for ground in grounds(plane):
        in_effect(ground)
        yield ground


def in_effect(ground: Ground) -> None:
    """An API server takes up a policy a moment after it was written; who is late fails by name."""
    late, end = list(ATTEMPTS), time.monotonic() + 30
    while late and time.monotonic() < end:
        late = [one for one in late if f"Berth {one.code}:" not in denied(ground, one)]
