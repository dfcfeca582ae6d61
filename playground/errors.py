"""What the playground says to people when something on their machine is not as it needs it."""

from __future__ import annotations


class PlaygroundError(Exception):
    """Something on this machine is not as the playground needs it; the message says what to do."""
