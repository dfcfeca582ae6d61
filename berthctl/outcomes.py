"""How a command ends: exit codes, and failures that say what to do."""

from __future__ import annotations

from typing import Any

DONE = 0
USAGE = 2
RETRYABLE = 3
PERMANENT = 4

#: What to do about codes whose sentence alone does not say it.
REMEDIES = {
    "NOT_SIGNED_IN": "Sign in with: berth login",
    "TOKEN_INVALID": "Make a new token on the page Tokens, then: berth login",
    "NOT_PERMITTED": "Use a token whose scopes and person may do this.",
    "NOT_FOUND": "See what there is with: berth status",
    "INVALID": "Mend the fields that are named above and try again.",
    "LIMIT_REACHED": "Release something (berth status, berth release), or ask for another limit.",
    "TOO_MANY_REQUESTS": "Wait a minute, or use fewer calls.",
    "CLUSTER_NOT_SEEN": "Try again in a few seconds.",
    "IN_PROGRESS": "Try again in a moment.",
    "OUTDATED": "Look again with: berth status",
}


class Failure(Exception):
    """Something a person has to read: what happened, what to do, and the exit code."""

    def __init__(
        self,
        words: str,
        remedy: str = "",
        *,
        exit_code: int = PERMANENT,
        body: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(words)
        self.words = words
        self.remedy = remedy
        self.exit_code = exit_code
        self.body = body or {"detail": words, "remedy": remedy}

    def lines(self) -> list[str]:
        """As they stand on the terminal."""
        fields = self.body.get("facts", {}).get("fields", {})
        found = [f"berth: {self.words}", *(f"  {name}: {said}" for name, said in fields.items())]
        if self.remedy:
            found.append(f"  → {self.remedy}")
        if request_id := self.body.get("request_id"):
            found.append(f"  request {request_id}")
        return found


def of_problem(status: int, body: dict[str, Any]) -> Failure:
    """The failure that an answer of the API means."""
    code = str(body.get("code", ""))
    later = status in (429, 502, 503, 504) or status >= 500 or code == "IN_PROGRESS"
    words = str(body.get("detail") or f"The server answered {status}.")
    return Failure(
        f"{words} ({code})" if code else words,
        REMEDIES.get(code, ""),
        exit_code=RETRYABLE if later else PERMANENT,
        body={**body, "status": status},
    )
