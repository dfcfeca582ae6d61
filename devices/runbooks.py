"""What to do about each code: read from `docs/runbooks/`, shown in the product and linked to.

A file is a family of codes. Each code is a section of it: a line that is the same as in the table
of codes (a test compares them), then what people see, why, what to do, and how to tell it is over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

from django.conf import settings
from django.urls import reverse

from devices.asks.verdicts import JOBS, OWN, Job, Verdict
from devices.dra.codes import CODES, Class

#: The parts of a section, in their order.
PARTS: Final = ("What people see", "Why", "What to do", "How to tell it is over")
#: Where nothing is wrong there is nothing to do.
NO_FAILURES: Final = frozenset({"SENDING", "RELEASING"})

_PART = re.compile(r"^- \*\*(?P<name>[^*.]+)\.\*\* (?P<text>.+?)(?=^- \*\*|\Z)", re.S | re.M)


@dataclass(frozen=True, slots=True)
class Runbook:
    """One code's page; `picture` is what it looks like, where a test could make it happen."""

    code: str
    family: str
    line: str
    seen: str
    why: str
    act: str
    over: str
    picture: str = ""


@dataclass(frozen=True, slots=True)
class Family:
    """One file: codes that belong together."""

    name: str
    title: str
    words: str
    runbooks: tuple[Runbook, ...]


def failures() -> frozenset[str]:
    """Codes that need a page: all but those that say that nothing is wrong."""
    told = {name for name, code in CODES.items() if code.class_ is not Class.INFORMATION}
    return frozenset(told | (set(OWN) - NO_FAILURES - set(CODES)))


def line_of(code: str) -> str:
    """The first line of a code's section: its words, its class and whose job it is."""
    known = CODES.get(code)
    if known is not None:
        return f"*{known.words}* {known.class_.value.capitalize()}. {_job(JOBS[known.who])}."
    own = OWN[code]
    return f"*{own.sentence}* {_job(own.job)}."


def words_of(code: str) -> Verdict:
    """The code's sentence, whose job it is and the next step."""
    known = CODES.get(code)
    return OWN[code] if known is None else Verdict(known.words, JOBS[known.who], known.next_step)


def address_of(code: str) -> str:
    """The page about a code; empty where there is none."""
    return _addresses().get(code, "")


@cache
def _addresses() -> Mapping[str, str]:
    return {code: reverse("code", args=[code]) for code in runbooks()}


@cache
def families() -> tuple[Family, ...]:
    """All files, in the order of their names."""
    folder = settings.BASE_DIR / "docs" / "runbooks"
    return tuple(read(path) for path in sorted(folder.glob("*.md")) if path.name != "README.md")


@cache
def runbooks() -> Mapping[str, Runbook]:
    """By code."""
    return MappingProxyType({one.code: one for each in families() for one in each.runbooks})


def read(path: Path) -> Family:
    """One file; ValueError names the section that lacks a part."""
    head, *sections = re.split(r"^## ", path.read_text(), flags=re.M)
    title, _, words = head.strip().removeprefix("# ").partition("\n")
    return Family(
        path.stem, title, " ".join(words.split()), tuple(_section(one, path) for one in sections)
    )


def _section(text: str, path: Path) -> Runbook:
    code, _, rest = text.partition("\n")
    line, _, parts = rest.strip().partition("\n")
    found = {one["name"]: " ".join(one["text"].split()) for one in _PART.finditer(parts)}
    if tuple(found) != PARTS:
        raise ValueError(f"{path.name}, {code}: it needs {', '.join(PARTS)}, in this order.")
    seen, why, act, over = (found[part] for part in PARTS)
    pictures = (path.parent / "pictures").glob(f"{code.strip()}.*")
    drawn = min((picture.name for picture in pictures), default="")
    return Runbook(code.strip(), path.stem, line, seen, why, act, over, drawn)


def _job(job: Job) -> str:
    return {Job.TENANT: "The tenant's job", Job.PLATFORM: "The platform team's job"}.get(
        job, "Nobody has to act"
    )
