"""The stages of an ask, derived from its state and the times it reached each; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from portal.ui import words
from portal.ui.statuses import status_of

#: Each stage, and the states that mean it has been reached.
STAGES: tuple[tuple[str, frozenset[str]], ...] = (
    ("Asked", frozenset({"requested", "held"})),
    ("Sent", frozenset({"applied", "pending"})),
    ("Allocated", frozenset({"allocated"})),
    ("Running", frozenset({"in use"})),
    ("Released", frozenset({"released"})),
)


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage: `state` is done, here or todo; `note` says when, or how long so far.

    `since` is when the stage under way began, for pages on which the note grows.
    """

    word: str
    state: str
    note: str = ""
    tone: str = ""
    since: datetime | None = None


def stages(
    state: str, since: datetime, reached: Mapping[str, datetime], now: datetime
) -> list[Stage]:
    """Where an ask stands. `reached` gives the first moment of each state that it went through.

    A stage that was passed too quickly to be seen counts as done, without a time. The stage that is
    under way has the tone of the state (amber where it waits, indigo where it is held).
    """
    now_at = [index for index, (_, states) in enumerate(STAGES) if state in states]
    seen = [index for index, (_, states) in enumerate(STAGES) if states & reached.keys()]
    # A Pod that ended takes an ask back to "sent"; what it once was counts when it is over.
    furthest = now_at[0] if now_at and state != "released" else max(seen, default=0)
    over = state == "released"
    at = len(STAGES) - 1 if state in {"releasing", "released"} else furthest + 1
    settled = state == "in use" or over
    drawn, before = [], None
    for index, (word, states) in enumerate(STAGES):
        moment = min((reached[one] for one in states if one in reached), default=None)
        if index <= furthest or (over and index == at):
            note = ""
            if moment is not None:
                note = (
                    f"{moment:%H:%M:%S}"
                    if before is None
                    else f"+{words.in_words(words.span(moment - before, exact=True))}"
                )
                before = moment
            drawn.append(Stage(word, "done", note))
        elif index == at and not settled:
            if state == "held":
                word = "Held"  # nothing is sent, and nothing is on its way
            lasted = words.in_words(words.span(now - since))
            drawn.append(Stage(word, "here", f"{lasted} so far", status_of(state).tone, since))
        else:
            drawn.append(Stage(word, "todo"))
    return drawn
