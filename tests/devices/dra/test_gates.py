"""Feature gates: by release, read or assumed, and as people write them."""

from __future__ import annotations

import pytest

from devices.dra.gates import ON_BY_DEFAULT, RELEASES, SINCE, GateError, Gates, gates, parse


def test_what_is_on_by_default_grows_with_the_releases():
    taints = [release for release in RELEASES if "DRADeviceTaints" in gates(release)]
    rules = [release for release in RELEASES if "DRADeviceTaintRules" in gates(release)]
    assert (taints, rules) == (["1.36", "1.37"], ["1.37"])
    assert "DRAListTypeAttributes" not in gates("1.37")


def test_a_gate_never_is_on_before_its_release():
    for release in RELEASES:
        for gate in gates(release, every=True).on:
            assert SINCE.get(gate, RELEASES[0]) <= release


def test_settings_that_were_read_are_told_from_what_is_assumed():
    known = gates("1.37", {"DRADeviceTaints": False}, read=True)
    assert "DRADeviceTaints" not in known
    assert set(known.assumed) == ON_BY_DEFAULT.keys() - {"DRADeviceTaints"}
    assert "DRADeviceTaints" in gates("1.37", {"DRADeviceTaints": False}).assumed


def test_binding_conditions_need_two_gates():
    assert gates("1.37").binding
    assert not gates("1.37", {"DRAResourceClaimDeviceStatus": False}).binding


@pytest.mark.parametrize("text", ["v1.37.2", "1.37", "1.37.2"])
def test_a_release_may_be_written_in_full(text):
    assert gates(text) == Gates()


@pytest.mark.parametrize(
    "text, on, off",
    [
        ("default", "DRADeviceTaints", "DRAListTypeAttributes"),
        ("all", "DRAListTypeAttributes", None),
        ("all,DRADeviceTaints=false", "DRAListTypeAttributes", "DRADeviceTaints"),
        ("default,DRAListTypeAttributes=true", "DRAListTypeAttributes", "DRADerivedAttributes"),
        ("DRAListTypeAttributes=true", "DRAListTypeAttributes", "DRADerivedAttributes"),
        ("", "DRADeviceTaints", "DRAListTypeAttributes"),
    ],
)
def test_gates_as_people_write_them(text, on, off):
    found = parse(text)
    assert on in found
    assert off not in found


@pytest.mark.parametrize(
    "text, release, why",
    [
        ("some", "1.37", "default or all"),
        ("all,DRANope=true", "1.37", "DRANope"),
        ("all,DRADeviceTaints=maybe", "1.37", "Name=true"),
        ("default,DRADerivedAttributes=true", "1.36", "does not exist before 1.37"),
        ("default", "1.20", "1.20"),
    ],
)
def test_what_cannot_be_is_said(text, release, why):
    with pytest.raises(GateError, match=why):
        parse(text, release)
