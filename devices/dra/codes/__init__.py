"""Every code of the rules: the closed list of reasons that Berth gives for a device's fate.

Codes are UPPER_SNAKE and never reused with another meaning; floors above have tables of their own.
"""

from __future__ import annotations

from devices.dra.codes import devices, findings, isolation, node, waiting
from devices.dra.codes.kinds import Class, Code, Who, join

__all__ = ["CODES", "Class", "Code", "Who", "code"]

_PARTS = (devices, waiting, node, findings, isolation)
CODES: dict[str, Code] = join(part.CODES.values() for part in _PARTS)


def code(name: str) -> Code:
    """The code of that name; raises KeyError for one that no table has."""
    return CODES[name]
