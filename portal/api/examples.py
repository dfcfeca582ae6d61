"""Examples for the OpenAPI document, made from schemas and the words of one story. Pure.

A field's own `example`, `default` or `enum` counts first, then what the story calls a field of
that name, then its format, then its type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

DEEPEST: Final = 8
FORMATS: Final = {
    "date-time": "2026-11-02T12:00:00Z",
    "date": "2026-11-02",
    "uuid": "5f0c1f52-6a1c-4f7e-9d1b-3a4f1d1c2b77",
    "uri": "https://berth.example.com/",
    "email": "avocet@example.com",
    "double": 0.94,
    "decimal": "4",
}
STORY: Final[Mapping[str, object]] = {
    "id": "k3v9x2m7q4ta",
    "name": "train",
    "tenant": "tidewater-vision",
    "namespace": "tidewater-train",
    "template": "gpu",
    "template_version": 3,
    "slug": "gpu",
    "username": "plover",
    "person": "plover",
    "device_class": "h100-80gb",
    "driver": "gpu.example.com",
    "pool": "node-7",
    "device": "gpu-0",
    "node": "node-7",
    "words": "2 × GPU",
    "object_name": "train-k3v9x2m7q4ta",
    "note": "nightly training",
    "reason": "Firmware of the switches is exchanged.",
    "code": "WAITING_FOR_POD",
    "why": "It is ready and gets its devices when a Pod uses it.",
    "request_id": "ci-run-4711",
    "values": {"gpus": 2},
    "amount": "8",
    "measure": "devices",
    "days": 7,
    "begins": "08:00",
    "ends": "18:00",
    "next": "https://berth.example.com/api/v1/…?cursor=cD0x",
    "previous": None,
    "sentence": "It fits now on 2 nodes.",
}


def example_of(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    """One value that fits `schema`; `schemas` are the document's components."""
    return _made(schema, schemas, "", ())


def _made(
    schema: Mapping[str, Any], schemas: Mapping[str, Any], name: str, above: tuple[str, ...]
) -> Any:
    if "$ref" in schema:
        of = str(schema["$ref"]).rpartition("/")[2]
        if of in above or len(above) >= DEEPEST:
            return _of_nothing(schemas[of])
        return _made(schemas[of], schemas, name, (*above, of))
    for key in ("example", "const", "default"):
        said = schema.get(key)
        if said is not None and not (said == "" and schema.get("minLength")):
            return said
    if schema.get("examples"):
        return schema["examples"][0]
    if enum := [one for one in schema.get("enum", ()) if one not in ("", None)]:
        return enum[0]
    for key in ("allOf", "oneOf", "anyOf"):
        if schema.get(key):
            return _made(schema[key][0], schemas, name, above)
    kind = _kind(schema)
    if name in STORY and (STORY[name] is None or _is(STORY[name], kind)):
        told = STORY[name]
        if told is not None or "null" in _kinds(schema):
            return told
    match kind:
        case "object":
            return {
                key: _made(one, schemas, key, above)
                for key, one in schema.get("properties", {}).items()
            }
        case "array":
            one = _made(schema.get("items", {}), schemas, name.removesuffix("s"), above)
            return [one]
        case "string":
            return FORMATS.get(str(schema.get("format")), "text")
        case "integer":
            return max(1, int(schema.get("minimum", 1)))
        case "number":
            return 0.94
        case "boolean":
            return True
    return None


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    kind = schema.get("type", [])
    return list(kind) if isinstance(kind, list) else [kind]


def _kind(schema: Mapping[str, Any]) -> str:
    known = [kind for kind in _kinds(schema) if kind != "null"]
    return known[0] if known else ("object" if "properties" in schema else "")


def _is(value: object, kind: str) -> bool:
    shapes: dict[str, type] = {"string": str, "integer": int, "object": dict, "boolean": bool}
    return not kind or (kind in shapes and isinstance(value, shapes[kind]))


def _of_nothing(schema: Mapping[str, Any]) -> Any:
    return [] if _kind(schema) == "array" else {}
