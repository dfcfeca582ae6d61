"""A pytest plugin: every run has its own PostgreSQL and Valkey, started when the first test asks.

Loaded with `-p tests.servers`, because Django's settings are read before any conftest.py. Where
`DATABASE_URL` is set already (a developer's own servers), those are used and nothing is started.
Each worker of xdist has servers of its own: what Valkey publishes reaches all of its databases.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from playground.running.processes import look_up
from playground.running.services import Services
from playground.running.supervisor import clear_leftovers

os.environ.setdefault("SECRET_KEY", "only-for-tests-" + "x" * 50)
os.environ.setdefault("HTTPS", "false")
os.environ.setdefault("STATIC_FROM_SOURCE", "true")

_services: Services | None = None
_own_folder: Path | None = None
_started = False


def _forget_killed_runs() -> None:
    """Removes what runs left that were killed; each folder's name has the number of its run."""
    for folder in Path(tempfile.gettempdir()).glob("berth-tests-*"):
        number = folder.name.split("-")[2]
        ours = folder.stat().st_uid == os.geteuid()
        if ours and number.isdecimal() and look_up(int(number)) is None:
            clear_leftovers(folder)
            shutil.rmtree(folder, ignore_errors=True)


# Workers inherit the first process's environment: its addresses are not theirs.
OURS = "BERTH_TESTS_MADE_THE_ADDRESSES"
if "DATABASE_URL" not in os.environ or OURS in os.environ:
    _forget_killed_runs()
    _own_folder = Path(tempfile.mkdtemp(prefix=f"berth-tests-{os.getpid()}-"))
    _services = Services(_own_folder, durable=False)
    os.environ.update(_services.env)
    os.environ[OURS] = "yes"


def _start() -> None:
    global _started
    if _services is not None and not _started:
        _services.start()
        _started = True


@pytest.fixture(scope="session")
def servers() -> Iterator[None]:
    """PostgreSQL and Valkey answer at the addresses of the settings."""
    _start()
    yield


def pytest_unconfigure(config: pytest.Config) -> None:
    if _started and _services is not None:
        _services.stop()
    if _own_folder is not None:
        shutil.rmtree(_own_folder, ignore_errors=True)
