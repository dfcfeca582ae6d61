"""Every parser that reads what strangers write, against anything, for as long as one likes.

`make fuzz` gives each of them `FUZZ_SECONDS` (20 unless said otherwise). What may come out is a
value or the parser's own error; a crash or a hang fails, and is shown as small as it gets.
"""

from __future__ import annotations

import base64
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.dra import dump, quantity, selector, snapshot, sought
from devices.models import Claim
from devices.translation.translate import translate
from portal import keyset
from portal.errors import Invalid
from tests.devices.translation.manifests import TARGETS

pytestmark = [pytest.mark.long, pytest.mark.timeout(3600)]
SECONDS = float(os.environ.get("FUZZ_SECONDS", "20"))
#: One input may take so long; whoever sends it would wait for the answer.
SLOWEST = 20.0
ROOT = Path(__file__).parents[1]
MANIFESTS = sorted((ROOT / "devices" / "translation" / "manifests").rglob("*.yaml"))
CASES = sorted((ROOT / "cases").glob("*.yaml"))

AMOUNTS = st.one_of(
    st.text("0123456789.eE+-KMGTPEkmnui", max_size=40),
    st.text(max_size=40),
    st.from_regex(
        r"[+-]?\d{0,30}(\.\d{0,30})?([eE][+-]?\d{1,6}|[kMGTPE]i?|[num])?", fullmatch=True
    ),
)
WORDS = st.sampled_from(
    [
        "device", ".", "attributes", "capacity", "driver", "[", "]", "(", ")", '"a.example"', "&&",
        "||", "!", "==", "<", ">=", "in", "?", ":", "1", "-9223372036854775808", "1.5e300", "true",
        "null", "cel.bind(x,", "exists(x,", "matches('(a+)+$')", "quantity('1Gi')",
        "semver('1.0.0')", "size(", "{", "}", ",", "'", "\\", "\u0000", "\U0001f680",
        ".orValue(", "has(",
    ]
)  # fmt: skip
EXPRESSIONS = st.one_of(
    st.lists(WORDS, max_size=25).map("".join),
    st.lists(WORDS, max_size=25).map(" ".join),
    st.text(max_size=200),
)
JSON = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(2**70), 2**70),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=20),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=12), inner, max_size=4)
    ),
    max_leaves=25,
)
KINDS = st.sampled_from(
    [
        "ResourceSlice", "ResourceClaim", "ResourceClaimTemplate", "DeviceClass",
        "DeviceTaintRule", "Node", "Pod", "List", "",
    ]
)  # fmt: skip


@st.composite
def torn(draw: st.DrawFn, files: list[Path]) -> str:
    """A real file with a few places cut out, doubled or overwritten."""
    text = draw(st.sampled_from(files)).read_text()
    for _ in range(draw(st.integers(1, 6))):
        start = draw(st.integers(0, len(text)))
        end = min(len(text), start + draw(st.integers(0, 60)))
        put = draw(
            st.one_of(
                st.just(""),
                st.just(text[start:end] * 3),
                st.sampled_from(
                    ["\t", "\x00", "- ", ": ", "&a ", "*a", "---\n", "{", "[[", "!!", "'"]
                ),
                st.text(max_size=12),
            )
        )
        text = text[:start] + put + text[end:]
    return text


def objects_of(draw: Callable[[Any], Any]) -> list[dict[str, Any]]:
    found = draw(st.lists(st.fixed_dictionaries({"kind": KINDS, "metadata": JSON, "spec": JSON,
                                                 "status": JSON}), max_size=3))  # fmt: skip
    return list(found)


def keep_at(strategy: st.SearchStrategy[Any], act: Callable[[Any], object]) -> None:
    """Calls `act` with what the strategy draws until the time is over."""
    end = time.monotonic() + SECONDS
    rounds = 0

    @settings(
        max_examples=200,
        deadline=None,
        database=None,
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @given(strategy)
    def run(drawn: Any) -> None:
        if time.monotonic() > end and rounds:
            return
        began = time.monotonic()
        act(drawn)
        assert time.monotonic() - began < SLOWEST, "it takes too long"

    while time.monotonic() < end or not rounds:
        hypothesis.seed(rounds + time.time_ns())(run)()
        rounds += 1


def or_its_own_error(
    act: Callable[[Any], object], *errors: type[Exception]
) -> Callable[[Any], None]:
    def call(drawn: Any) -> None:
        try:
            act(drawn)
        except errors:
            return

    return call


def test_quantities():
    keep_at(AMOUNTS, or_its_own_error(quantity.parse, quantity.QuantityError))


def test_cel():
    keep_at(EXPRESSIONS, or_its_own_error(selector.compile_selector, selector.SelectorError))


def test_dumps_of_anything():
    keep_at(st.binary(max_size=2000), lambda content: dump.read_dump([("a.yaml", content)]))


def test_dumps_that_are_torn():
    keep_at(torn(CASES), lambda text: dump.read_dump([("a.yaml", text.encode("utf-8", "replace"))]))


def test_manifests_to_translate():
    keep_at(torn(MANIFESTS), lambda text: translate(text, TARGETS))


def test_manifests_that_are_no_manifests():
    keep_at(st.text(max_size=400), lambda text: translate(text, TARGETS))


def test_objects_of_the_cluster():
    @st.composite
    def drawn(draw: st.DrawFn) -> list[dict[str, Any]]:
        return objects_of(draw)

    keep_at(drawn(), snapshot.read)


def test_cursors():
    order = keyset.Order("name")
    written = st.one_of(
        st.text(max_size=80),
        JSON.map(lambda value: base64.urlsafe_b64encode(json.dumps(value).encode()).decode()),
        st.tuples(st.integers(-1, 2), st.sampled_from(["name", "pk"]), JSON, JSON).map(
            lambda parts: base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")
        ),
    )
    keep_at(written, or_its_own_error(lambda cursor: keyset._read(Claim, order, cursor), Invalid))


def test_searches():
    keep_at(st.one_of(st.text(max_size=120), AMOUNTS, EXPRESSIONS), sought.understood)
