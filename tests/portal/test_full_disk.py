"""PostgreSQL's disk is full: whoever asks is told to come again, and what was accepted is kept."""

from __future__ import annotations

import json
import os
import subprocess
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from playground.running.services import Services
from tests.portal.apiserver import filled, serving
from tests.portal.test_backup import Berth

pytestmark = pytest.mark.long

DISK = "200m"
CLAIMS = "/api/v1/tenants/tidewater/claims"
#: More asks than fit into what PostgreSQL has set aside.
MOST = 4_000


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own, small; mounting it takes root."""
    folder = tmp_path / "disk"
    folder.mkdir()
    size = ["-o", f"size={DISK}"]
    subprocess.run(["mount", "-t", "tmpfs", *size, "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@contextmanager
def full(disk: Path) -> Iterator[None]:
    """Nothing more fits on it."""
    waste = disk / "waste"
    with waste.open("wb", buffering=0) as file:
        for size in (1 << 20, 1 << 12):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    try:
        yield
    finally:
        waste.unlink()


class Caller:
    """A program with a token; `answers` counts its statuses and codes."""

    def __init__(self, address: str, token: str) -> None:
        self.address, self.token = address, token
        self.answers: Counter[tuple[int, str]] = Counter()

    def call(self, path: str, body: Any = None) -> int:
        request = urllib.request.Request(
            f"{self.address}{path}",
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                status, code = answer.status, ""
        except urllib.error.HTTPError as error:
            with error:
                status, code = error.code, json.load(error)["code"]
        self.answers[status, code] += 1
        return int(status)

    def note(self, number: int) -> int:
        """Writes something that takes room."""
        view = {"name": f"view {number}", "query": {"q": f"{number} " + "x" * 150}}
        return self.call("/api/v1/tenants/tidewater/views", view)


def test_what_was_accepted_is_kept_and_the_rest_is_told_to_come_again(disk: Path) -> None:
    services = Services(disk)
    services.start()
    services.wait()
    berth = Berth(services)
    berth.run("manage.py", "migrate")
    environ = {**services.env, "API_WRITES_A_MINUTE": "1000000", "API_READS_A_MINUTE": "1000000"}
    before = dict(os.environ)
    os.environ.update(services.env)
    try:
        token = filled(berth.url())["tokens"]["tenant"]
        with serving(berth.url(), **environ) as running:
            caller = Caller(running.address, token)
            assert caller.note(0) == 201
            number = 1
            with full(disk):
                while number < MOST and caller.note(number) == 201:
                    number += 1
                assert caller.answers.keys() - {(201, "")} == {(503, "DATABASE_AWAY")}
                for _ in range(20):
                    caller.call(CLAIMS)
            assert {status for status, _ in caller.answers} <= {200, 201, 503}, caller.answers
            if not services.running():
                services.start()
            end = time.monotonic() + 60
            while caller.note(MOST) != 201:
                assert time.monotonic() < end, caller.answers
                time.sleep(1)
    finally:
        os.environ.clear()
        os.environ.update(before)
        with psycopg.connect(berth.url()) as database:
            kept = database.execute("SELECT count(*) FROM devices_savedview").fetchone()
        services.stop()
    assert kept is not None and kept[0] >= caller.answers[201, ""]
