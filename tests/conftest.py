"""Fixtures of the whole suite: a database of its own, control planes, golden files, people."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
from pytest_django import Settings

from tests.playground import resting
from tests.playground.planes import plane, plane_136, plane_137, start_plane
from tests.playground.realnode import (
    real_ground,
    real_node,
    real_nodes,
    real_plane,
    start_real_node,
)

__all__ = [
    "plane",
    "plane_136",
    "plane_137",
    "real_ground",
    "real_node",
    "real_nodes",
    "real_plane",
    "start_plane",
    "start_real_node",
]

ROOT = Path(__file__).parent.parent

# A slow machine is no failure, and what CI finds must be found again by whoever looks for it.
hypothesis.settings.register_profile("berth", deadline=None, derandomize="CI" in os.environ)
hypothesis.settings.load_profile("berth")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--write-golden", action="store_true", help="rewrite the golden files")


def pytest_collection_finish(session: pytest.Session) -> None:
    resting.note(session.items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Iterator[None]:
    resting.only_for(item)
    return (yield)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None, servers: None
) -> None:
    """Whoever uses the database has the run's own servers."""


@pytest.fixture(autouse=True)
def quick_passwords(settings: Settings) -> None:
    """Passwords of tests protect nobody; the real hash takes half a second each."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def nothing_warm() -> None:
    """Each test has a mirror of its own; what a process keeps of one must not reach the next."""
    from devices.forecasts.warm import forget

    forget()


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """`golden(path, text)`: the text equals the file, or becomes it with --write-golden."""

    def compare(path: str, text: str) -> None:
        file = ROOT / path
        if request.config.getoption("--write-golden"):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        assert file.exists(), f"{path} is missing: make golden, then read it"
        assert text == file.read_text(), f"{path} differs: make golden, then read the diff"

    return compare
