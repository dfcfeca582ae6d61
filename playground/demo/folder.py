"""What a demo keeps in its folder: who runs it, its secret, what is prepared; and forgetting it."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from playground.demo.cluster import plane_folder
from playground.errors import PlaygroundError
from playground.plane.controlplane import ControlPlane
from playground.realnodes import nodes
from playground.running.supervisor import clear_leftovers, write_whole

ROOT = Path(__file__).resolve().parents[2]
# A demo that is asked to stop takes at most half of this.
STOPS_WITHIN = 20.0


@contextlib.contextmanager
def only_one(folder: Path, address: str) -> Iterator[None]:
    """One demo per folder at a time; the second one hears where the first is."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("a+") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise PlaygroundError(
                f"The demo of this folder runs already, at {_holder(lock).get('address')}:"
                " use that one, or stop it first with Ctrl-C where it was started."
            ) from None
        lock.truncate(0)
        lock.write(json.dumps({"pid": os.getpid(), "address": address}))
        lock.flush()
        yield


def _holder(lock: IO[str]) -> dict[str, object]:
    lock.seek(0)
    try:
        read = json.loads(lock.read())
    except ValueError:
        return {}
    return read if isinstance(read, dict) else {}


def reset(folder: Path, say: Callable[[str], None] = print) -> None:
    """Stops the demo of this folder where it runs, and removes everything it kept."""
    if not folder.exists():
        say("There is no demo data to forget.")
        return
    with (folder / "lock").open("a+") as lock:
        _take_over(lock)
        clear_leftovers(folder)
        plane = ControlPlane(plane_folder(folder))
        nodes.wipe(plane)
        plane.stop()
        for path in folder.iterdir():
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            elif path.name != "lock":
                path.unlink()
    (folder / "lock").unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        folder.rmdir()
    say("The demo's data is gone; the next `make demo` starts afresh.")


def _take_over(lock: IO[str]) -> None:
    """Gets the lock; a demo that holds it is asked to stop first."""
    patience = time.monotonic() + STOPS_WITHIN
    asked = False
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            pid = _holder(lock).get("pid")
            if not asked and isinstance(pid, int):
                os.kill(pid, signal.SIGTERM)
                asked = True
            if time.monotonic() > patience:
                raise PlaygroundError(
                    f"The running demo (process {pid}) does not stop: end it by Ctrl-C first."
                ) from None
            time.sleep(0.1)


def secret_key(folder: Path) -> str:
    """Made up once, so that nobody is signed out by a restart."""
    path = folder / "secret-key"
    if not path.exists():
        write_whole(path, secrets.token_urlsafe(50))
    return path.read_text()


class Prepared:
    """Remembers that the database has these tables and people, which takes seconds to find out.

    `people` is what `seeddemo` printed, or empty where tables and people have to be made first.
    """

    def __init__(self, folder: Path, address: str):
        self._path = folder / "prepared.json"
        self._for = [address, _digest()]
        self.people = ""
        with contextlib.suppress(FileNotFoundError, ValueError, KeyError, TypeError):
            last = json.loads(self._path.read_text())
            if last["for"] == self._for:
                self.people = str(last["people"])

    def remember(self, people: str) -> None:
        self.people = people
        write_whole(self._path, json.dumps({"for": self._for, "people": people}))


def _digest() -> str:
    """A name for all that tables and people are made from."""
    patterns = (
        "[!.]*/migrations/*.py",
        "[!.]*/[!.]*/migrations/*.py",
        "portal/management/**/*.py",
        "requirements.lock",  # other people's migrations
    )
    total = hashlib.sha256()
    for path in sorted({path for pattern in patterns for path in ROOT.glob(pattern)}):
        total.update(path.as_posix().encode() + b"\0" + path.read_bytes())
    return total.hexdigest()
