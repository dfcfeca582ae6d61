"""Making the environment: what a person reads when it does not work."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from playground import environment


@pytest.mark.parametrize(
    ("said", "sentence"),
    [
        pytest.param(
            "WARNING: Retrying (Retry(total=0)) after connection broken by"
            " 'NewConnectionError(…: Failed to establish a new connection)'\n"
            "ERROR: No matching distribution found for aiohttp==3.14.5",
            "for want of a network",
            id="no network is told from a package that does not exist",
        ),
        pytest.param(
            "ERROR: Could not install packages due to an OSError:"
            " [Errno 28] No space left on device\n",
            "The disk is full",
            id="a full disk",
        ),
        pytest.param(
            "ERROR: THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE.",
            "not the one the lock file names",
            id="a package that was exchanged",
        ),
        pytest.param(
            "Collecting x\nERROR: something new\n\n",
            "ERROR: something new",
            id="anything else is shown in pip's own words",
        ),
        pytest.param("", "it said nothing", id="silence"),
    ],
)
def test_why_packages_could_not_be_installed(said: str, sentence: str) -> None:
    assert sentence in environment._why_pip_failed(said)


def test_a_python_that_is_too_new_is_refused_before_anything_is_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(environment, "SUPPORTED", ((3, 8), (3, 9)))
    monkeypatch.setattr(environment, "VENV", tmp_path / "venv")
    assert "Berth needs Python 3.11, 3.12 or 3.13" in environment.install()
    assert not (tmp_path / "venv").exists()


def test_too_little_room_is_said_before_anything_is_made(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(environment, "BYTES_NEEDED", 10**18)
    monkeypatch.setattr(environment, "VENV", tmp_path / "venv")
    assert "MB are free" in environment._make_venv()
    assert not (tmp_path / "venv").exists()


def test_the_stamp_follows_the_lock_file(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    lock = tmp_path / "requirements.lock"
    monkeypatch.setattr(environment, "LOCK", lock)
    lock.write_text("a==1")
    before = environment._wanted()
    lock.write_text("a==2")
    assert environment._wanted() != before


def test_a_browser_that_is_named_and_missing_is_not_replaced(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("BERTH_CHROMIUM", str(tmp_path / "none"))
    assert "BERTH_CHROMIUM" in environment.chromium()


def test_a_named_browser_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_CHROMIUM", sys.executable)
    assert environment.chromium() == ""


def test_it_runs_on_a_python_without_packages() -> None:
    isolated = [sys.executable, "-I", "-S", environment.__file__, "nonsense"]
    said = subprocess.run(isolated, capture_output=True, text=True)
    assert said.returncode == 2
    assert said.stderr.startswith("usage")
