"""Asks the API server every few seconds whether it is well, and notes the answer for every page."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from devices.cluster.capabilities import read_capabilities
from devices.cluster.gateway import ClusterError, Gateway, Ref
from devices.mirror.store import Changed, Store
from devices.watching.parts import Part
from devices.watching.writer import Writer

PULSE_SECONDS = 5.0
AWAY_SECONDS = 1.0
# Features change with upgrades and restarts of the API server; both are seen as an absence, mostly.
CAPABILITIES_SECONDS = 600.0
# An answer older than this no longer proves that open watches are alive.
FRESH_SECONDS = 12.0

log = logging.getLogger(__name__)


class Pulse(Part):
    """`ready` is set when the cluster answered and the mirror is known to be of this cluster."""

    def __init__(
        self, gateway: Gateway, writer: Writer, turned: Callable[[], None], stop: threading.Event
    ):
        super().__init__("pulse", stop)
        self._turned = turned
        self.ready = threading.Event()
        self._gateway = gateway
        self._writer = writer
        self._answered = 0.0
        self._greeted = 0.0

    @property
    def fresh(self) -> bool:
        """True when the API server answered a moment ago."""
        return time.monotonic() - self._answered < FRESH_SECONDS

    def work(self) -> None:
        away = True
        while not self.stop.is_set():
            try:
                self._gateway.text("/readyz")
                if away or time.monotonic() - self._greeted > CAPABILITIES_SECONDS:
                    self._greet()
            except ClusterError as error:
                if not away:
                    log.warning("The API server does not answer: %s", error)
                away = True
                self._note(reachable=False, message=error.message)
                self.stop.wait(AWAY_SECONDS)
            else:
                away = False
                self._answered = time.monotonic()
                self._note(reachable=True, message="")
                self.stop.wait(PULSE_SECONDS)

    def _greet(self) -> None:
        """Who answers, and what it can do. Another cluster than before ends this term."""
        home = self._gateway.get(Ref("Namespace", "kube-system")) or {}
        identity = home.get("metadata", {}).get("uid", "")
        served = self._gateway.served()
        facts = [fact.as_json() for fact in read_capabilities(self._gateway, served)]
        self._greeted = time.monotonic()

        def greet(store: Store) -> list[Changed]:
            if store.is_another_cluster(identity):
                log.warning("Another cluster answers: everything is listed anew")
                store.begin_anew()
                if self.ready.is_set():
                    self.stop.set()
            store.cluster(identity=identity, release=served.release, capabilities=facts)
            self.ready.set()
            return []

        self._writer.put(greet)

    def _note(self, *, reachable: bool, message: str) -> None:
        def note(store: Store) -> list[Changed]:
            if store.cluster(reachable=reachable, message=message):
                self._turned()
            return []

        self._writer.put(note)
