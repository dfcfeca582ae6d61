"""A watch counts whole lines only, however its bytes arrive."""

from __future__ import annotations

import json

import pytest

from devices.cluster.gateway import Unreachable
from devices.cluster.watch import LineWatch

LINES = b"".join(
    json.dumps({"type": "ADDED", "object": {"n": number}}).encode() + b"\n" for number in range(5)
)


def read(chunks):
    return [
        json.loads(event.raw)["n"]
        for event in LineWatch(iter(chunks), lambda: None, doing="watch Pod")
    ]


@pytest.mark.parametrize("size", [1, 7, 38, 39, 40, 1000])
def test_lines_are_found_in_chunks_of_any_size(size):
    assert read([LINES[at : at + size] for at in range(0, len(LINES), size)]) == [0, 1, 2, 3, 4]


def test_half_a_line_at_the_end_is_a_cut_and_the_lines_before_it_count():
    seen = []
    with pytest.raises(Unreachable, match="middle of a line"):
        for event in LineWatch(iter([LINES, b'{"type":"ADD']), lambda: None, doing="watch Pod"):
            seen.append(event)
    assert len(seen) == 5


def test_a_watch_that_we_closed_ends_without_an_error():
    hung_up = []

    def chunks():
        yield LINES
        raise Unreachable("closed")

    watch = LineWatch(chunks(), lambda: hung_up.append(True), doing="watch Pod")
    seen = []
    for event in watch:
        seen.append(event)
        watch.close()
    assert len(seen) == 5
    assert hung_up == [True]
