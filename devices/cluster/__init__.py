"""The one door to Kubernetes: `connect()` gives a Gateway, everything else asks it for dicts."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

from devices.cluster.apiserver import ApiServer
from devices.cluster.gateway import Gateway


def connect(kubeconfig: Path | str | None = None) -> Gateway:
    """The gateway of a kubeconfig; None or empty: $KUBECONFIG, else the Pod's own account.

    Cheap to call for every task: connections are shared within a process, never over a fork.
    Connecting itself asks nothing; a file that is not there yet shows at the first request,
    as Unreachable.
    """
    return _connected(str(kubeconfig or os.environ.get("KUBECONFIG", "")), os.getpid())


@lru_cache(maxsize=64)
def _connected(kubeconfig: str, process: int) -> Gateway:
    from devices.cluster.live import Transport  # 0.5 s and 50 MB: only those pay who connect

    return ApiServer(Transport(kubeconfig))
