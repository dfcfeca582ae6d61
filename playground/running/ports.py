"""Free ports on loopback, chosen so that they are still free after a restart."""

from __future__ import annotations

import random
import socket
from collections.abc import Collection, Mapping, Sequence

from playground.errors import PlaygroundError

# Below the range from which systems take ports for outgoing connections, so that a port is still
# free when a stopped control plane wants it back.
RANGE = range(20_000, 32_000)


def is_free(port: int) -> bool:
    """Whether a server can listen on 127.0.0.1 at that port now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Go's servers do
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def choose(
    names: Sequence[str], before: Mapping[str, int], ours: Collection[str]
) -> dict[str, int]:
    """A port for each name: the one it had `before` where that is free or still `ours`."""
    ports: dict[str, int] = {}
    for name in names:
        port = before.get(name, 0)
        if not port or not (name in ours or is_free(port)):
            port = free_port([*before.values(), *ports.values()])
        ports[name] = port
    return ports


def free_port(taken: Collection[int] = ()) -> int:
    """A random free port: two that start together rarely choose the same.

    Raises `PlaygroundError` where there is none.
    """
    for port in random.sample(RANGE, 200):
        if port not in taken and is_free(port):
            return port
    raise PlaygroundError(
        f"No free port on 127.0.0.1 between {RANGE.start} and {RANGE.stop}: end what holds them."
    )
