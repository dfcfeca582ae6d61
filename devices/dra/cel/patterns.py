"""Regular expressions of RE2 (Go's ``regexp``), as Kubernetes runs them.

Whether a text matches is asked of the engine, which has RE2 itself: its time grows with the text
and no further, whatever strangers write. The engine cannot say *what* matches; for that a pattern
is written anew for Python, piece by piece, because Python reads some of RE2's syntax otherwise. A
pattern that could keep Python busy for ever, or has no equal there, is said to be not modelled.
Source: Go's ``regexp/syntax``.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from cel_expr_python import cel

from devices.dra.cel.values import CelError

_MATCHES: Final = cel.NewEnv(
    variables={"text": cel.Type.STRING, "pattern": cel.Type.STRING}
).compile("text.matches(pattern)")
#: The largest number of repetitions that RE2 takes.
MOST_REPEATS: Final = 1000
_REPEAT: Final = re.compile(r"\{(\d+)(?:,(\d*))?\}")
_FLAGS: Final = re.compile(r"\(\?([imsU]*(?:-[imsU]+)?)([:)])")
_NAMED: Final = re.compile(r"\(\?P?<([A-Za-z_0-9]+)>")
_OCTAL: Final = re.compile(r"\\(0[0-7]{0,2}|[1-7][0-7]{1,2})")
_HEX: Final = re.compile(r"\\x(?:\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{2}))")
_QUOTED: Final = re.compile(r"\\Q(.*?)(?:\\E|\Z)", re.DOTALL)
#: One byte of a letter: the engine's RE2 knows it, Go's does not.
_ANY_BYTE: Final = re.compile(r"(?<!\\)(?:\\\\)*\\C")
_CLASS_NAME: Final = re.compile(r"\[:(\^?)(\w+):\]")
#: Escapes that mean the same to Python, in a class and elsewhere. Its \s knows one letter more.
_SAME: Final = frozenset("dDwWaftnrv")
_SPACES: Final = r"\t\n\f\r "
_NAMES: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}


class PatternNotModelled(CelError):
    """RE2 takes the pattern; what it matches is not known here."""


def check_pattern(text: str) -> None:
    """Raises CelError for a pattern that RE2 refuses."""
    has_match(text, "")


def has_match(text: str, within: str) -> bool:
    """Whether a pattern matches somewhere; raises CelError for one that RE2 refuses."""
    if _ANY_BYTE.search(text):
        raise CelError("error parsing regexp: invalid escape sequence: \\C")
    answer = _MATCHES.eval(data={"text": within, "pattern": text}).value()
    if not isinstance(answer, bool):
        raise CelError(f"error parsing regexp: {answer}")
    return answer


@lru_cache(maxsize=512)
def pattern(text: str) -> re.Pattern[str]:
    """A pattern for Python. Raises CelError for one that RE2 refuses, and its kind
    PatternNotModelled for one that Python has no equal of.
    """
    check_pattern(text)
    try:
        return re.compile(_Rewriting(text).whole(), re.ASCII)
    except re.error as error:
        raise PatternNotModelled(f"the regular expression {text!r}: {error}") from error


class _Rewriting:
    """A pattern on its way from one syntax to the other."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.lines = False
        """Whether ``$`` stands before every end of line."""
        self.open = [False]
        """For each group that is open, whether it can be gone through in several ways."""

    def whole(self) -> str:
        out = []
        while self.at < len(self.text):
            out.append(self._piece())
        return "".join(out)

    def _piece(self) -> str:
        letter = self.text[self.at]
        match letter:
            case "\\":
                return self._escape()
            case "[":
                return self._class()
            case "(":
                return self._group()
            case "{":
                return self._repeat()
            case "*" | "+" | "?":
                return self._many(letter)
            case ")":
                return self._end_of_group()
            case "|":
                self.open[-1] = True
        self.at += 1
        if letter == "$":
            return "$" if self.lines else r"\Z"
        return letter

    def _take(self, found: re.Match[str]) -> re.Match[str]:
        self.at = found.end()
        return found

    def _refused(self, what: str) -> CelError:
        return CelError(f"error parsing regexp: {what} in {self.text!r} is not RE2's")

    # Repetitions

    def _many(self, letter: str) -> str:
        self.at += 1
        self.open[-1] = True
        lazy = self._lazy()
        if self.text[self.at : self.at + 1] in ("*", "+", "?") or _REPEAT.match(self.text, self.at):
            raise self._refused("a repetition of a repetition")
        return letter + lazy

    def _repeat(self) -> str:
        found = _REPEAT.match(self.text, self.at)
        if found is None:
            self.at += 1
            return r"\{"
        least, most = int(found[1]), int(found[2] or found[1])
        if max(least, most) > MOST_REPEATS or most < least:
            raise self._refused(f"{found[0]}")
        self._take(found)
        self.at -= 1
        return found[0][:-1] + self._many("}")

    def _lazy(self) -> str:
        if self.text.startswith("?", self.at):
            self.at += 1
            return "?"
        return ""

    # Groups

    def _end_of_group(self) -> str:
        self.at += 1
        inside = self.open.pop() if len(self.open) > 1 else False
        if inside and self.text[self.at : self.at + 1] in ("*", "+", "{"):
            raise PatternNotModelled("a repetition of what can match in several ways")
        self.open[-1] = self.open[-1] or inside
        return ")"

    def _group(self) -> str:
        if not self.text.startswith("(?", self.at):
            self.at += 1
            self.open.append(False)
            return "("
        named = _NAMED.match(self.text, self.at)
        if named is not None:
            self.open.append(False)
            return f"(?P<{self._take(named)[1]}>"
        flags = _FLAGS.match(self.text, self.at)
        if flags is None:
            raise self._refused("a group of this kind")
        first = self.at == 0
        on, _, off = flags[1].partition("-")
        if "U" in flags[1] or (flags[2] == ")" and (off or not first)):
            raise PatternNotModelled("flags in the middle of a regular expression")
        self.lines = self.lines or "m" in on
        if self.lines and "m" in off:
            raise PatternNotModelled("flags in the middle of a regular expression")
        if flags[2] == ":":
            self.open.append(False)
        return self._take(flags)[0]

    # Letters that mean something else

    def _escape(self) -> str:
        same = self._written_letter()
        if same is not None:
            return same
        quoted = _QUOTED.match(self.text, self.at)
        if quoted is not None:
            return re.escape(self._take(quoted)[1])
        letter = self._next_letter()
        match letter:
            case "z":
                return r"\Z"
            case "A" | "b" | "B":
                return f"\\{letter}"
            case "s":
                return f"[{_SPACES}]"
            case "S":
                return f"[^{_SPACES}]"
        return self._plain(letter)

    def _written_letter(self) -> str | None:
        """A letter that is written by its number."""
        for form, base in ((_OCTAL, 8), (_HEX, 16)):
            found = form.match(self.text, self.at)
            if found is not None:
                number = int(next(group for group in found.groups() if group), base)
                if number > 0x10FFFF:
                    raise self._refused(found[0])
                self._take(found)
                return re.escape(chr(number))
        return None

    def _next_letter(self) -> str:
        letter = self.text[self.at + 1 : self.at + 2]
        if letter in ("p", "P"):
            raise PatternNotModelled(f"\\{letter} in a regular expression")
        self.at += 2
        return letter

    def _plain(self, letter: str) -> str:
        if letter in _SAME and letter:
            return f"\\{letter}"
        if not letter or not letter.isascii() or letter.isalnum():
            raise self._refused(f"\\{letter}")
        return re.escape(letter)

    # Classes

    def _class(self) -> str:
        start = self.at
        self.at += 1
        out = ["["]
        if self.text.startswith("^", self.at):
            self.at += 1
            out.append("^")
        first = True
        while first or not self.text.startswith("]", self.at):
            if self.at >= len(self.text):
                raise self._refused(f"the class {self.text[start:]}")
            out.append(self._of_class())
            first = False
        self.at += 1
        return "".join([*out, "]"])

    def _of_class(self) -> str:
        named = _CLASS_NAME.match(self.text, self.at)
        if named is not None:
            if named[2] not in _NAMES:
                raise self._refused(named[0])
            if named[1]:
                raise PatternNotModelled(f"{named[0]} in a regular expression")
            return _NAMES[self._take(named)[2]]
        letter = self.text[self.at]
        if letter != "\\":
            self.at += 1
            return letter if letter == "-" else re.escape(letter)
        same = self._written_letter()
        if same is not None:
            return same
        letter = self._next_letter()
        if letter == "s":
            return _SPACES
        if letter == "S":
            raise PatternNotModelled("\\S in a class of a regular expression")
        return self._plain(letter)
