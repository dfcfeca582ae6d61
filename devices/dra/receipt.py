"""Receipts: what was reclaimed, each item and the whole under a SHA-256 digest. Pure.

A digest covers the canonical JSON of a thing without its own digest: keys sorted, no blanks, UTF-8
as it is. Anybody can compute it again from the JSON that the API gives out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

Receipt = dict[str, Any]

FORM: Final = 1
DIGEST: Final = "digest"


def sealed(head: Mapping[str, Any], items: Iterable[Mapping[str, Any]]) -> Receipt:
    """A receipt: `head` (JSON values), its items, and the digests. Items keep their order."""
    body = {"form": FORM, **head, "items": [_with_digest(item) for item in items]}
    return _with_digest(body)


def faults(receipt: Mapping[str, Any]) -> list[str]:
    """What does not prove, in sentences; empty for a receipt as it was written."""
    found = []
    if receipt.get("form") != FORM:
        return [f"form {receipt.get('form')!r} is not known here; only {FORM} is"]
    items = receipt.get("items")
    if not isinstance(items, list):
        return ["it has no list of items"]
    for number, item in enumerate(items, 1):
        if not isinstance(item, Mapping) or item.get(DIGEST) != digest(item):
            found.append(f"item {number} ({words(item)}) was changed")
    if receipt.get(DIGEST) != digest(receipt):
        found.append("the receipt as a whole was changed, or an item added, dropped or moved")
    return found


def digest(thing: Mapping[str, Any]) -> str:
    """The hex SHA-256 of a receipt or an item, without the digest that it carries."""
    content = {key: value for key, value in thing.items() if key != DIGEST}
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def words(item: object) -> str:
    """Kind and name of an item, as far as it says."""
    if not isinstance(item, Mapping):
        return "not an object"
    where = f"{item['namespace']}/" if item.get("namespace") else ""
    return f"{item.get('kind', 'thing')} {where}{item.get('name', '')}".strip()


def _with_digest(thing: Mapping[str, Any]) -> dict[str, Any]:
    return {**thing, DIGEST: digest(thing)}
