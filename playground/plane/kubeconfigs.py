"""Kubeconfig files: one identity each, self-contained, readable by their owner only."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import yaml

from playground.plane.certificates import Pair, write_private


def write(
    path: Path,
    *,
    server: str,
    ca_file: Path,
    user: str,
    client: Pair | None = None,
    token: str = "",
    namespace: str = "default",
) -> Path:
    """Writes a kubeconfig for a client certificate or a token, the CA inside; returns `path`."""
    identity: dict[str, str] = {}
    if client is not None:
        identity["client-certificate-data"] = _base64(client.certificate)
        identity["client-key-data"] = _base64(client.key)
    if token:
        identity["token"] = token
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "playground",
        "clusters": [
            {
                "name": "playground",
                "cluster": {"server": server, "certificate-authority-data": _base64(ca_file)},
            }
        ],
        "users": [{"name": user, "user": identity}],
        "contexts": [
            {
                "name": "playground",
                "context": {"cluster": "playground", "user": user, "namespace": namespace},
            }
        ],
    }
    write_private(path, yaml.safe_dump(content, sort_keys=False).encode())
    return path


def file_name(user: str, *rest: str) -> str:
    """A file name for an identity: readable, and different for different identities.

    >>> file_name("system:node:n1", "system:nodes")
    'system-node-n1-2a8ff4b3'
    """
    digest = hashlib.sha256("\0".join((user, *rest)).encode()).hexdigest()[:8]
    return f"{re.sub(r'[^A-Za-z0-9.]+', '-', user)[:60]}-{digest}"


def move(folder: Path, old: str, new: str) -> None:
    """Gives every kubeconfig in `folder` that pointed to `old` the address `new`."""
    for path in folder.glob("*.kubeconfig"):
        content = yaml.safe_load(path.read_bytes())
        cluster = content["clusters"][0]["cluster"]
        if cluster["server"] == old:
            cluster["server"] = new
            write_private(path, yaml.safe_dump(content, sort_keys=False).encode())


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
