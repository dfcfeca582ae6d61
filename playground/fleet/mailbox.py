"""How other processes speak to a running fleet: a folder of letters, each answered by another.

A folder works in any path (a Unix socket's may have 107 bytes), outlives whoever writes, and is
read with `cat` when something is odd.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playground.errors import PlaygroundError
from playground.running.supervisor import write_whole

LOOK_EVERY = 0.1
ANSWER_WITHIN = 60.0

Answer = Callable[[str, dict[str, Any]], str]
"""Does what a letter asks for (name, arguments), and says in words what was done.

Raises PlaygroundError with a sentence for whoever wrote."""


class Mailbox:
    """The letters to one fleet. One process answers, any number may ask."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self) -> None:
        """Begins afresh: whoever asked an earlier fleet has long given up."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for letter in self.folder.glob("*.json"):
            letter.unlink(missing_ok=True)

    def ask(self, name: str, **arguments: Any) -> str:
        """Writes a letter and waits for its answer. Raises PlaygroundError where it says no."""
        number = f"{time.time_ns()}-{os.getpid()}-{uuid.uuid4().hex[:6]}"
        letter, answer = self.folder / f"{number}.ask.json", self.folder / f"{number}.say.json"
        write_whole(letter, json.dumps({"name": name, "arguments": arguments}))
        until = time.monotonic() + ANSWER_WITHIN
        while time.monotonic() < until:
            if answer.exists():
                said = json.loads(answer.read_text())
                answer.unlink(missing_ok=True)
                if said["error"]:
                    raise PlaygroundError(said["error"])
                return str(said["text"])
            time.sleep(LOOK_EVERY / 2)
        letter.unlink(missing_ok=True)
        raise PlaygroundError(f"The fleet did not answer within {ANSWER_WITHIN:.0f} s.")

    def serve(self, answer: Answer) -> None:
        """Answers every letter that lies there, oldest first."""
        for letter in sorted(self.folder.glob("*.ask.json")):
            asked = json.loads(letter.read_text())
            text, error = "", ""
            try:
                text = answer(asked["name"], asked["arguments"])
            except PlaygroundError as no:
                error = str(no)
            reply = letter.with_name(letter.name.replace(".ask.", ".say."))
            write_whole(reply, json.dumps({"text": text, "error": error}))
            letter.unlink(missing_ok=True)
