"""Who is told, when again, and which addresses are closed; tables without a database."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_address
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.alerts.guard import Unfit, judge, networks, shape, target
from portal.alerts.rules import (
    LONGEST_PAUSE,
    Match,
    Quiet,
    Severity,
    Told,
    fingerprint,
    pause,
    silenced,
)
from tests.factories import NOON

TOLD = Told("PREPARE_FAILED", "retryable", Severity.WARNING, "tidewater")


@pytest.mark.parametrize(
    ("match", "covered"),
    [
        pytest.param(Match(), True, id="an empty match means any alert"),
        pytest.param(Match(code="PREPARE_FAILED"), True, id="by its code"),
        pytest.param(Match(code="LEAKED"), False, id="another code is another alert"),
        pytest.param(Match(failure_class="retryable"), True, id="by the class of failure"),
        pytest.param(Match(tenant="tidewater"), True, id="by tenant"),
        pytest.param(Match(tenant="kelp"), False, id="another tenant's alerts are not meant"),
        pytest.param(Match(least=Severity.WARNING), True, id="as grave as asked"),
        pytest.param(Match(least=Severity.CRITICAL), False, id="less grave than asked"),
        pytest.param(Match(code="PREPARE_FAILED", tenant="kelp"), False, id="all of it must fit"),
    ],
)
def test_what_a_route_or_a_silence_covers(match: Match, covered: bool) -> None:
    assert match.covers(TOLD) is covered


def test_a_silence_ends_at_its_end() -> None:
    quiet = [Quiet(Match(), NOON)]
    assert silenced(TOLD, quiet, NOON - timedelta(seconds=1))
    assert not silenced(TOLD, quiet, NOON)


def test_the_same_of_the_same_has_one_fingerprint() -> None:
    one = fingerprint("LEAKED", "tidewater", "claim a")
    assert one == fingerprint("LEAKED", "tidewater", "claim a")
    others = {
        fingerprint("LEAKED", "tidewater", "claim b"),
        fingerprint("LEAKED", "kelp", "claim a"),
        fingerprint("STUCK", "tidewater", "claim a"),
        fingerprint("LEAKED", "tidewaterclaim", " a"),
    }
    assert one not in others and len(others) == 4


@given(attempts=st.integers(1, 40), chance=st.floats(0, 1))
def test_pauses_grow_to_four_hours_and_are_never_shorter_than_three_quarters(
    attempts: int, chance: float
) -> None:
    whole = pause(attempts, 0)
    assert whole * 0.75 <= pause(attempts, chance) <= whole <= LONGEST_PAUSE
    assert whole <= pause(attempts + 1, 0)


OPEN: Any = networks(["10.20.0.0/16", "fd00:20::/32"])


@pytest.mark.parametrize(
    ("address", "secure", "words"),
    [
        pytest.param("8.8.8.8", True, "", id="a public address over https is open"),
        pytest.param("8.8.8.8", False, "https", id="a public address over http is not"),
        pytest.param("127.0.0.1", True, "inside", id="this machine itself"),
        pytest.param("::1", True, "inside", id="this machine itself in IPv6"),
        pytest.param("10.1.2.3", True, "inside", id="a private network"),
        pytest.param("169.254.169.254", True, "inside", id="the cloud's metadata service"),
        pytest.param("fe80::1", True, "inside", id="a link-local address"),
        pytest.param("::ffff:127.0.0.1", True, "inside", id="loopback in IPv6's clothes"),
        pytest.param("100.64.0.1", True, "inside", id="a carrier's shared network"),
        pytest.param("224.0.0.1", True, "inside", id="a multicast group"),
        pytest.param("0.0.0.0", True, "inside", id="no address at all"),
        pytest.param("10.20.7.7", False, "", id="a network that the operator opened, plain too"),
        pytest.param("::ffff:10.20.7.7", True, "", id="the same in IPv6's clothes"),
        pytest.param("fd00:20::7", True, "", id="an opened network of IPv6"),
    ],
)
def test_which_addresses_are_closed(address: str, secure: bool, words: str) -> None:
    if not words:
        judge(ip_address(address), OPEN, secure=secure)
        return
    with pytest.raises(Unfit, match=words):
        judge(ip_address(address), OPEN, secure=secure)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        pytest.param("example.org/hook", "begins with https", id="no scheme"),
        pytest.param("ftp://example.org/", "begins with https", id="another scheme"),
        pytest.param("https:///hook", "begins with https", id="no host"),
        pytest.param("https://me:secret@example.org/", "name and password", id="a password in it"),
        pytest.param("https://example.org:port/", "no address", id="a port that is none"),
        pytest.param("https://example.org/#part", "#", id="a fragment"),
    ],
)
def test_addresses_that_are_none_say_what_would_be_right(url: str, words: str) -> None:
    with pytest.raises(Unfit, match=words):
        shape(url)


def test_a_name_that_leads_to_this_machine_is_closed() -> None:
    with pytest.raises(Unfit, match="inside a network"):
        target("https://localhost/hook", [])


def test_the_path_keeps_its_query() -> None:
    assert shape("https://example.org/a?b=c").path == "/a?b=c"
