"""What an author writes: read strictly, with the line of each part, and written as it was read."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.dra.written import DEEPEST, LONGEST, Unreadable, read, write

TEXT = """\
# For training; ask Iris before touching the classes.
requests:
  - name: gpu
    device_class: h100   # the one with NVLink
    words: H100
parameters:
  - kind: count
    name: gpus
    maximum: 8
"""


def test_a_text_says_what_it_says_and_knows_its_lines() -> None:
    written = read(TEXT)
    assert written.content == {
        "requests": [{"name": "gpu", "device_class": "h100", "words": "H100"}],
        "parameters": [{"kind": "count", "name": "gpus", "maximum": 8}],
    }
    assert written.line_of("requests[0].device_class") == 4
    assert written.line_of("parameters[0].label") == 7, "what is missing stands where its parent is"
    assert written.line_of("parameters[3]") == 6
    assert written.line_of("") == 2


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("a: yes", {"a": "yes"}, id="yes is a word"),
        pytest.param("a: on", {"a": "on"}, id="on is a word"),
        pytest.param("a: true", {"a": True}, id="true is true"),
        pytest.param("a: 010", {"a": "010"}, id="a number with a leading zero is a word"),
        pytest.param("a: 1:30", {"a": "1:30"}, id="minutes and seconds are a word"),
        pytest.param("a: 2026-11-02", {"a": "2026-11-02"}, id="a date is a word"),
        pytest.param("a: 80", {"a": 80}, id="a number is a number"),
        pytest.param('a: "80"', {"a": "80"}, id="a quoted number is a word"),
        pytest.param("a: 80Gi", {"a": "80Gi"}, id="a quantity is a word"),
        pytest.param("a: 1.5", {"a": 1.5}, id="a fraction is a fraction"),
        pytest.param("a:", {"a": None}, id="nothing is nothing"),
        pytest.param("1: b", {"1": "b"}, id="a name is a word, whatever it looks like"),
        pytest.param('{\n\t"a": [1, null]\n}', {"a": [1, None]}, id="JSON with tabs"),
    ],
)
def test_what_a_word_means(text: str, value: Any) -> None:
    assert read(text).content == value


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        pytest.param("a: 1\nb: [1,\nc: 2\n", 3, "flow", id="a bracket that nobody closes"),
        pytest.param("a: 1\na: 2", 2, "a stands here twice", id="a name twice"),
        pytest.param("a: &x 1\nb: *x", 1, "references", id="an anchor"),
        pytest.param("a: 1\nb: *x", 2, "references", id="an alias"),
        pytest.param("a: !!python/name:os.system x", 1, "Tags", id="a tag"),
        pytest.param("? [a]\n: 1", 1, "one word", id="a list as a name"),
        pytest.param("a: 1\nb: \x07", 2, "nobody can see", id="a bell"),
        pytest.param("", 1, "Nothing is written", id="nothing"),
        pytest.param("a: 1\n---\nb: 2", 2, "single document", id="two documents"),
        pytest.param("[" * (DEEPEST + 1), 1, "Nested", id="nested too deep"),
        pytest.param("x" * (LONGEST + 1), 1, "Keep it below", id="a book"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(text: str, line: int, says: str) -> None:
    with pytest.raises(Unreadable) as unreadable:
        read(text)
    assert says in unreadable.value.text
    assert unreadable.value.line == line


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
    ),
    max_leaves=12,
)


@settings(max_examples=60)
@given(content=st.dictionaries(st.text(max_size=8), JSON, max_size=4))
def test_what_is_written_is_read_as_it_was(content: dict[str, Any]) -> None:
    assert read(write(content)).content == content
