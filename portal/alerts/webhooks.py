"""A message as Standard Webhooks has it: what it says, how it is signed, how it is sent.

https://www.standardwebhooks.com: `webhook-id` is the same in all attempts, `webhook-signature`
holds one signature for each secret that is still accepted.
"""

from __future__ import annotations

import base64
import json
import secrets
import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Any

import urllib3
from standardwebhooks.webhooks import Webhook

from portal.alerts.guard import Network, Target, target

SECONDS = 10.0
#: So much of an answer is kept, for the delivery's page.
LONGEST_ANSWER = 300


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back. `gone`: the receiver wants no more messages at all (410)."""

    arrived: bool
    text: str
    gone: bool = False


def new_secret() -> str:
    """A signing key of 32 random bytes, in the spelling that verifiers know."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def body(kind: str, at: datetime, data: Mapping[str, Any]) -> str:
    """The message's text: type, timestamp, data."""
    return json.dumps({"type": kind, "timestamp": at.isoformat(), "data": data})


def headers(message_id: str, text: str, keys: Iterable[str], now: datetime) -> dict[str, str]:
    """The headers of one attempt at `now` (UTC)."""
    signed = [Webhook(key).sign(message_id, now, text) for key in keys]
    return {
        "content-type": "application/json",
        "user-agent": "Berth",
        "webhook-id": message_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(signed),
    }


def send(url: str, text: str, head: Mapping[str, str], allowed: Iterable[Network]) -> Answer:
    """One attempt; what goes wrong on the way is an answer too. Raises `guard.Unfit`."""
    status, said = fetch("POST", url, allowed, text, head, longest=LONGEST_ANSWER)
    said = said.strip()[:LONGEST_ANSWER]
    if status is None:
        return Answer(False, said)
    answer = f"{status} {said}".strip()[:LONGEST_ANSWER]
    return Answer(200 <= status < 300, answer, gone=status == 410)


def fetch(
    method: str,
    url: str,
    allowed: Iterable[Network],
    text: str = "",
    head: Mapping[str, str] | None = None,
    *,
    seconds: float = SECONDS,
    longest: int,
) -> tuple[int | None, str]:
    """Status and the first `longest` bytes of an answer; None and why where there was none in time.
    Redirects are not followed: they could lead inside. Raises `guard.Unfit`.
    """
    place = target(url, allowed)
    end = monotonic() + seconds
    try:
        with _pool(place) as pool:
            response = pool.request(
                method,
                place.path,
                body=text.encode() if text else None,
                headers={**(head or {}), "host": _host(place)},
                redirect=False,
                retries=False,
                preload_content=False,
                timeout=seconds,
            )
            said = b""
            # A byte now and then would keep a plain read waiting for ever.
            while len(said) < longest and (part := response.read1(longest - len(said))):
                said += part
                if monotonic() > end:
                    response.close()
                    return None, f"TimeoutError: the answer took longer than {seconds:g} seconds"
            response.close()
    except (urllib3.exceptions.HTTPError, OSError) as error:
        return None, f"{type(error).__name__}: {error}"
    return response.status, said.decode(errors="replace")


def _pool(place: Target) -> urllib3.HTTPConnectionPool:
    if not place.secure:
        return urllib3.HTTPConnectionPool(place.address, place.port)
    return urllib3.HTTPSConnectionPool(
        place.address,
        place.port,
        ssl_context=ssl.create_default_context(),
        server_hostname=place.host,
        assert_hostname=place.host,
    )


def _host(place: Target) -> str:
    name = f"[{place.host}]" if ":" in place.host else place.host
    usual = 443 if place.secure else 80
    return name if place.port == usual else f"{name}:{place.port}"
