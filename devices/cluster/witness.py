"""Somebody may be told of every request to the API server; who that is, this floor never learns."""

from __future__ import annotations

from collections.abc import Callable

#: The method, the path, the status (0: no answer) and the seconds until the answer began.
Witness = Callable[[str, str, int, float], None]

_witnesses: list[Witness] = []


def call(witness: Witness) -> None:
    """From now on `witness` is told, in the thread that asks. It must be quick and never raise."""
    if witness not in _witnesses:
        _witnesses.append(witness)


def tell(method: str, path: str, status: int, seconds: float) -> None:
    for witness in _witnesses:
        witness(method, path, status, seconds)
