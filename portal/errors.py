"""The three kinds of wrong: refusals reach people, faults reach the retry, bugs reach the log.

Only refusals are defined here. Faults are `devices.cluster.gateway.ClusterError`; bugs are
everything else, and nobody catches them.
"""

from __future__ import annotations

from http import HTTPStatus


class Refused(Exception):
    """What a person may not or cannot have, said so that they can act.

    `code` is stable and the same in page, API, metric and audit. `facts` are JSON values that a
    program may read. Never retried, never logged as an error.
    """

    code = "REFUSED"
    http_status: int = HTTPStatus.UNPROCESSABLE_ENTITY

    def __init__(self, message: str, *, code: str = "", **facts: object) -> None:
        super().__init__(message)
        self.message = message
        self.facts = facts
        if code:
            self.code = code


class NotPermitted(Refused):
    """The person is known here but lacks a right; the message names the right and who has it."""

    code = "NOT_PERMITTED"
    http_status = HTTPStatus.FORBIDDEN


class Invalid(Refused):
    """Bad input. `fields` maps a field's name to what is wrong with it and what would be right."""

    code = "INVALID"

    def __init__(self, message: str, *, fields: dict[str, str]) -> None:
        super().__init__(message)
        self.fields = fields


class Outdated(Refused):
    """The thing changed since the caller looked (If-Match); facts say what it is now."""

    code = "OUTDATED"
    http_status = HTTPStatus.PRECONDITION_FAILED


class AlreadyInProgress(Refused):
    """The same Idempotency-Key is being worked on right now."""

    code = "IN_PROGRESS"
    http_status = HTTPStatus.CONFLICT
