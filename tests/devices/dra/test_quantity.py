"""Quantities: Go's grammar, exact values, canonical form."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from kubernetes.utils import parse_quantity

from devices.dra.quantity import NANO, Quantity, QuantityError, parse, read


@pytest.mark.parametrize(
    "text, nanos, canonical",
    [
        pytest.param("0", 0, "0", id="zero"),
        pytest.param("80Gi", 80 * 2**30 * NANO, "80Gi", id="a binary suffix stays"),
        pytest.param("81559Mi", 81559 * 2**20 * NANO, "81559Mi", id="no larger suffix is exact"),
        pytest.param("1024Mi", 2**30 * NANO, "1Gi", id="the largest suffix that loses nothing"),
        pytest.param("1536Mi", 1536 * 2**20 * NANO, "1536Mi", id="1.5Gi is not written"),
        pytest.param("1.5Gi", 1536 * 2**20 * NANO, "1536Mi", id="a binary fraction becomes whole"),
        pytest.param("0.5Ki", 512 * NANO, "512", id="below 1Ki a binary number is written plain"),
        pytest.param("1k", 1000 * NANO, "1k", id="small k"),
        pytest.param("1000", 1000 * NANO, "1k", id="a plain thousand"),
        pytest.param("12e6", 12_000_000 * NANO, "12e6", id="an exponent stays an exponent"),
        pytest.param("1E", 10**18 * NANO, "1E", id="E alone is exa"),
        pytest.param("1500m", 1_500_000_000, "1500m", id="milli"),
        pytest.param("0.1n", 1, "1n", id="finer than a billionth rounds up"),
        pytest.param("-0.1n", -1, "-1n", id="and away from zero below it"),
        pytest.param("9Ei", (2**63 - 1) * NANO, "9223372036854775807", id="binary is capped"),
        pytest.param("999E", 999 * 10**18 * NANO, "999E", id="decimal is not"),
        pytest.param("+5", 5 * NANO, "5", id="a plus sign"),
        pytest.param(".5", NANO // 2, "500m", id="no digit before the point"),
        pytest.param("5.", 5 * NANO, "5", id="no digit after the point"),
        pytest.param("Ki", 0, "0", id="Go reads a bare unit as zero"),
        pytest.param("007", 7 * NANO, "7", id="leading zeros"),
    ],
)
def test_a_quantity_is_read_exactly_and_written_canonically(text, nanos, canonical):
    quantity = parse(text)
    assert quantity.nanos == nanos
    assert str(quantity) == canonical


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 5",
        "80GB",
        "1_000",
        "Infinity",
        "NaN",
        "1Ee5",
        "5mi",
        "1e",
        "--1",
        "1.2.3",
        "٣",
        "1e999999999",
    ],
)
def test_what_is_no_quantity_is_refused(text):
    with pytest.raises(QuantityError):
        parse(text)


def test_equality_and_order_go_by_value():
    assert parse("1Ki") == parse("1024") != parse("1k")
    assert parse("10G") == parse("9765625Ki")
    assert parse("80Gi") > parse("81559Mi")


def test_bare_json_numbers_are_read_as_the_api_server_reads_them():
    assert read(4) == parse("4")
    assert read(0.5) == parse("500m")
    assert read(" 4 ") == parse("4")
    for other in (True, None, ["4"]):
        with pytest.raises(QuantityError):
            read(other)


@pytest.mark.parametrize(
    "text, answer",
    [
        ("5", 5),
        ("5k", 5000),
        ("2Gi", 2**31),
        ("1000m", None),
        ("1.0", None),
        ("1.5Gi", None),
        ("9Ei", None),
    ],
)
def test_as_int64_answers_what_go_holds_as_an_integer(text, answer):
    assert parse(text).as_int64() == answer


numbers = st.builds(
    lambda sign, whole, decimals, suffix: f"{sign}{whole}{decimals}{suffix}",
    st.sampled_from(["", "-", "+"]),
    st.integers(0, 10**12).map(str),
    st.one_of(st.just(""), st.integers(0, 10**6).map(lambda d: f".{d}")),
    st.sampled_from(["", "m", "u", "n", "k", "M", "G", "T", "Ki", "Mi", "Gi", "e3", "E2", "e-2"]),
)


LARGEST = Decimal(2**63 - 1) * NANO


@given(numbers)
def test_values_agree_with_the_official_client_up_to_rounding(text):
    theirs = parse_quantity(text) * NANO
    assume(abs(theirs) <= LARGEST)  # beyond it Go stops, at times, and the client never
    ours = Decimal(parse(text).nanos)
    assert abs(ours) >= abs(theirs)
    assert abs(ours - theirs) < 1


@given(numbers)
def test_the_canonical_form_reads_back_to_the_same_value_and_form(text):
    quantity = parse(text)
    assert parse(str(quantity)) == quantity
    assert str(parse(str(quantity))) == str(quantity)


@given(numbers, numbers)
def test_sums_and_differences_are_exact(one, other):
    a, b = parse(one), parse(other)
    assert (a + b).nanos == a.nanos + b.nanos
    assert (a + b) - b == a
    assert (a < b) == (a.nanos < b.nanos)


@given(st.integers(-(2**70), 2**70))
def test_rounding_up_never_loses(nanos):
    value = Quantity(nanos)
    assert abs(value.rounded_up()) * NANO >= abs(nanos) > (abs(value.rounded_up()) - 1) * NANO
