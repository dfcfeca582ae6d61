"""What differs between two versions of a template: in words, part by part, and as objects. Pure.

For the one who approves it, for its author, and for those who hold the older one.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import Any, Final

from devices.dra.restate import restate
from devices.dra.templates import Choice, Problem, Template, build, plainly, render, settle

#: What tells the parts of a list apart, the most telling first.
_NAMES: Final = ("name", "value", "driver", "match_attribute", "distinct_attribute", "key")
_WORDS: Final = {
    "device_class": "class",
    "words": "in words",
    "label": "asked as",
    "match_attribute": "same",
    "distinct_attribute": "different",
    "tenant_defaults": "default of tenant",
    "longest_days": "days at most",
}
_SAID: Final = "It says"
NAME: Final = "Name"
PLAIN: Final = "In plain words, with the answers it starts with"
OBJECTS: Final = "What is applied for these answers"
SEAL: Final = "Everything it holds"


@dataclass(frozen=True, slots=True)
class Side:
    """One version: what it is called, and what it holds."""

    name: str
    words: str
    icon: str
    content: Mapping[str, Any] = field(repr=False)
    template: Template = field(repr=False)


@dataclass(frozen=True, slots=True)
class Part:
    """One line of a comparison: `before` is None where it is new, `after` where it goes."""

    group: str
    label: str
    before: str | None
    after: str | None

    @property
    def changed(self) -> bool:
        return self.before != self.after


def compare(before: Side | None, after: Side) -> list[Part]:
    """Every line of the groups in which something differs, and the seal over the whole.

    Equal content gives no changed line, and any other gives at least one.
    """
    parts: list[Part] = []
    for name in ("name", "words", "icon"):
        label = {"name": "called", "words": "in words", "icon": "icon"}[name]
        old = getattr(before, name) if before else None
        parts.append(Part(NAME, label, old, getattr(after, name)))
    parts += _sentences(before, after)
    parts += _aligned(_parts(before.content) if before else {}, _parts(after.content))
    parts += _aligned(_objects(before) if before else {}, _objects(after))
    changed = {part.group for part in parts if part.changed}
    seals = (seal(before.content) if before else None, seal(after.content))
    return [*(part for part in parts if part.group in changed), Part(SEAL, "sha256", *seals)]


def seal(content: Mapping[str, Any]) -> str:
    """The digest of what a version holds; one changed character is another version."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def removed(before: Template, after: Template) -> Iterator[Problem]:
    """Questions and answers that the later version lacks: those are hidden or redirected, never
    removed, since links, programs and earlier asks name them.
    """
    present = {parameter.name: parameter for parameter in after.parameters}
    for parameter in before.parameters:
        now = present.get(parameter.name)
        if now is None or type(now) is not type(parameter):
            text = (
                f"{parameter.name} is asked by the version before. Keep it, or write another "
                "template and retire this one with it as its successor."
            )
            yield Problem("parameters", text)
        elif isinstance(parameter, Choice) and isinstance(now, Choice):
            number = [one.name for one in after.parameters].index(parameter.name)
            values = {option.value for option in now.options}
            for option in parameter.options:
                if option.value not in values:
                    text = (
                        f"{option.value} can be chosen in the version before. Keep it with "
                        "`hidden: true` and `because`, or redirect it with `instead`."
                    )
                    yield Problem(f"parameters[{number}].options", text)


def changes_in_words(before: Side, after: Side, values: Mapping[str, Any]) -> list[str]:
    """What differs for one who gave these answers: sentences that go, and those that come."""
    old, new = (_said(side, values) for side in (before, after))
    gone = [f"No more: {text}" for text in old if text not in new]
    return [*gone, *(f"Now: {text}" for text in new if text not in old)]


def _said(side: Side, values: Mapping[str, Any] | None = None) -> tuple[str, ...]:
    template = side.template
    return plainly(template, build(template, settle(template, values or {})))


def _sentences(before: Side | None, after: Side) -> Iterator[Part]:
    old, new = _said(before) if before else (), _said(after)
    for what, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "equal":
            yield from (Part(PLAIN, _SAID, text, text) for text in old[a:b])
            continue
        yield from (Part(PLAIN, _SAID, text, None) for text in old[a:b])
        yield from (Part(PLAIN, _SAID, None, text) for text in new[c:d])


Key = tuple[str, str]


def _aligned(old: Mapping[Key, str], new: Mapping[Key, str]) -> Iterator[Part]:
    """Both sides' lines in one order: the later one's, and what went where it stood."""
    for group, label in _merged(list(old), list(new)):
        key = group, label
        yield Part(group, label, old.get(key), new.get(key))


def _merged(old: list[Key], new: list[Key]) -> list[Key]:
    merged = list(new)
    known = set(new)
    for number, key in enumerate(old):
        if key not in known:
            before = old[number - 1] if number else None
            at = merged.index(before) + 1 if before is not None else 0
            merged.insert(at, key)
            known.add(key)
    return merged


def _parts(content: Mapping[str, Any]) -> dict[Key, str]:
    """The content's lines under headings that an author knows."""
    found: dict[Key, str] = {}
    for request in content.get("requests", ()):
        group = f"Device {request.get('words') or request.get('name')}"
        found |= {(group, label): text for label, text in _flat(request)}
    for parameter in content.get("parameters", ()):
        group = f"Question {parameter.get('label') or parameter.get('name')}"
        found |= {(group, label): text for label, text in _flat(parameter)}
    rest = {key: one for key, one in content.items() if key not in ("requests", "parameters")}
    return found | {("All of it", label): text for label, text in _flat(rest)}


def _objects(side: Side) -> dict[Key, str]:
    values = settle(side.template, {})
    found: dict[Key, str] = {}
    for obj in render(side.template, values):
        spec = {"kind": obj["kind"], **obj["spec"].get("spec", obj["spec"])}
        found |= {(OBJECTS, label): text for label, text in _flat(spec, words=False)}
    return found


def _flat(value: Any, label: str = "", *, words: bool = True) -> Iterator[tuple[str, str]]:
    """(label, text) of every leaf; parts of lists go by their own names."""
    if isinstance(value, Mapping):
        for key, one in value.items():
            said = _WORDS.get(str(key), str(key)) if words else str(key)
            yield from _flat(one, f"{label}.{said}" if label else said, words=words)
    elif isinstance(value, list | tuple):
        if value and not any(isinstance(one, Mapping) or _is_cel(label) for one in value):
            yield label, ", ".join(map(_text, value))
            return
        for name, one in _named(value):
            yield from _flat(one, f"{label}[{name}]", words=words)
    else:
        yield label, _restated(label, value) if words else _text(value)


def _named(parts: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    taken: set[str] = set()
    for number, one in enumerate(parts):
        names = [one[key] for key in _NAMES if key in one] if isinstance(one, Mapping) else []
        name = str(names[0]) if names and str(names[0]) not in taken else str(number)
        taken.add(name)
        yield name, one


def _is_cel(label: str) -> bool:
    return "selectors" in label


def _restated(label: str, value: Any) -> str:
    """A selector with its words before it, everything else as it is."""
    said = restate(value) if _is_cel(label) and isinstance(value, str) else None
    return f"{said}, by {value}" if said else _text(value)


def _text(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case None:
            return "nothing"
        case str():
            return value
    return json.dumps(value, ensure_ascii=False)
