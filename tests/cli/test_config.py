"""Whom the command line asks, and how it keeps a token."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from berthctl import config
from berthctl.config import Config
from berthctl.outcomes import USAGE, Failure

KEPT = Config("https://berth.example.com", "tidewater", "berth_kept")


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"BERTH_CONFIG": str(tmp_path / "berth" / "config.json")}


def test_flags_go_before_the_environment_and_that_before_the_file(
    environ: dict[str, str],
) -> None:
    config.write(config.path_of(environ), KEPT)
    assert config.read(environ) == KEPT
    environ |= {"BERTH_TENANT": "basalt", "BERTH_TOKEN": "berth_other"}
    assert config.read(environ, tenant="lagoon") == Config(KEPT.url, "lagoon", "berth_other")
    assert config.read(environ).tenant == "basalt"


def test_the_file_is_its_owners_alone(environ: dict[str, str]) -> None:
    path = config.path_of(environ)
    config.write(path, KEPT)
    config.write(path, KEPT)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == [path]


def test_a_file_that_others_read_is_refused(environ: dict[str, str]) -> None:
    path = config.path_of(environ)
    config.write(path, KEPT)
    path.chmod(0o644)
    with pytest.raises(Failure, match="Others can read") as caught:
        config.read(environ)
    assert caught.value.exit_code == USAGE
    assert "chmod 600" in caught.value.remedy


def test_a_file_that_is_no_configuration_is_named(environ: dict[str, str]) -> None:
    path = config.path_of(environ)
    config.write(path, KEPT)
    path.write_text("[")
    with pytest.raises(Failure, match="is no configuration"):
        config.read(environ)


def test_what_is_missing_is_named_with_what_to_do(environ: dict[str, str]) -> None:
    with pytest.raises(Failure, match="No url and no tenant and no token is known") as caught:
        config.read(environ)
    assert "berth login" in caught.value.remedy


@pytest.mark.parametrize(
    "url", ["http://berth.example.com", "ftp://berth.example.com", "berth.example.com", "https://"]
)
def test_a_token_goes_nowhere_in_the_clear(environ: dict[str, str], url: str) -> None:
    environ |= {"BERTH_URL": url, "BERTH_TENANT": "a", "BERTH_TOKEN": "b"}
    with pytest.raises(Failure, match="would show the token"):
        config.read(environ)


@pytest.mark.parametrize("url", ["http://localhost:8000", "http://127.0.0.1", "http://[::1]:8"])
def test_this_machine_may_be_asked_in_the_clear(environ: dict[str, str], url: str) -> None:
    environ |= {"BERTH_URL": url + "/", "BERTH_TENANT": "a", "BERTH_TOKEN": "b"}
    assert config.read(environ).url == url


def test_a_token_is_not_printed() -> None:
    assert "berth_kept" not in repr(KEPT)


def test_without_a_named_file_it_lies_in_the_users_configuration() -> None:
    assert config.path_of({"HOME": "/home/a"}) == Path("/home/a/.config/berth/config.json")
    assert config.path_of({"XDG_CONFIG_HOME": "/c"}) == Path("/c/berth/config.json")
