"""Numbers, times and names as people read them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from portal.ui import words

NOON = datetime(2026, 11, 24, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "short", "exact"),
    [
        pytest.param(-3, "0 s", "0.0 s", id="a moment ahead of us is now"),
        pytest.param(0.42, "0 s", "0.4 s", id="tenths only where they are asked for"),
        pytest.param(18, "18 s", "18 s", id="seconds"),
        pytest.param(192, "3 min", "3 min 12 s", id="minutes"),
        pytest.param(3600, "1 h", "1 h", id="no rest is no second part"),
        pytest.param(7384, "2 h", "2 h 3 min", id="hours"),
        pytest.param(86400 * 1200, "1,200 d", "1,200 d", id="days have no end"),
    ],
)
def test_a_length_of_time(seconds: float, short: str, exact: str) -> None:
    assert words.in_words(words.span(seconds)) == short
    assert words.in_words(words.span(timedelta(seconds=seconds), exact=True)) == exact


def test_an_age_is_measured_from_now() -> None:
    assert words.since(NOON - timedelta(minutes=26, seconds=40), NOON) == "26 min"


@pytest.mark.parametrize(
    ("value", "said"),
    [
        pytest.param(None, "?", id="unknown is never zero"),
        pytest.param(0, "0", id="zero is zero"),
        pytest.param(40000, "40,000", id="thousands are grouped"),
        pytest.param(79.6, "79.6", id="no empty digits"),
        pytest.param(79.0, "79", id="no empty fraction"),
        pytest.param(Decimal("1024.50"), "1,024.5", id="exact numbers stay exact"),
    ],
)
def test_a_number(value: int | float | Decimal | None, said: str) -> None:
    assert words.number(value) == said


@pytest.mark.parametrize(
    ("name", "head", "tail"),
    [
        pytest.param("vision-pretrain-a-x7k2p", "vision-pretrain-a", "-x7k2p", id="generated end"),
        pytest.param("gpu-0.helios.example", "gpu-0.helios", ".example", id="after a dot"),
        pytest.param("x" * 40, "x" * 34, "x" * 6, id="no place to cut"),
    ],
)
def test_a_long_name_keeps_its_end(name: str, head: str, tail: str) -> None:
    assert words.halves(name) == (head, tail)


@pytest.mark.parametrize(
    ("count", "one", "many", "said"),
    [
        pytest.param(1, "device", "", "1 device", id="one"),
        pytest.param(0, "device", "", "0 devices", id="none"),
        pytest.param(2, "class", "classes", "2 classes", id="odd plural"),
        pytest.param(None, "node", "", "? nodes", id="unknown"),
    ],
)
def test_one_or_many(count: int | None, one: str, many: str, said: str) -> None:
    assert words.one_or_many(count, one, many) == said


@pytest.mark.parametrize(
    ("agent", "said"),
    [
        pytest.param(
            "Mozilla/5.0 (X11; Linux x86_64; rv:145.0) Gecko/20100101 Firefox/145.0",
            "Firefox on Linux",
            id="one name",
        ),
        pytest.param(
            "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/142.0 Safari/537.36 Edg/142.0",
            "Edge on Windows",
            id="the one that claims to be all",
        ),
        pytest.param(
            "Mozilla/5.0 (Linux; Android 16) Chrome/142.0", "Chrome on Android", id="Android first"
        ),
        pytest.param("curl/8.5.0", "curl/8.5.0", id="a program"),
        pytest.param("", "Unknown", id="nothing"),
    ],
)
def test_a_browser(agent: str, said: str) -> None:
    assert words.browser(agent) == said
