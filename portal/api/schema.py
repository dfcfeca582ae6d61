"""How the OpenAPI document is made: what each operation takes beside its own, how it fails, and an
example of all that goes in and comes out.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from drf_spectacular.openapi import AutoSchema

from portal.api.endings import Ending
from portal.api.examples import example_of
from portal.api.links import add_links
from portal.api.paging import CursorPaging
from portal.api.problemcodes import codes_by_status
from portal.api.problems import MEDIA_TYPE, TYPE_PREFIX, title_of

METHODS = ("get", "post", "put", "patch", "delete")
#: Parameters and headers that the ground handles, so that no operation describes them itself.
GROUND = {
    "Fields": {
        "in": "query", "name": "fields", "schema": {"type": "string"},
        "description": "Only these fields of each object, such as `id,state,devices.node`.",
    },
    "DryRun": {
        "in": "query", "name": "dry_run", "schema": {"type": "boolean", "default": False},
        "description": "Answers as if it were done; nothing is written and nothing is sent.",
    },
    "IdempotencyKey": {
        "in": "header", "name": "Idempotency-Key",
        "schema": {"type": "string", "maxLength": 255},
        "description": "The same key with the same request is done once, for a day.",
    },
    "IfMatch": {
        "in": "header", "name": "If-Match", "schema": {"type": "string"},
        "description": "The ETag you looked at; 412 with the difference where it is another now.",
    },
    "Confirm": {
        "in": "header", "name": "Berth-Confirm", "schema": {"type": "string"},
        "description": "From the answer to the dry run; asked of tokens that rehearse first.",
    },
}  # fmt: skip
HEADERS = {
    "RateLimit-Limit": ("integer", "Requests of this kind a minute."),
    "RateLimit-Remaining": ("integer", "Of these, how many are left."),
    "RateLimit-Reset": ("integer", "Seconds until they are counted anew."),
    "X-Request-ID": ("string", "Stands in audit, logs and on objects in the cluster."),
}
PROBLEM: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code", "facts", "request_id"],
    "properties": {
        "type": {"type": "string", "format": "uri"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "A sentence for people: why, and what to do."},
        "code": {"type": "string", "description": "Stable, for programs. New ones may come."},
        "facts": {"type": "object", "additionalProperties": True},
        "request_id": {"type": "string"},
    },
}
ALWAYS = (401, 403, 404, 406, 422, 429, 503)
WRITING = (400, 409, 412, 413, 415, 428)
FACTS = {
    412: {"etag": '"8"', "now": {"state": "releasing"},
          "difference": {"state": {"was": "applied", "is": "releasing"}}},
    422: {"fields": {"name": "Take lower-case letters, digits and '-'."}},
}  # fmt: skip


class BerthSchema(AutoSchema):
    """Tags from the view's own words; pages where a cursor is taken; the ground's parameters."""

    def get_tags(self) -> list[str]:
        return [getattr(self.view, "noun", "berth")]

    def _get_paginator(self) -> CursorPaging | None:
        """A list that takes a cursor comes in pages; others come whole."""
        takes = {getattr(one, "name", "") for one in self.get_override_parameters()}
        return CursorPaging() if self.method == "GET" and "cursor" in takes else None

    def get_operation(self, *args: Any, **kwargs: Any) -> dict[str, Any] | None:
        """The operation with the ground's parameters in the place of its own of that name."""
        found: dict[str, Any] | None = super().get_operation(*args, **kwargs)
        if found is None:
            return None
        if self.method == "GET":
            names = ["Fields"]
        elif getattr(self.view, "asks_only", False):
            names = []
        else:
            names = ["DryRun", "IdempotencyKey", "IfMatch", "Confirm"]
        ground = {str(one["name"]) for one in GROUND.values()}
        own = [one for one in found.get("parameters", []) if one["name"] not in ground]
        added = [{"$ref": f"#/components/parameters/{name}"} for name in names]
        found["parameters"] = [*own, *added]
        if (ending := self._ending()) is not None:
            found["description"] = f"{found.get('description', '')}\n\n{ending.words()}".strip()
        return found

    def is_deprecated(self) -> bool:
        """Whether it is to go; its answers say until when."""
        return self._ending() is not None or super().is_deprecated()

    def _ending(self) -> Ending | None:
        endings: Mapping[str, Ending] = getattr(self.view, "endings", {})
        return endings.get(self.method.lower())


def document_ground(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Adds problems, headers, examples and links to each operation (a hook of spectacular)."""
    components = result.setdefault("components", {})
    components.setdefault("schemas", {})["Problem"] = PROBLEM
    components["parameters"] = GROUND
    components["headers"] = {
        name: {"schema": {"type": kind}, "description": words}
        for name, (kind, words) in HEADERS.items()
    }
    components["responses"] = {
        f"Problem{status}": _problem(status) for status in (*ALWAYS, *WRITING)
    }
    for schema in components["schemas"].values():
        _loosen(schema)
    headers = {name: {"$ref": f"#/components/headers/{name}"} for name in HEADERS}
    for path, operations in result["paths"].items():
        for method in METHODS:
            if method not in operations:
                continue
            operation = operations[method]
            operation.setdefault("summary", _summary(operation["operationId"]))
            for response in operation["responses"].values():
                response.setdefault("headers", {}).update(headers)
                _add_examples(response.get("content", {}), components["schemas"], path)
            _add_examples(
                operation.get("requestBody", {}).get("content", {}), components["schemas"], path
            )
            for status in ALWAYS if method == "get" else (*ALWAYS, *WRITING):
                operation["responses"].setdefault(
                    str(status), {"$ref": f"#/components/responses/Problem{status}"}
                )
    add_links(result, METHODS)
    return result


def _problem(status: int) -> dict[str, Any]:
    codes = codes_by_status()[status]
    phrase = title_of(status)
    body = {
        "type": "object",
        "allOf": [{"$ref": "#/components/schemas/Problem"}],
        "properties": {"status": {"const": status}},
    }
    examples = {
        code: {
            "value": {
                "type": TYPE_PREFIX + code.lower().replace("_", "-"),
                "title": phrase,
                "status": status,
                "detail": words,
                "code": code,
                "facts": FACTS.get(status, {}) if code in {"OUTDATED", "INVALID"} else {},
                "request_id": "5f0c1f52-6a1c-4f7e-9d1b-3a4f1d1c2b77",
            }
        }
        for code, words in codes.items()
    }
    lines = "\n".join(f"- `{code}`: {words}" for code, words in codes.items())
    return {
        "description": f"{phrase}\n\n{lines}",
        "headers": {"X-Request-ID": {"$ref": "#/components/headers/X-Request-ID"}},
        "content": {MEDIA_TYPE: {"schema": body, "examples": examples}},
    }


def _loosen(schema: dict[str, Any]) -> None:
    """Takes out what the generator says too much: what is only read may be empty where a pattern
    holds for what is written, and anything at all may be null already.
    """
    for one in schema.get("properties", {}).values():
        if one.get("readOnly"):
            one.pop("pattern", None)
        if {} in one.get("oneOf", ()):
            del one["oneOf"]


def _summary(operation_id: str) -> str:
    words = operation_id.replace("_", " ")
    return words[0].upper() + words[1:]


def _add_examples(content: dict[str, Any], schemas: dict[str, Any], path: str) -> None:
    for kind, body in content.items():
        if "json" in kind and "schema" in body and not {"example", "examples"} & set(body):
            body["example"] = example_of(body["schema"], schemas)
