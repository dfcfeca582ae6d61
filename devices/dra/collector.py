"""Keeps Python's collector of cyclic garbage out of the way while much is made that is kept.

A snapshot of a large cluster and what is derived from it are a million values, and none of them is
part of a cycle: dropping the last reference frees them at once (a test holds that). Looking through
them for cycles finds nothing, and costs more than making them.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


def look_seldom() -> None:
    """The old objects of this process are looked through a hundred times less often from now on.

    For a process that keeps a large picture: one look through a million of its values stops every
    request for a second, and finds nothing. Young objects are looked through as before.
    """
    gc.set_threshold(*gc.get_threshold()[:2], 1000)


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """No collection within. What was made is counted among the old objects afterwards, as it would
    be after two collections: freezing and unfreezing moves it there without looking at it.

    May be nested, and entered by several threads; the collector is then back a little early.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.freeze()
            gc.unfreeze()
            gc.enable()
