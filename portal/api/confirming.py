"""Proof that a caller rehearsed a request: a signature over it that is good for ten minutes."""

from __future__ import annotations

from datetime import timedelta

from django.core.signing import BadSignature, TimestampSigner

GOOD_FOR = timedelta(minutes=10)


def confirmation(fingerprint: str) -> str:
    """What the answer to a dry run of this request carries."""
    return TimestampSigner(salt="berth.rehearsal").sign(fingerprint).removeprefix(fingerprint)[1:]


def confirmed(given: str, fingerprint: str) -> bool:
    """Whether `given` came with a dry run of the same request a short while ago."""
    try:
        TimestampSigner(salt="berth.rehearsal").unsign(f"{fingerprint}:{given}", max_age=GOOD_FOR)
    except BadSignature:
        return False
    return True
