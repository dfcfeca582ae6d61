"""What is typed into the catalogue's search, and what is understood of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.dra.describe import Kind
from devices.dra.sought import MOST_TERMS, Count, Much, Part, Word, understood

GB, GBIT = 10**9, 10**9


@pytest.mark.parametrize(
    ("typed", "terms"),
    [
        pytest.param("80 GB NVLink", [Much(80 * GB, Kind.BYTES), Word("nvlink")], id="memory"),
        pytest.param("80GB, NVLink", [Much(80 * GB, Kind.BYTES), Word("nvlink")], id="no blank"),
        pytest.param("40 GiB", [Much(40 * 2**30, Kind.BYTES)], id="binary units"),
        pytest.param("1.5 TB", [Much(15 * 10**11, Kind.BYTES)], id="a decimal point"),
        pytest.param("1,5 TB", [Much(15 * 10**11, Kind.BYTES)], id="a decimal comma"),
        pytest.param("80 gigabytes", [Much(80 * GB, Kind.BYTES)], id="a unit in full"),
        pytest.param("10 gb", [Much(10 * GB, Kind.BYTES)], id="small letters are bytes"),
        pytest.param("100 Gb RDMA", [Much(100 * GBIT, Kind.RATE), Word("rdma")], id="bits"),
        pytest.param("100 gbps", [Much(100 * GBIT, Kind.RATE)], id="bits per second"),
        pytest.param("400Gb/s", [Much(400 * GBIT, Kind.RATE)], id="bits by a slash"),
        pytest.param("400 gigabit", [Much(400 * GBIT, Kind.RATE)], id="bits in full"),
        pytest.param("80G", [Much(80 * GB, None)], id="a unit that leaves it open"),
        pytest.param("at most 40 GB", [Much(40 * GB, Kind.BYTES, most=True)], id="an upper bound"),
        pytest.param("24 cores", [Much(24, Kind.NUMBER, "cores")], id="counted things"),
        pytest.param("half a GPU", [Part(0.5), Word("gpu")], id="half"),
        pytest.param("1/7 of an A100", [Part(understood("1/7").terms[0].of), Word("a100")],
                     id="a fraction"),
        pytest.param("50 %", [Part(0.5)], id="per cent"),
        pytest.param("0.5 GPU", [Part(0.5), Word("gpu")], id="less than one"),
        pytest.param("2 x A100", [Count(2), Word("a100")], id="times"),
        pytest.param("2 H100 with NVLink", [Count(2), Word("h100"), Word("nvlink")], id="several"),
        pytest.param("two gpus", [Count(2), Word("gpu")], id="a number in words"),
        pytest.param("a GPU", [Word("gpu")], id="one says nothing"),
        pytest.param("gpu without nvlink", [Word("gpu"), Word("nvlink", True)], id="without"),
        pytest.param("slice", [Word("mig")], id="another word for it"),
        pytest.param("a100-mig-1g", [Word("a100-mig-1g")], id="a class's name is one word"),
        pytest.param("3g.40gb", [Word("3g.40gb")], id="a profile is one word"),
        pytest.param("the of with", [], id="idle words"),
        pytest.param("", [], id="nothing"),
        pytest.param("0/0", [], id="no fraction"),
        pytest.param("<b>", [Word("<b>")], id="whatever is typed is text"),
    ],
)  # fmt: skip
def test_what_is_understood(typed, terms):
    assert list(understood(typed).terms) == terms


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        pytest.param("80 GB", "at least 80 GB of memory", id="memory"),
        pytest.param("100 Gb", "at least 100 Gb/s of bandwidth", id="bandwidth"),
        pytest.param("80G", "at least 80 G of memory or bandwidth", id="either"),
        pytest.param("max 40 GB", "at most 40 GB of memory", id="an upper bound"),
        pytest.param("24 cores", "at least 24 cores", id="cores"),
        pytest.param("half", "half of a device: a partition of that size, or a share", id="half"),
        pytest.param("4 GPUs", "4 at once on one node", id="several"),
        pytest.param("no rdma", "without “RDMA”", id="without"),
    ],
)
def test_it_says_what_it_understood(typed, words):
    assert understood(typed).words[0] == words


@given(st.text(max_size=400))
def test_nothing_that_is_typed_is_an_error(typed):
    found = understood(typed)
    assert len(found.terms) <= MOST_TERMS
    assert all(found.words)
