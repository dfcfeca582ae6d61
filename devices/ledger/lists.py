"""Lists of lines: which of them a query asks for; pages and API say it the same way."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from devices.dra.ledgerlog import Act
from devices.models import LedgerLine
from devices.models.ledger import LedgerLines

FILTERS: Final = ("node", "resource", "pod", "claim", "rule", "code")
#: Which lines a list shows: word by value.
WHICH: Final = {
    "standing": "What stands",
    "all": "Every line",
    "refused": "Doubled and older",
}


def chosen_lines(
    asked: Mapping[str, str], at: datetime | None
) -> tuple[LedgerLines, dict[str, str], str]:
    """The lines that a query asks for, its filters, and which of them."""
    given = {name: asked[name] for name in FILTERS if asked.get(name)}
    which = asked.get("which", "standing")
    which = which if which in WHICH else "standing"
    match which:
        case "all":
            rows = LedgerLine.objects.all()
            rows = rows.filter(at__lte=at) if at is not None else rows
        case "refused":
            rows = LedgerLine.objects.filter(act__in=[Act.DOUBLED.value, Act.OLDER.value])
        case _:
            rows = LedgerLine.objects.standing(at)
    return rows.filter(**given), given, which
