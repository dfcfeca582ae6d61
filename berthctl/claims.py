"""Finding a claim by what a person calls it, and waiting for it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from berthctl.outcomes import DONE, PERMANENT, RETRYABLE, Failure
from berthctl.service import Service

#: The server holds a call for so long; then it is asked again.
EACH = 50
CODES = {"ready": DONE, "retryable": RETRYABLE, "permanent": PERMANENT}


def found(service: Service, called: str) -> str:
    """The id of a claim that is called by its id, or by the name of an open one."""
    named = [one for one in service.every("claims", state="open", q=called, fields="id,name")
             if called in (one["id"], one["name"])]  # fmt: skip
    if len(named) == 1:
        return str(named[0]["id"])
    if named:
        ids = ", ".join(one["id"] for one in named)
        raise Failure(f"{len(named)} open claims are called {called}.", f"Name one by id: {ids}")
    if called.isascii() and called.replace("-", "").isalnum():
        try:
            return str(service.get(f"claims/{called}", fields="id")["id"])
        except Failure as failure:
            if failure.body.get("code") != "NOT_FOUND":
                raise
    raise Failure(f"No open claim is called {called}.", "See what there is with: berth status")


def until(
    service: Service,
    public_id: str,
    goal: str,
    timeout: float,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[dict[str, Any], int]:
    """The last answer and the exit code of its verdict; waits for `timeout` seconds at most."""
    end = clock() + timeout
    while True:
        left = max(0, int(end - clock()))
        answer = service.get(f"claims/{public_id}/wait", until=goal, seconds=str(min(left, EACH)))
        if answer["verdict"] != "retryable" or clock() >= end or left == 0:
            return answer, CODES[answer["verdict"]]
