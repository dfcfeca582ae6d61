"""Control planes for tests: one per release and test run, started when first asked for.

`tests/conftest.py` imports the fixtures. A test that breaks its control plane (stops parts,
compacts history) makes one of its own instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from playground.building.releases import binary_path, known_release
from playground.plane.controlplane import ControlPlane
from tests.playground import resting
from tests.playground.resting import NEWEST, OLDER

RELEASES = [
    pytest.param(NEWEST, marks=pytest.mark.cluster, id=NEWEST),
    pytest.param(OLDER, marks=pytest.mark.cluster136, id=OLDER),
]
StartPlane = Callable[[str], ControlPlane]


def built(release: str) -> str:
    """The release, if its program is there; else the test fails and says how to get it."""
    if not binary_path(release).exists():
        pytest.fail(
            f"The control plane {release} is not built yet: "
            f"run `python -m playground build --release {release}` (5 minutes).",
            pytrace=False,
        )
    return known_release(release)


@pytest.fixture(scope="session")
def start_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartPlane]:
    """`start_plane(release)`: the run's control plane of that release, ready to use."""

    def start(release: str) -> ControlPlane:
        release = built(release)
        if release not in resting.planes:
            folder: Path = tmp_path_factory.mktemp(f"plane-{release}")
            resting.planes[release] = ControlPlane(folder, release).start(tied=True)
        return resting.planes[release]

    yield start
    for release in {NEWEST, OLDER} & resting.planes.keys():
        resting.planes.pop(release).stop()


@pytest.fixture(scope="session", params=RELEASES)
def plane(request: pytest.FixtureRequest, start_plane: StartPlane) -> ControlPlane:
    """The run's control plane, once for each supported release."""
    return start_plane(request.param)


@pytest.fixture(scope="session")
def plane_137(start_plane: StartPlane) -> ControlPlane:
    """The run's control plane of the newest release."""
    return start_plane(NEWEST)


@pytest.fixture(scope="session")
def plane_136(start_plane: StartPlane) -> ControlPlane:
    """The run's control plane of the release with the older node-allocatable shape."""
    return start_plane(OLDER)
