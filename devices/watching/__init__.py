"""The watch process without its command: lead by a database lease, follow every kind, pass news on.

Knows neither Celery nor the apps above: who is woken by what comes in as a table.
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from django.db import connection

from devices.cluster.gateway import Gateway
from devices.mirror import leadership
from devices.mirror.kinds import MIRRORED, Mirrored
from devices.mirror.store import Store
from devices.watching.announcer import Announcer, Wake
from devices.watching.follower import Follower
from devices.watching.parts import DATABASE_AWAY, Part
from devices.watching.pulse import Pulse
from devices.watching.writer import Writer

# Kinds that may be listed at the same time: a first sync is bound by the writer, not by us.
LISTING_AT_ONCE = 2
SPARE_SECONDS = 1.0

log = logging.getLogger(__name__)

Value = TypeVar("Value")


def a_holder() -> str:
    """A name for this process that no other ever had."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"[:120]


@dataclass(frozen=True, slots=True)
class Watch:
    """What the watch process works with. `wake`: kind → who is told of its changes.

    `turned` is called when the cluster came or went, and when all of it was listed. `kinds`
    narrows what is followed; by default all that the mirror knows.
    """

    gateway: Gateway
    wake: Mapping[str, Wake] = field(default_factory=dict)
    turned: Callable[[], None] = lambda: None
    kinds: Sequence[Mirrored] = tuple(MIRRORED.values())
    holder: str = field(default_factory=a_holder)


def watch(work: Watch, stop: threading.Event, *, once: bool = False) -> bool:
    """Leads whenever it can, until `stop`; with `once`, until every kind was listed and stored.

    Returns False when a part of it ended by a bug, which has been logged then.
    """
    well = True
    spare = False
    while well and not stop.is_set():
        if not _try(lambda: leadership.take(work.holder)):
            if not spare:
                log.info("Another process leads; waiting")
            spare = True
            stop.wait(SPARE_SECONDS)
            continue
        spare = False
        well, done = _lead(work, stop, once=once)
        if done:
            break
    connection.close()
    return well


def _lead(work: Watch, stop: threading.Event, *, once: bool) -> tuple[bool, bool]:
    """One term. Returns (no part crashed, all was listed and `once` was asked for)."""
    log.info("Leading as %s", work.holder)
    over = threading.Event()
    store = Store(work.holder)
    followers: list[Follower] = []
    announcer = Announcer(work.wake, work.turned, over)
    writer = Writer(
        store,
        announcer.put,
        lambda: [f.kind for f in followers if f.open] if pulse.fresh else [],
        over,
    )
    pulse = Pulse(work.gateway, writer, lambda: announcer.put(()), over)
    parts: list[Part] = [_Renewal(work.holder, over), announcer, writer, pulse]
    for part in parts:
        part.start()
    done = listed = False
    try:
        while not (done or stop.is_set() or over.is_set()):
            if pulse.ready.is_set() and not followers:
                versions = {} if once else _try(store.versions)
                if versions is not None:
                    followers += _followers(work, versions, writer, over)
                    parts += followers
            if not listed and followers and all(f.listed.is_set() for f in followers):
                log.info("Every kind is listed")
                announcer.put(())
                listed, done = True, once
            stop.wait(0.1)
    finally:
        over.set()
        for follower in followers:
            follower.hang_up()
        writer.end(2.0)
        _try(lambda: leadership.give_up(work.holder))
    return not any(part.crashed for part in parts), done


def _followers(
    work: Watch, versions: Mapping[str, str], writer: Writer, over: threading.Event
) -> list[Follower]:
    listing = threading.Semaphore(LISTING_AT_ONCE)
    followers = [
        Follower(
            work.gateway,
            mirrored,
            writer,
            over,
            version=versions.get(mirrored.kind, ""),
            listing=listing,
        )
        for mirrored in work.kinds
    ]
    for follower in followers:
        follower.start()
    return followers


class _Renewal(Part):
    """Renews the lease; ends the term when it is lost, or could not be renewed in time."""

    def __init__(self, holder: str, stop: threading.Event):
        super().__init__("renewal", stop)
        self._holder = holder

    def work(self) -> None:
        renewed = time.monotonic()
        while not self.stop.wait(leadership.RENEW_SECONDS):
            held = _try(lambda: leadership.take(self._holder))
            if held:
                renewed = time.monotonic()
            elif held is False or time.monotonic() - renewed > leadership.LEASE_SECONDS:
                log.warning("The lease is lost")
                self.stop.set()


def _try(act: Callable[[], Value]) -> Value | None:
    """What the database says, or None where it does not answer, or no longer to us."""
    try:
        return act()
    except leadership.LeadershipLost:
        return None
    except DATABASE_AWAY as error:
        log.warning("The database does not answer: %s", error)
        connection.close()
        return None
