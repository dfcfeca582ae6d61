"""What is wrong with a template's content: every problem at once, each with its path."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong; `path` is where in the content, such as
    "parameters[2].options[0].selectors.gpu"; empty for the whole.
    """

    path: str
    text: str

    def __str__(self) -> str:
        return f"{self.path}: {self.text}" if self.path else self.text


class BadTemplate(ValueError):
    """The content is no template; `problems` says all that is wrong with it."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(map(str, self.problems)))
