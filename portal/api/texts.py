"""What nothing can keep: PostgreSQL takes neither a NUL nor half of a surrogate pair, and what is
nested without end is read by nobody.

Refused at the door of the API, whatever the field and whoever reads it, so that no operation has
to think of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from django.http import QueryDict
from rest_framework.parsers import JSONParser

from portal.errors import Invalid

_UNKEPT = re.compile("[\x00\ud800-\udfff]")
WORDS = "Leave out the NUL character."
HALF = "Leave out half of a surrogate pair: it is no character."
DEEPEST = 100
DEEP = f"Nest at most {DEEPEST} deep."
#: So many are named; whoever sends more knows what to look for.
NAMED = 20


class KeptJSONParser(JSONParser):
    """JSON whose texts can all be kept; `Invalid` names the fields of the others."""

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        try:
            found = super().parse(stream, media_type, parser_context)
        except RecursionError:
            raise Invalid("The body cannot be read.", fields={"body": DEEP}) from None
        refuse(dict(_found(found)), "The body holds what cannot be kept.")
        return found


def check_parameters(given: QueryDict) -> None:
    """Raises `Invalid` naming each parameter of an address that cannot be kept."""
    texts = {name: " ".join(map(str, values)) for name, values in given.lists()}
    refuse(dict(_found(texts)), "Some parameters are not right.")


def keepable(text: str) -> bool:
    """Whether anything can be called so."""
    return _UNKEPT.search(text) is None


def refuse(wrong: Mapping[str, str], message: str) -> None:
    """Raises `Invalid` where something is wrong."""
    if wrong:
        raise Invalid(message, fields=dict(list(wrong.items())[:NAMED]))


def _found(data: Any) -> Iterator[tuple[str, str]]:
    """(dotted path, what is wrong) of each text of a document that cannot be kept."""
    left: list[tuple[str, int, Any]] = [("", 0, data)]
    while left:
        path, depth, one = left.pop()
        where = path or "body"
        if depth > DEEPEST:
            yield "body", DEEP
        elif isinstance(one, str) and (hit := _UNKEPT.search(one)) is not None:
            yield where, WORDS if hit[0] == "\x00" else HALF
        elif isinstance(one, list):
            left.extend((f"{path}.{index}", depth + 1, value) for index, value in enumerate(one))
        elif isinstance(one, dict):
            for name, value in one.items():
                # Such a name could not even be said in the answer.
                if not keepable(name):
                    yield where, f"A name in it is no text. {WORDS}"
                else:
                    left.append((f"{path}.{name}" if path else name, depth + 1, value))
