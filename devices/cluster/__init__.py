"""The one door to Kubernetes: `connect()` gives a Gateway, everything else asks it for dicts."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from devices.cluster.apiserver import ApiServer
from devices.cluster.gateway import Gateway


def connect(kubeconfig: Path | str | None = None, *, acting_as: str = "") -> Gateway:
    """The gateway of a kubeconfig; None or empty: $KUBECONFIG, else the Pod's own account.

    `acting_as` is another user as which everything is sent, where its rights are to count.
    Cheap to call for every task: connections are shared within a process, never over a fork.
    Connecting itself asks nothing; a file that is not there yet shows at the first request,
    as Unreachable.
    """
    path = str(kubeconfig or os.environ.get("KUBECONFIG", ""))
    return _connected(path, os.getpid(), acting_as)


@lru_cache(maxsize=64)
def _connected(kubeconfig: str, process: int, acting_as: str) -> Gateway:
    from devices.cluster.live import Transport  # 0.5 s and 50 MB: only those pay who connect

    return ApiServer(Transport(kubeconfig, acting_as=acting_as))
