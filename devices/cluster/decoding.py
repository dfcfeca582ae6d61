"""JSON of the API server into Python, whatever people have put into their objects.

The fast decoder refuses three things that the API server stores without complaint (opaque driver
parameters and annotations are anybody's text): half of a surrogate pair, a number beyond a float,
nesting beyond its recursion limit. Such an object must be shown, not stop the reader.
Must not know kinds or clients.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec

# Objects of Kubernetes nest some 15 deep; what goes deeper than this is somebody's parameters.
DEEPEST = 100
TOO_DEEP = b'"(nested too deeply to show)"'

_fast = msgspec.json.Decoder()


def loads(raw: bytes | memoryview | msgspec.Raw) -> Any:
    """Any JSON value; raises ValueError where it is not whole JSON (a cut answer, an HTML page)."""
    try:
        return _fast.decode(raw)
    except (msgspec.DecodeError, RecursionError):
        return _patient(bytes(raw))


def dumps(value: Any) -> bytes:
    """Compact JSON of what `loads` gave; half surrogate pairs become U+FFFD."""
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode()


def too_deep(value: Any) -> bool:
    """Whether a value nests deeper than anybody should have to show. Pythons differ in how deep
    they read, so that none of them is asked.
    """
    level = [value]
    for _ in range(DEEPEST):
        held = [
            one.values() if isinstance(one, dict) else one
            for one in level
            if isinstance(one, dict | list)
        ]
        if not held:
            return False
        level = [inner for one in held for inner in one]
    return any(isinstance(one, dict | list) for one in level)


def readable(raw: bytes) -> bytes:
    """The same JSON in a form that the fast decoder takes; raises ValueError as `loads` does."""
    return dumps(_patient(raw))


def _patient(raw: bytes) -> Any:
    return json.loads(_shallow(raw).decode("utf-8", "replace"), strict=False)


def _shallow(raw: bytes) -> bytes:
    """The JSON text with everything below DEEPEST levels replaced by a sentence."""
    kept: list[bytes] = []
    depth, start, quoted, escaped = 0, 0, False, False
    for at, byte in enumerate(raw):
        if quoted:
            if escaped:
                escaped = False
            elif byte == 0x5C:  # backslash
                escaped = True
            elif byte == 0x22:
                quoted = False
        elif byte == 0x22:  # quotation mark
            quoted = True
        elif byte in b"{[":
            depth += 1
            if depth == DEEPEST + 1:
                kept.append(raw[start:at])
        elif byte in b"}]":
            depth -= 1
            if depth == DEEPEST:
                kept.append(TOO_DEEP)
                start = at + 1
    if depth > DEEPEST:
        raise ValueError("JSON ends inside an object")
    return b"".join([*kept, raw[start:]]) if kept else raw
