"""Named formats of Kubernetes' CEL, such as ``format.dns1123Label()`` (``library/format.go``).

What is valid, and how many things are wrong with a text that is not, is as upstream; the sentences
about them are our own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from typing import Any, Final

from devices.dra.cel import urls
from devices.dra.cel.arguments import a_text
from devices.dra.cel.kinds import NamedFormat
from devices.dra.cel.values import NONE, Optional, no_overload

_LABEL: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN: Final = rf"{_LABEL}(\.{_LABEL})*"
_KEY: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_BASE64: Final = r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
_UUID: Final = "[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}"
_TIME: Final = r"(\d{2}):(\d{2}):(\d{2})(.\d+)?(z|[+-]\d{2}:\d{2})"


def _like(pattern: str, text: str) -> bool:
    return re.fullmatch(pattern, text, re.ASCII) is not None


def _bytes(text: str) -> int:
    return len(text.encode())


def _name(pattern: str, longest: int, what: str) -> Callable[[str], list[str]]:
    def problems(text: str) -> list[str]:
        found = [] if _bytes(text) <= longest else [f"longer than {longest} bytes"]
        return found if _like(pattern, text) else [*found, f"not {what}"]

    return problems


_label = _name(_LABEL, 63, "a DNS label (RFC 1123)")
_subdomain = _name(_SUBDOMAIN, 253, "a DNS subdomain (RFC 1123)")
_old_label = _name("[a-z]([-a-z0-9]*[a-z0-9])?", 63, "a DNS label (RFC 1035)")


def _prefix(of: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """A text that something is appended to may end with a dash."""
    return lambda text: of(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)


def _qualified(text: str) -> list[str]:
    parts = text.split("/")
    if len(parts) > 2:
        return ["more than one slash"]
    found = []
    if len(parts) == 2:
        found += [f"prefix: {p}" for p in _subdomain(parts[0])] if parts[0] else ["empty prefix"]
    name = parts[-1]
    if not name:
        found.append("empty name")
    elif _bytes(name) > 63:
        found.append("name longer than 63 bytes")
    return found if _like(_KEY, name) else [*found, "not a name"]


def _is_date(text: str) -> bool:
    try:
        return _like(r"\d{4}-\d{2}-\d{2}", text) and bool(date.fromisoformat(text))
    except ValueError:
        return text == "0000-02-29"  # Go has a year 0, and it is a leap year


def _is_moment(text: str) -> bool:
    day, *rest = text.lower().split("t")
    found = re.fullmatch(_TIME, rest[0], re.ASCII) if rest and _is_date(day) else None
    return found is not None and found[1] <= "23" and found[2] <= "59" and found[3] <= "59"


def _told(holds: Callable[[str], bool], problem: str) -> Callable[[str], list[str]]:
    return lambda text: [] if holds(text) else [problem]


FORMATS: Final[dict[str, NamedFormat]] = {
    name: NamedFormat(name, problems)
    for name, problems in (
        ("dns1123Label", _label),
        ("dns1123Subdomain", _subdomain),
        ("dns1035Label", _old_label),
        ("dns1123LabelPrefix", _prefix(_label)),
        ("dns1123SubdomainPrefix", _prefix(_subdomain)),
        ("dns1035LabelPrefix", _prefix(_old_label)),
        ("qualifiedName", _qualified),
        ("labelValue", _name(f"({_KEY})?", 63, "a label's value")),
        ("uri", lambda text: list(filter(None, [urls.request_problem(text)]))),
        ("uuid", _told(lambda text: _like(_UUID, text), "not a UUID")),
        ("byte", _told(lambda text: _like(_BASE64, text), "not base64")),
        ("date", _told(_is_date, "not a date")),
        ("datetime", _told(_is_moment, "not a date and time")),
    )
}


def named(name: Any) -> Optional:
    """``format.named("…")``: nothing for a name that is none."""
    found = FORMATS.get(a_text(name))
    return NONE if found is None else Optional(True, found)


def validate(form: Any, text: Any) -> Optional:
    """Nothing where the text is valid, or what is wrong with it."""
    if not isinstance(form, NamedFormat):
        raise no_overload(form)
    problems = form.problems(a_text(text))
    return Optional(True, problems) if problems else NONE
