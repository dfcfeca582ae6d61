"""With the policies taken away every way round is open: what closes it is nothing else."""

from __future__ import annotations

import time

from tests.deploy.acts import denied
from tests.deploy.attempts import ATTEMPTS
from tests.deploy.ground import Ground


def test_without_the_policies_every_way_round_is_open(ground: Ground) -> None:
    """The last file of this folder: it takes the policies away."""
    ground.uninstall()
    closed, end = list(ATTEMPTS), time.monotonic() + 10
    while closed and time.monotonic() < end:
        closed = [one for one in closed if denied(ground, one)]
    assert closed == []
