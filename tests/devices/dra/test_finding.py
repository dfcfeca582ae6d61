"""Which groups of devices fit a search, in which order, and what is near where none does."""

from __future__ import annotations

import pytest

from devices.dra.finding import Candidate, find
from devices.dra.sought import understood

GPU = "gpu.example"


def card(number, name, memory, *, free=1, link="pcie", **more):
    return Candidate(
        (name, number),
        (name, "gpu"),
        {f"{GPU}/productName": name, f"{GPU}/interconnect": link},
        {f"{GPU}/memory": memory},
        f"{GPU}/{more.pop('make', name)}",
        free=free,
        **more,
    )


FLEET = (
    card(0, "H100", "81559Mi", link="nvlink", free=2, largest=2),
    card(1, "H200", "141Gi", link="nvlink", free=5, largest=4),
    card(2, "A100", "80Gi", free=0, largest=0),
    card(3, "A100 half", "40Gi", make="A100", partition=True),
    card(4, "A100 slice", "9728Mi", make="A100", partition=True),
    Candidate(
        ("port", 0),
        ("port", "nic"),
        {"nic.example/rdma": "true", "nic.example/gigabits": "400"},
        {"nic.example/bandwidth": "200G"},
    ),
    Candidate(("slow port", 0), ("slow port", "nic"), {"nic.example/rdma": "false"},
              {"nic.example/bandwidth": "25G"}),
    Candidate(("cores", 0), ("cores", "cpu"), {}, {"cpu.example/cores": "62"}, shareable=True),
    Candidate(("l40s", -1), ("l40s-48gb", "L40S, 48 GB", "gpu")),
)  # fmt: skip


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        pytest.param("80 GB NVLink", ["H100", "H200"], id="nearest first"),
        pytest.param("80 GiB", ["H100", "H200", "A100"], id="79.6 is enough; taken last"),
        pytest.param("141 GB", ["H200"], id="a large one"),
        pytest.param("half a GPU", ["A100 half"], id="a partition of that size"),
        pytest.param("half", ["A100 half", "cores"], id="a share will do too"),
        pytest.param("100 Gb RDMA", ["port"], id="what it has not is not found"),
        pytest.param("at most 40 GB gpu", ["A100 half", "A100 slice"], id="an upper bound"),
        pytest.param("48 GB", ["l40s", "H100", "H200", "A100"], id="an amount in a name"),
        pytest.param("2 gpu nvlink", ["H200", "H100"], id="so many at once, most free first"),
        pytest.param("3 gpu nvlink", ["H200"], id="more at once"),
        pytest.param("62 cores", ["cores"], id="cores"),
        pytest.param("gpu without nvlink 80 GB", ["A100"], id="without"),
        pytest.param("nic", ["port", "slow port"], id="a kind"),
    ],
)
def test_what_fits(typed, names):
    assert [found.key[0] for found in find(understood(typed), FLEET).fits] == names


@pytest.mark.parametrize(
    ("typed", "nearest", "lacks"),
    [
        pytest.param("200 GB NVLink", "H200", "141 GiB only", id="too little memory"),
        pytest.param("80 GB RDMA", "H100", "no RDMA", id="a word is missing"),
        pytest.param("8 H200", "H200", "4 at once now", id="too many at once"),
        pytest.param("400 Gb slow", "slow port", "25 Gb/s only", id="too slow"),
    ],
)
def test_what_is_near(typed, nearest, lacks):
    found = find(understood(typed), FLEET)
    assert not found.fits
    assert found.near[0].key[0] == nearest
    assert lacks in found.near[0].lacks


def test_what_has_nothing_in_common_is_not_near():
    assert find(understood("zeppelin"), FLEET).near == ()


def test_an_empty_search_finds_all():
    assert len(find(understood(""), FLEET).fits) == len(FLEET)
