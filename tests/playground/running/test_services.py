"""PostgreSQL and Valkey from wheels: private, restartable, nothing lost, nothing left behind."""

from __future__ import annotations

import getpass
import os
import shlex
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from playground.errors import PlaygroundError
from playground.running.services import LONGEST_SOCKET_FOLDER, Services
from playground.running.supervisor import records

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def services(tmp_path: Path) -> Iterator[Services]:
    """Not yet started, in a folder whose path has a space and is too long for a socket."""
    made = Services(tmp_path / "a long path" / ("x" * 90), durable=False)
    yield made
    made.stop()


def test_a_path_with_a_space_too_long_for_sockets_is_fine(services: Services) -> None:
    services.start()
    with psycopg.connect(services.database_url) as connection:
        row = connection.execute("select current_database(), lower('ÄGÄIS')").fetchone()
    assert row == ("berth", "ägäis"), "letters beyond ASCII are letters, whatever the locale"
    with redis.Redis.from_url(services.valkey_url) as valkey:
        assert valkey.ping()


def test_addresses_are_known_before_the_start_and_stay(services: Services) -> None:
    before = services.env
    services.start()
    services.stop()
    services.start()
    assert services.env == before


def test_a_killed_server_loses_nothing(services: Services) -> None:
    services.start()
    with psycopg.connect(services.database_url) as connection:
        connection.execute("create table kept as select 1 as n")
    with redis.Redis.from_url(services.valkey_url) as valkey:
        valkey.set("kept", "1")
    for record in records(services.folder):
        os.kill(record.pid, signal.SIGKILL)
    services.start()
    with psycopg.connect(services.database_url) as connection:
        assert connection.execute("select n from kept").fetchone() == (1,)
    with redis.Redis.from_url(services.valkey_url) as valkey:
        assert valkey.get("kept") == b"1"


def test_a_lock_file_with_the_number_of_some_other_program_is_no_obstacle(
    services: Services,
) -> None:
    services.start()
    lock = services.folder / "postgres" / "postmaster.pid"
    text = lock.read_text()
    services.stop()
    lock.write_text(text.replace(text.split("\n")[0], str(os.getpid()), 1))
    services.start()
    assert services.running()


def test_after_stop_no_process_and_no_socket_is_left(services: Services) -> None:
    services.start()
    pids = [p.pid for record in records(services.folder) for p in record.members()]
    backends = [c.pid for pid in pids for c in psutil.Process(pid).children(recursive=True)]
    sockets = Path(services.database_url.partition("host=")[2])
    assert len(sockets.as_posix()) <= LONGEST_SOCKET_FOLDER
    services.stop()
    left = [p for p in {*pids, *backends} if psutil.pid_exists(p)]
    assert all(psutil.Process(pid).status() == psutil.STATUS_ZOMBIE for pid in left)
    assert not sockets.exists()
    services.stop()  # and once more is fine


def test_nobody_else_gets_in(services: Services) -> None:
    services.start()
    sockets = Path(services.database_url.partition("host=")[2])
    assert sockets.stat().st_mode & 0o077 == 0
    postgres = next(r for r in records(services.folder) if r.name == "postgres")
    assert not psutil.Process(postgres.pid).net_connections("inet"), "PostgreSQL is on no port"
    with redis.Redis.from_url(services.valkey_url) as valkey:
        host = valkey.connection_pool.connection_kwargs["host"]
        port = valkey.connection_pool.connection_kwargs["port"]
    once = Retry(NoBackoff(), retries=0)
    stranger = redis.Redis(host=host, port=port, retry=once)
    with stranger, pytest.raises(redis.AuthenticationError):
        stranger.ping()


def test_a_port_that_somebody_took_is_given_up(services: Services) -> None:
    port = int(services.valkey_url.rpartition(":")[2].partition("/")[0])
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        services.start()
        assert f":{port}/" not in services.valkey_url
        with redis.Redis.from_url(services.valkey_url) as valkey:
            assert valkey.ping()


def test_two_pairs_run_side_by_side(services: Services, tmp_path: Path) -> None:
    services.start()
    with Services(tmp_path / "other", durable=False) as other:
        assert services.env.keys() == other.env.keys()
        assert not set(services.env.values()) & set(other.env.values())
        with psycopg.connect(other.database_url), psycopg.connect(services.database_url):
            pass


def test_no_folder_above_the_data_is_opened_to_others(services: Services) -> None:
    services.folder.mkdir(parents=True, mode=0o700)
    services.folder.parent.chmod(0o700)
    services.start()
    owner = "nobody" if os.geteuid() == 0 else getpass.getuser()
    assert (services.folder / "postgres").owner() == owner
    for folder in (services.folder, services.folder.parent):
        assert folder.stat().st_mode & 0o077 == 0


def test_a_folder_that_is_somebody_elses_is_refused(services: Services, tmp_path: Path) -> None:
    sockets = Path(services.database_url.partition("host=")[2])
    sockets.symlink_to(tmp_path)
    try:
        with pytest.raises(PlaygroundError, match="belongs to somebody else"):
            services.start()
    finally:
        sockets.unlink()


def test_sockets_are_kept_beside_the_data_where_the_path_allows_it() -> None:
    with tempfile.TemporaryDirectory(prefix="berth-tests-", dir="/tmp") as short:
        assert Services(Path(short)).database_url.endswith(f"host={Path(short).resolve()}/sockets")


def test_a_server_that_does_not_start_says_why(services: Services) -> None:
    services.start()
    services.stop()
    (services.folder / "postgres" / "global" / "pg_control").unlink()
    began = time.monotonic()
    with pytest.raises(PlaygroundError, match="postgres does not start") as refused:
        services.start()
    assert "pg_control" in str(refused.value)
    assert time.monotonic() - began < 5, "it does not wait for a server that is gone"


def services_command(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "playground", "services", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


def test_by_command_they_outlive_it_until_they_are_taken_down(tmp_path: Path) -> None:
    place = ("--folder", str(tmp_path / "kept"))
    assert "Nothing runs here" in services_command(*place, "env").stderr
    try:
        up = services_command(*place, "up")
        assert up.returncode == 0, up.stderr
        assert services_command(*place, "env").stdout == up.stdout
        url = shlex.split(up.stdout.splitlines()[0])[1].partition("=")[2]
        with psycopg.connect(url):
            pass
    finally:
        down = services_command(*place, "down")
    assert down.returncode == 0, down.stderr
    assert records(tmp_path / "kept") == []


def test_a_command_can_be_run_with_them(tmp_path: Path) -> None:
    place = ("--folder", str(tmp_path / "lent"))
    program = (
        "import os, sys; print(sorted(k for k in os.environ if k.endswith('_URL'))); sys.exit(7)"
    )
    ran = services_command(*place, "run", "--", sys.executable, "-c", program)
    assert ran.returncode == 7, "its exit code is passed on"
    assert "['DATABASE_URL', 'VALKEY_URL']" in ran.stdout
    assert records(tmp_path / "lent") == []
