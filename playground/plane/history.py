"""Makes a control plane forget its past, so that watchers behind the present get 410."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from playground.errors import PlaygroundError
from playground.plane.components import Layout
from playground.plane.https import ask, words


def compact(layout: Layout, *, stop: Callable[[], None], start: Callable[[], None]) -> int:
    """Compacts etcd while the API server is stopped; returns the oldest resourceVersion left.

    Compacting alone is not enough: the API server's watch cache goes on serving what etcd has
    forgotten, so `stop` and `start` restart it (open watches end). One key is written in between;
    else a watcher that had seen everything would be at the newest version, not behind it.
    Raises `PlaygroundError` where etcd refuses.
    """
    stop()
    try:
        key = base64.b64encode(b"/berth-playground/compacted").decode()
        written = _ask_etcd(layout, "/v3/kv/put", {"key": key, "value": key})
        revision = int(written["header"]["revision"])
        _ask_etcd(layout, "/v3/kv/compaction", {"revision": str(revision), "physical": True})
    finally:
        start()
    return revision


def _ask_etcd(layout: Layout, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """etcd's JSON gateway; numbers of 64 bits are strings there."""
    answer = ask(
        layout.url("etcd") + path,
        ca_file=layout.identities.etcd_authority.certificate,
        client=layout.identities.etcd_client,
        method="POST",
        body=body,
        timeout=60,
    )
    if answer.status != 200:
        raise PlaygroundError(f"etcd refused {path}: {words(answer)}")
    return answer.json()
