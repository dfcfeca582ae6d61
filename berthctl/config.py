"""Which Berth, which tenant, with which token: from flags, then the environment, then a file.

The file has the token, so only its owner may read it; one that others can read is refused.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from berthctl.outcomes import USAGE, Failure

LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Config:
    """Where to ask and as whom. `token` is never printed."""

    url: str
    tenant: str
    token: str

    def __repr__(self) -> str:
        return f"Config(url={self.url!r}, tenant={self.tenant!r})"


def path_of(environ: Mapping[str, str]) -> Path:
    """$BERTH_CONFIG, else berth/config.json below the user's configuration folder."""
    if named := environ.get("BERTH_CONFIG"):
        return Path(named)
    home = environ.get("XDG_CONFIG_HOME") or str(Path(environ.get("HOME", "~")) / ".config")
    return Path(home).expanduser() / "berth" / "config.json"


def read(
    environ: Mapping[str, str], *, url: str = "", tenant: str = "", whole: bool = True
) -> Config:
    """The configuration in force; raises `Failure` for what is missing where `whole` is wanted."""
    path = path_of(environ)
    kept = _kept(path)
    found = Config(
        url=(url or environ.get("BERTH_URL") or kept.get("url", "")).rstrip("/"),
        tenant=tenant or environ.get("BERTH_TENANT") or kept.get("tenant", ""),
        token=environ.get("BERTH_TOKEN") or kept.get("token", ""),
    )
    if not whole:
        return found
    missing = [name for name in ("url", "tenant", "token") if not getattr(found, name)]
    if missing:
        raise Failure(
            f"No {' and no '.join(missing)} is known.",
            "berth login, or set BERTH_URL, BERTH_TENANT and BERTH_TOKEN",
            exit_code=USAGE,
        )
    check_url(found.url)
    return found


def check_url(url: str) -> None:
    """Raises `Failure` for an address over which a token could be read."""
    parts = urlsplit(url)
    if parts.scheme == "https" and parts.hostname:
        return
    if parts.scheme == "http" and parts.hostname in LOOPBACK:
        return
    raise Failure(
        f"{url or 'An empty address'} would show the token to everybody on the way.",
        "Use an https:// address.",
        exit_code=USAGE,
    )


def write(path: Path, config: Config) -> None:
    """Keeps it in a file that is its owner's alone from its first byte on."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    beside = path.with_suffix(".new")
    beside.unlink(missing_ok=True)
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w") as file:
        text = {"url": config.url, "tenant": config.tenant, "token": config.token}
        json.dump(text, file, indent=2)
    beside.replace(path)


def _kept(path: Path) -> dict[str, str]:
    try:
        mode = path.stat().st_mode
        text = path.read_text()
    except FileNotFoundError:
        return {}
    if stat.S_IMODE(mode) & 0o077:
        raise Failure(
            f"Others can read {path}, and the token is in it.",
            f"chmod 600 {path}, and make a new token if somebody may have read it",
            exit_code=USAGE,
        )
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise Failure(f"{path} is no configuration.", "berth login", exit_code=USAGE)
    return {str(name): str(value) for name, value in found.items()}
