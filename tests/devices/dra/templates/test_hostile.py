"""Whatever a tenant sends: what is made is put together from what the author wrote, and numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from devices.dra.quantity import QuantityError, parse
from devices.dra.templates import BadValue, answers, read_template, render, settle
from portal.management.demo_templates import TEMPLATES
from tests.devices.dra.templates.contents import EVERYTHING

CONTENTS = [EVERYTHING, *(entry[3] for entry in TEMPLATES.values())]
HOSTILE = [
    '80" || true || "',
    "x'; drop table devices_claim; --",
    "${jndi:ldap://x}",
    "!!python/object/apply:os.system [ls]",
    "a: b\n- c",
    "\x00",
    "9" * 5000,
    "1e999",
    "-1",
    "0x10",
    "１２",
    "Infinity",
    "1Gi\n",
    "<script>",
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(HOSTILE),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=3,
)
VALID = st.sampled_from(["rdma", "tcp", "none", "400", "100", True, False, 1, 2, 4, "8", "2Gi", ""])
NAMES = sorted({one["name"] for content in CONTENTS for one in content.get("parameters", [])})
SENT = st.dictionaries(st.sampled_from([*NAMES, "colour"]), JSON | VALID, max_size=6)


@given(st.sampled_from(CONTENTS), SENT)
@example(EVERYTHING, {"network": "rdma", "memory": "1.5", "clients": 3, "patient": True})
@example(EVERYTHING, {"network": HOSTILE[0], "memory": HOSTILE[6], "clients": HOSTILE[10]})
def test_no_value_becomes_text_of_an_object(content: dict[str, Any], sent: dict[str, Any]) -> None:
    template = read_template(content)
    settled = settle(template, sent)
    assert_own(content, render(template, settled))
    try:
        taken = answers(template, sent)
    except BadValue as bad:
        assert all(bad.fields.values()), "every refusal says what would be right"
    else:
        assert taken == settled, "what is allowed is taken as it is"
        assert_own(content, render(template, taken))


def assert_own(content: dict[str, Any], objects: list[dict[str, Any]]) -> None:
    own = set(texts(content)) | {"ExactCount"}
    for obj in objects:
        spec = obj["spec"].get("spec") or obj["spec"]
        for text in texts(spec["devices"]):
            assert text in own or is_quantity(text) or composed(text, own), text


def texts(part: Any) -> Iterator[str]:
    """Every text in something, values and names of fields."""
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict):
        for key, value in part.items():
            if isinstance(value, str | int | float | bool | dict | list):
                yield from texts(value)
            if "/" in key:  # names of capacities; the others are the API's own
                yield key
    elif isinstance(part, list | tuple):
        for one in part:
            yield from texts(one)


def composed(text: str, own: set[str]) -> bool:
    """ "gpu/small": a request and one of its alternatives."""
    return all(part in own for part in text.split("/"))


def is_quantity(text: str) -> bool:
    try:
        return str(parse(text)) == text
    except QuantityError:
        return False
