"""One ground per release, on the run's own control planes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from playground.controlplane import ControlPlane
from tests.deploy.ground import Ground, grounds


@pytest.fixture(scope="module")
def ground(plane: ControlPlane) -> Iterator[Ground]:
    """Berth's rights and policies stand while the module's tests run, and are gone afterwards."""
    yield from grounds(plane)
