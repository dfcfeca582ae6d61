"""A demo of its own, which nobody else needs whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.journeys.conftest import Demo, start_demo, stop_demo


@pytest.fixture
def own_demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """Berth's way to the API server is one that can fail. Afterwards no process of it is left."""
    running = start_demo(tmp_path_factory.mktemp("chaos") / "demo", "--proxy")
    yield running
    stop_demo(running)
    left = of_folder(running.folder)
    assert not left, f"left behind: {left}"


def of_folder(folder: Path) -> list[str]:
    """Processes that were started for a demo in this folder and still run."""
    found = []
    for process in psutil.process_iter(["cmdline", "pid", "status"]):
        line = " ".join(process.info["cmdline"] or [])
        if str(folder) in line and process.info["status"] != psutil.STATUS_ZOMBIE:
            found.append(f"{process.info['pid']} {line[:160]}")
    return found
