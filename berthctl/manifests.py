"""What `berth apply -f` reads: claims as documents, and what is to be done about each. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import yaml

from berthctl.outcomes import USAGE, Failure

API_VERSION = "berth.dev/v1"
KIND = "Claim"
#: Names in a document → names in the API.
SPEC = {
    "template": "template",
    "values": "values",
    "atOnce": "at_once",
    "grant": "grant",
    "days": "days",
    "note": "note",
}


@dataclass(frozen=True, slots=True)
class Wanted:
    """One claim as its document says; `ask` is the body of the API's own ask."""

    name: str
    namespace: str
    ask: dict[str, Any] = field(hash=False)
    source: str = ""

    @property
    def words(self) -> str:
        return f"claim/{self.name} in {self.namespace}"


class Step(StrEnum):
    """What brings a claim to what its document says."""

    REQUEST = "request"
    NOTHING = "nothing"
    NOTE = "note"
    REPLACE = "replace"


def read(text: str, source: str) -> list[Wanted]:
    """Every claim of a YAML or JSON text; raises `Failure` naming file, document and field."""
    try:
        documents = list(yaml.safe_load_all(text))
    except yaml.YAMLError as error:
        raise Failure(f"{source} is no YAML: {error}", exit_code=USAGE) from error
    found = []
    for number, document in enumerate(documents, start=1):
        if document is not None:
            found.append(_one(document, f"{source}, document {number}"))
    if not found:
        raise Failure(f"{source} has no claim in it.", exit_code=USAGE)
    return found


def distinct(wanted: Iterable[Wanted]) -> list[Wanted]:
    """The same, once each; raises `Failure` where two documents are about one claim."""
    seen: dict[tuple[str, str], Wanted] = {}
    for one in wanted:
        before = seen.setdefault((one.namespace, one.name), one)
        if before is not one:
            words = f"{one.words} stands twice: in {before.source} and in {one.source}."
            raise Failure(words, exit_code=USAGE)
    return list(seen.values())


def step(wanted: Wanted, present: Mapping[str, Any] | None) -> Step:
    """What to do; `present` is the open claim of that name, as the API shows it, or None.

    What an ask leaves out is as it is. `days` counts when it is asked for, not afterwards.
    """
    if present is None:
        return Step.REQUEST
    ask = wanted.ask
    values = ask.get("values", {})
    same = (
        present["template"] == ask["template"]
        and all(present["values"].get(name) == value for name, value in values.items())
        and ("at_once" not in ask or present["at_once"] == ask["at_once"])
    )
    if not same:
        return Step.REPLACE
    if "note" in ask and present["note"] != ask["note"]:
        return Step.NOTE
    return Step.NOTHING


def key(wanted: Wanted, before: Sequence[str]) -> str:
    """The Idempotency-Key of an ask: two runs at once ask once, and one after a release anew.

    `before` are the ids of earlier claims of that name.
    """
    text = json.dumps([wanted.name, wanted.namespace, wanted.ask, sorted(before)], sort_keys=True)
    return f"apply-{hashlib.sha256(text.encode()).hexdigest()[:40]}"


def _one(document: Any, source: str) -> Wanted:
    def wrong(words: str) -> Failure:
        return Failure(f"{source}: {words}", exit_code=USAGE)

    if not isinstance(document, dict):
        raise wrong("a document is a mapping.")
    if document.get("apiVersion") != API_VERSION or document.get("kind") != KIND:
        raise wrong(f"apiVersion is {API_VERSION} and kind is {KIND}.")
    metadata, spec = document.get("metadata"), document.get("spec")
    if not isinstance(metadata, dict) or not isinstance(spec, dict):
        raise wrong("metadata and spec are mappings.")
    unknown = sorted(set(document) - {"apiVersion", "kind", "metadata", "spec"})
    unknown += [f"metadata.{name}" for name in sorted(set(metadata) - {"name", "namespace"})]
    unknown += [f"spec.{name}" for name in sorted(set(map(str, spec)) - set(SPEC))]
    if unknown:
        raise wrong(f"no such field: {', '.join(unknown)}.")
    for where, name in ((metadata, "name"), (metadata, "namespace"), (spec, "template")):
        if not isinstance(where.get(name), str) or not where[name]:
            raise wrong(f"{'spec' if where is spec else 'metadata'}.{name} is a text.")
    if not isinstance(spec.get("values", {}), dict):
        raise wrong("spec.values is a mapping.")
    ask = {SPEC[name]: value for name, value in spec.items()}
    ask |= {"name": metadata["name"], "namespace": metadata["namespace"]}
    return Wanted(metadata["name"], metadata["namespace"], ask, source)
