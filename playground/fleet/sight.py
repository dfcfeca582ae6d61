"""One shared view of the cluster for all simulated parts: a list and a watch per kind, held raw.

Real kubelets and drivers watch for themselves; a hundred of them in one process would be hundreds
of streams of the same news. So the fleet looks through one pair of eyes and *writes* with the
identity of each part.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence

from devices.cluster.decoding import loads
from devices.cluster.gateway import Change, ClusterError, Expired, Gateway, Obj, RawWatch

log = logging.getLogger(__name__)

Listener = Callable[[Obj, bool], None]
"""Called with the object as it is now, and whether it is gone."""

WATCH_SECONDS = 240
FIRST_PAUSE = 0.2
LAST_PAUSE = 2.0


def key_of(obj: Obj) -> tuple[str, str]:
    """Namespace ("" where cluster-scoped) and name."""
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


class Sight:
    """The objects of some kinds as last seen. Readers get the stored dicts: never change them."""

    def __init__(self, gateway: Gateway, kinds: Sequence[str]) -> None:
        self._gateway = gateway
        self._objects: dict[str, dict[tuple[str, str], Obj]] = {kind: {} for kind in kinds}
        self._listeners: dict[str, list[Listener]] = {kind: [] for kind in kinds}
        self._seen = {kind: threading.Event() for kind in kinds}
        self._stopping = threading.Event()
        self._streams: dict[str, RawWatch] = {}
        self._threads = [
            threading.Thread(target=self._follow, args=(kind,), name=f"sight-{kind}", daemon=True)
            for kind in kinds
        ]

    def listen(self, kind: str, listener: Listener) -> None:
        self._listeners[kind].append(listener)

    def start(self, timeout: float = 30.0) -> None:
        """Returns when every kind was listed once; TimeoutError where that takes too long."""
        for thread in self._threads:
            thread.start()
        for kind, seen in self._seen.items():
            if not seen.wait(timeout):
                raise TimeoutError(f"no list of {kind} within {timeout:.0f} s")

    def stop(self, timeout: float = 5.0) -> None:
        """Ends the watches, and returns when their threads are gone."""
        self._stopping.set()
        for stream in list(self._streams.values()):
            stream.close()
        for thread in self._threads:
            if thread.is_alive():
                thread.join(timeout)

    @property
    def alive(self) -> bool:
        """False once a bug has ended a watch: nothing is news any more."""
        return all(thread.is_alive() for thread in self._threads)

    def get(self, kind: str, name: str, namespace: str = "") -> Obj | None:
        return self._objects[kind].get((namespace, name))

    def objects(self, kind: str) -> list[Obj]:
        return list(self._objects[kind].values())

    def _follow(self, kind: str) -> None:
        pause = FIRST_PAUSE
        version = ""
        while not self._stopping.is_set():
            try:
                if not version:
                    version = self._list(kind)
                    self._seen[kind].set()
                stream = self._gateway.stream(kind, version, timeout_seconds=WATCH_SECONDS)
                self._streams[kind] = stream
                if self._stopping.is_set():
                    stream.close()
                for event in stream:
                    obj = loads(event.raw)
                    version = obj["metadata"]["resourceVersion"]
                    if event.change is not Change.BOOKMARK:
                        self._put(kind, obj, gone=event.change is Change.DELETED)
                    pause = FIRST_PAUSE
            except Expired:
                version = ""
            except ClusterError as error:
                log.debug("watch of %s: %s", kind, error.message)
                self._stopping.wait(pause)
                pause = min(LAST_PAUSE, pause * 2)

    def _list(self, kind: str) -> str:
        """Takes over a whole list; what it no longer contains is told as gone."""
        listing = self._gateway.list(kind)
        present = {key_of(obj) for obj in listing.items}
        for key, obj in list(self._objects[kind].items()):
            if key not in present:
                self._put(kind, obj, gone=True)
        for obj in listing.items:
            self._put(kind, obj, gone=False)
        return listing.version

    def _put(self, kind: str, obj: Obj, *, gone: bool) -> None:
        objects = self._objects[kind]
        key = key_of(obj)
        if gone:
            objects.pop(key, None)
        else:
            known = objects.get(key)
            if known is not None and (
                known["metadata"]["resourceVersion"] == obj["metadata"]["resourceVersion"]
            ):
                return
            objects[key] = obj
            if known is not None and known["metadata"]["uid"] != obj["metadata"]["uid"]:
                self._tell(kind, known, gone=True)  # replaced while nobody was looking
        self._tell(kind, obj, gone=gone)

    def _tell(self, kind: str, obj: Obj, *, gone: bool) -> None:
        for listener in self._listeners[kind]:
            listener(obj, gone)
