"""Semantic versions: order, strictness, leniency."""

from __future__ import annotations

import pytest

from devices.dra.semver import Semver, SemverError, parse, parse_leniently


def test_versions_sort_as_the_standard_says():
    ordered = [
        "1.0.0-1",
        "1.0.0-2",
        "1.0.0-alpha",
        "1.0.0-alpha.1",
        "1.0.0-alpha.beta",
        "1.0.0-rc.1",
        "1.0.0",
        "1.9.0",
        "1.10.0",
        "9.10.0",
        "10.2.0",
    ]
    assert sorted(ordered[::-1], key=parse) == ordered


def test_build_metadata_never_counts():
    assert parse("1.0.0+build.5") == parse("1.0.0")
    assert str(parse("1.0.0-rc.1+build.5")) == "1.0.0-rc.1+build.5"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1.2",
        "1.2.3.4",
        "v1.2.3",
        "01.2.3",
        "1.2.3-",
        "1.2.3-01",
        "1.2.3+",
        "1.2.x",
        "1.2.99999999999999999999",
    ],
)
def test_what_is_no_version_is_refused(text):
    with pytest.raises(SemverError):
        parse(text)


@pytest.mark.parametrize(
    "text, version",
    [
        ("v550.54", Semver(550, 54, 0)),
        ("1", Semver(1, 0, 0)),
        ("01.02.03", Semver(1, 2, 3)),
        ("v1.2.3-rc.1", Semver(1, 2, 3, ("rc", 1))),
        ("0.0.0", Semver(0, 0, 0)),
    ],
)
def test_lenient_reading_fills_and_trims(text, version):
    assert parse_leniently(text) == version


@pytest.mark.parametrize("text", ["1.2-rc.1", "v", "x", "1..2"])
def test_lenient_reading_still_refuses(text):
    with pytest.raises(SemverError):
        parse_leniently(text)
