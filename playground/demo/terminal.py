"""Calm output for a person at a terminal: lines that stay, and one that the next replaces."""

from __future__ import annotations

import contextlib
import shutil
import sys
import time
from collections.abc import Iterator


class Terminal:
    """Writes to standard output; where that is no terminal, only the lines that stay."""

    def __init__(self) -> None:
        self._passing = ""

    def say(self, text: str) -> None:
        """A line that stays."""
        with contextlib.suppress(OSError):  # the terminal may be gone; we still stop in order
            print(f"{self._erase()}{text}", flush=True)

    def say_for_now(self, text: str) -> None:
        """A line that the next one replaces."""
        if text == self._passing or not sys.stdout.isatty():
            return
        width = shutil.get_terminal_size().columns - 4
        with contextlib.suppress(OSError):
            print(f"{self._erase()}  {text[:width]}", end="", flush=True)
        self._passing = text

    def say_step(self, name: str, seconds: float) -> None:
        self.say(f"  {name:<28}{seconds:6.1f} s")

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[None]:
        """Names what is being done, and in the end how long it took."""
        self.say_for_now(name)
        began = time.monotonic()
        yield
        self.say_step(name, time.monotonic() - began)

    def _erase(self) -> str:
        passing, self._passing = self._passing, ""
        return "\r\033[K" if passing else ""
