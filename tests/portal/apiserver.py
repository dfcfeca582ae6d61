"""A Berth that serves: its own processes on a database of its own, with one of everything in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from django.db import connection
from psycopg import sql

from playground.running.ports import free_port

ROOT = Path(__file__).parents[2]
UP_WITHIN = 120.0


@dataclass(frozen=True, slots=True)
class Serving:
    """Where it answers, and the process, to be killed by whoever wants to see what comes of it."""

    address: str
    process: subprocess.Popen[bytes]


def address_of(name: str) -> str:
    """DATABASE_URL of another database of this run's server."""
    head, mark, rest = os.environ["DATABASE_URL"].partition("?")
    return f"{head.rpartition('/')[0]}/{name}{mark}{rest}"


@contextmanager
def a_database(name: str) -> Iterator[str]:
    """A copy of the test's empty database; yields its DATABASE_URL. Needs `django_db_setup`."""
    connection.close()
    connection.close_pool()
    template = connection.settings_dict["NAME"]
    with psycopg.connect(address_of("postgres"), autocommit=True) as server:
        made = sql.Identifier(name)
        server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(made))
        server.execute(
            sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(made, sql.Identifier(str(template)))
        )
        yield address_of(name)
        server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(made))


@contextmanager
def serving(database: str, **environ: str) -> Iterator[Serving]:
    """One web process, until the block ends; what it says goes to this process's own stderr."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", "portal.asgi:application", "--host", "127.0.0.1",
         "--port", str(port), "--log-level", "warning"],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": database, "DEBUG": "false", **environ},
        stdout=subprocess.DEVNULL,
    )  # fmt: skip
    address = f"http://127.0.0.1:{port}"
    try:
        end = time.monotonic() + UP_WITHIN
        while not _up(address):
            assert process.poll() is None, "the server ended before it answered"
            assert time.monotonic() < end, "the server does not answer"
            time.sleep(0.1)
        yield Serving(address, process)
    finally:
        process.terminate()
        process.wait(timeout=30)


def filled(database: str) -> dict[str, Any]:
    """Fills it with one of everything; returns the values of addresses, and tokens."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.portal.apiworld"],
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": database},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _up(address: str) -> bool:
    try:
        with urllib.request.urlopen(f"{address}/livez", timeout=2):
            return True
    except (OSError, urllib.error.URLError):
        return False
