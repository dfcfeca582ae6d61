"""A template version's JSON → Template, or every problem that it has with its path.

msgspec stops at the first thing that does not fit. So where the whole does not fit, it is asked of
each part by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec

from devices.dra.templates.checks import problems_of
from devices.dra.templates.content import Parameter, Template
from devices.dra.templates.problems import BadTemplate, Problem

KINDS: Mapping[str, type[msgspec.Struct]] = {
    str(kind.__struct_config__.tag): kind for kind in get_args(Parameter)
}


def read_template(content: Any) -> Template:
    """A version's JSON as values. Raises BadTemplate, which says all that is wrong."""
    try:
        template = msgspec.convert(content, Template)
    except msgspec.ValidationError as error:
        found = tuple(_misfits(content, Template, "")) or (Problem("", str(error)),)
        raise BadTemplate(found) from error
    if problems := tuple(problems_of(template)):
        raise BadTemplate(problems)
    return template


def stored_template(content: Any) -> Template:
    """What was checked when it was stored: a check that came later turns nobody's claims away.

    Raises msgspec.ValidationError for what is no template at all.
    """
    return msgspec.convert(content, Template)


def _misfits(data: Any, wanted: Any, path: str) -> Iterator[Problem]:
    """Every part of `data` that is not of the type it should be."""
    arguments = get_args(wanted)
    if wanted == Parameter:
        yield from _parameter(data, path)
    elif isinstance(wanted, type) and issubclass(wanted, msgspec.Struct):
        yield from _struct(data, wanted, path)
    elif get_origin(wanted) is tuple and isinstance(data, list | tuple):
        for number, item in enumerate(data):
            yield from _misfits(item, arguments[0], f"{path}[{number}]")
    elif get_origin(wanted) is dict and isinstance(data, dict):
        for key, item in data.items():
            if not isinstance(key, str):
                yield Problem(path, f"The name {key!r} is not a text.")
            else:
                yield from _misfits(item, arguments[1], f"{path}.{key}" if path else key)
    elif get_origin(wanted) in (UnionType, Union) and isinstance(data, dict):
        structs = [one for one in arguments if isinstance(one, type)]
        inner = [one for one in structs if issubclass(one, msgspec.Struct)]
        yield from _struct(data, inner[0], path) if inner else _leaf(data, wanted, path)
    else:
        yield from _leaf(data, wanted, path)


def _parameter(data: Any, path: str) -> Iterator[Problem]:
    if not isinstance(data, dict):
        yield from _leaf(data, dict[str, Any], path)
        return
    kind = data.get("kind")
    known = KINDS.get(kind) if isinstance(kind, str) else None
    if known is None:
        yield Problem(f"{path}.kind", f"Take one of {', '.join(sorted(KINDS))}.")
        return
    rest = {name: value for name, value in data.items() if name != "kind"}
    yield from _struct(rest, known, path)


def _struct(data: Any, wanted: type[msgspec.Struct], path: str) -> Iterator[Problem]:
    if not isinstance(data, dict):
        yield Problem(path, f"Expected an object, found {_kind(data)}.")
        return
    fields = {field.encode_name: field for field in msgspec.structs.fields(wanted)}
    for name, value in data.items():
        where = f"{path}.{name}" if path else str(name)
        if name not in fields:
            yield Problem(where, f"There is no such field; there are {', '.join(sorted(fields))}.")
        else:
            yield from _misfits(value, fields[name].type, where)
    for name, field in fields.items():
        if field.required and name not in data:
            yield Problem(f"{path}.{name}" if path else name, "It is missing.")


def _leaf(data: Any, wanted: Any, path: str) -> Iterator[Problem]:
    try:
        msgspec.convert(data, wanted)
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at `$")
        yield Problem(path + place.rstrip("`"), f"{text}.")


def _kind(data: Any) -> str:
    if data is None:
        return "nothing"
    names = {bool: "true or false", int: "a number", float: "a number", str: "a text"}
    return names.get(type(data), "a list" if isinstance(data, list | tuple) else "something else")
