"""A short chaos over the journeys' demo; the long one is `make chaos`."""

from __future__ import annotations

import os
from random import Random

import pytest

from tests.chaos.breaking import Breaker
from tests.chaos.story import Story
from tests.journeys.conftest import Demo

pytestmark = [pytest.mark.cluster, pytest.mark.browser]

REQUESTS = 16


def test_nothing_is_lost_or_made_twice_while_things_break(demo: Demo) -> None:
    seed = int(os.environ.get("BERTH_CHAOS_SEED", Random().randrange(10**6)))
    breaker = Breaker(demo, Random(seed), pause=1.5)
    story = Story(demo, seed, REQUESTS)
    story.hold(breaker)
    # The tenant's limits are shared with the other journeys.
    assert len(story.accepted) > REQUESTS / 2, story.refused
