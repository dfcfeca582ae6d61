"""The ledger as a file: what was exported replays to the same sums, and a flipped bit is found."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from itertools import chain as joined

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.dra.ledgerfile import (
    Chain,
    FileLine,
    Header,
    encoded_header,
    file_line,
    first_difference,
    replay,
)
from devices.dra.ledgerlog import node_sums, zone_sums
from devices.dra.quantity import ZERO
from tests.devices.ledger.clusters import histories
from tests.devices.ledger.memory import Book


def exported(book: Book) -> list[bytes]:
    chain = Chain()
    lines = [
        chain.encoded(file_line(line, "2026-11-02T12:00:00Z", "someone")) for line in book.lines
    ]
    return [encoded_header(a_header(chain)), *lines]


def a_header(chain: Chain, opening: int = 0) -> Header:
    return Header(
        digest=chain.digest, lines=chain.lines, opening=opening, shape="1.37", cluster="c",
        release="v1.37.2", from_="", to="2026-11-02T12:00:00Z",
    )  # fmt: skip


@settings(max_examples=25, deadline=None)
@given(history=histories())
def test_a_file_replays_to_the_sums_of_the_log(history) -> None:
    book = Book()
    for cluster in history:
        book.look(cluster)
    done = replay(exported(book))
    assert (done.fault, done.lines, done.standing) == (None, len(book.lines), len(book.charges))
    sums = {place: amount for place, amount in node_sums(book.charges.values()).items() if amount}
    assert done.charged() == sums
    zones = {
        place: amount.nanos
        for place, amount in zone_sums(book.charges.values()).items()
        if amount is not None and amount != ZERO
    }
    assert {place: nanos for place, nanos in done.zones.items() if nanos} == zones


@settings(max_examples=40, deadline=None)
@given(history=histories(), data=st.data())
def test_the_first_line_with_a_flipped_bit_is_named(history, data) -> None:
    book = Book()
    for cluster in history:
        book.look(cluster)
    lines = exported(book)
    number = data.draw(st.integers(1, len(lines) - 1))
    place = data.draw(st.integers(0, len(lines[number]) - 2))
    flipped = bytearray(lines[number])
    flipped[place] ^= 1 << data.draw(st.integers(0, 6))
    found = replay([*lines[:number], bytes(flipped), *lines[number + 1 :]])
    assert found.fault is not None
    assert found.fault.line == number + 1
    different = first_difference(lines, [*lines[:number], bytes(flipped), *lines[number + 1 :]])
    assert different is not None and different.line == number + 1


def a_line(number: int, look: int = 1, **changes: object) -> FileLine:
    fields: dict[str, object] = {
        "id": number, "look": look, "at": "2026-11-02T12:00:00Z", "act": "charge", "ends": 0,
        "node": f"n{number % 50}", "rule": "request", "resource": "cpu", "amount": "250m",
        "payer": f"pod/ns/p{number}", "pod": f"ns/p{number}", "pod_uid": f"u{number}", "claim": "",
        "claim_uid": "", "device": None, "share": "", "container": "", "numa": None,
        "contained": False, "version": (0, 0, 0), "source": "Pod spec", "writer": "", "code": "",
    } | changes  # fmt: skip
    return FileLine(**fields)  # type: ignore[arg-type]


def a_long_file(pairs: int) -> Iterator[bytes]:
    """Pods that come and go, ten at a time: twice as many lines as pairs."""
    chain = Chain()
    for number in range(pairs):
        yield chain.encoded(a_line(number, 2 * number))
        yield chain.encoded(a_line(number, 2 * number + 1, act="release", ends=number))


@pytest.mark.parametrize(
    "change, why",
    [
        pytest.param(lambda lines: lines[:-1], "lines were exported", id="cut short"),
        pytest.param(lambda lines: [lines[0], *lines[2:]], "not the line", id="a line left out"),
        pytest.param(
            lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "not the line", id="swapped"
        ),
        pytest.param(lambda lines: [], "empty", id="empty"),
        pytest.param(
            lambda lines: [lines[0].replace(b'"schema":1', b'"schema":9'), *lines[1:]],
            "schema", id="of a later schema",
        ),
        pytest.param(lambda lines: [b"<html>", *lines[1:]], "cannot be read", id="another file"),
    ],
)  # fmt: skip
def test_a_file_that_is_not_whole_says_where(change, why) -> None:
    chain = Chain()
    lines = [chain.encoded(a_line(number)) for number in range(5)]
    found = replay(change([encoded_header(a_header(chain)), *lines]))
    assert found.fault is not None and why in found.fault.why


def test_a_line_that_is_repeated_counts_once_and_is_counted() -> None:
    chain = Chain()
    lines = [chain.encoded(a_line(1)), chain.encoded(a_line(1))]
    done = replay([encoded_header(a_header(chain)), *lines])
    assert (done.repeated, done.standing) == (1, 1)
    assert {place: str(amount) for place, amount in done.charged().items()} == {
        ("n1", "cpu"): "250m"
    }


def test_replaying_keeps_only_what_stands_in_memory() -> None:
    def peak(pairs: int) -> int:
        chain = Chain()
        for raw in a_long_file(pairs):
            chain.follow(raw.rstrip(b"\n")[:-44])
        tracemalloc.start()
        done = replay(joined([encoded_header(a_header(chain))], a_long_file(pairs)))
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert (done.fault, done.standing) == (None, 0)
        return most

    assert peak(6000) < 1.5 * peak(1500)
