"""What differs between two versions, and what a later one must not lack."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from devices.dra.templates import read_template
from devices.dra.versiondiff import SEAL, Side, changes_in_words, compare, removed

CONTENT: dict[str, Any] = {
    "requests": [{"name": "gpu", "device_class": "a100", "words": "GPU"}],
    "parameters": [
        {
            "kind": "choice",
            "name": "memory",
            "label": "Memory",
            "default": "40",
            "options": [
                {"value": "40", "label": "40 GB"},
                {"value": "80", "label": "80 GB", "device_class": {"gpu": "h100"}},
            ],
        },
        {"kind": "count", "name": "gpus", "label": "How many", "request": "gpu", "maximum": 4},
    ],
}


def a_side(change: Any = None, name: str = "GPU") -> Side:
    content = copy.deepcopy(CONTENT)
    if change:
        change(content)
    return Side(name, "One or more GPUs.", "gpu", content, read_template(content))


def lines(before: Side | None, after: Side) -> list[tuple[str, str | None, str | None]]:
    return [
        (f"{part.group}: {part.label}", part.before, part.after)
        for part in compare(before, after)
        if part.changed and part.group != SEAL
    ]


def test_equal_versions_have_no_changed_line() -> None:
    assert not any(part.changed for part in compare(a_side(), a_side()))


def test_a_first_version_is_new_from_end_to_end() -> None:
    parts = compare(None, a_side())
    assert all(part.before is None and part.after is not None for part in parts)
    assert {"Device GPU", "Question Memory", "Question How many", "Name"} <= {
        part.group for part in parts
    }


@pytest.mark.parametrize(
    ("change", "says"),
    [
        pytest.param(
            lambda content: content["parameters"][1].update(maximum=8),
            [("Question How many: maximum", "4", "8")],
            id="another bound",
        ),
        pytest.param(
            lambda content: content["parameters"][0]["options"].append(
                {"value": "20", "label": "20 GB"}
            ),
            [
                ("Question Memory: options[20].value", None, "20"),
                ("Question Memory: options[20].asked as", None, "20 GB"),
            ],
            id="one more answer",
        ),
        pytest.param(
            lambda content: content["requests"][0].update(device_class="l40s"),
            [
                ("In plain words, with the answers it starts with: It says",
                 "1 × GPU of class a100.", None),
                ("In plain words, with the answers it starts with: It says", None,
                 "1 × GPU of class l40s."),
                ("Device GPU: class", "a100", "l40s"),
                ("What is applied for these answers: "
                 "devices.requests[gpu].exactly.deviceClassName", "a100", "l40s"),
            ],
            id="another class, in words, as written and as applied",
        ),
        pytest.param(
            lambda content: content["requests"][0].update(
                selectors=['device.driver == "gpu.example.com"']
            ),
            None,
            id="a selector",
        ),
    ],
)  # fmt: skip
def test_what_changed_stands_under_its_heading(change: Any, says: Any) -> None:
    found = lines(a_side(), a_side(change))
    if says is None:
        assert any("device.driver ==" in (after or "") for _, _, after in found)
    else:
        assert found == says


def test_whatever_changes_breaks_the_seal() -> None:
    def reorder(content: dict[str, Any]) -> None:
        content["parameters"].reverse()

    assert any(part.changed for part in compare(a_side(), a_side(reorder)))


def test_groups_without_a_change_are_left_out() -> None:
    after = a_side(lambda content: content["parameters"][1].update(maximum=8))
    assert {part.group for part in compare(a_side(), after)} == {"Question How many", SEAL}


@pytest.mark.parametrize(
    ("change", "path", "says"),
    [
        pytest.param(
            lambda content: content["parameters"].pop(1), "parameters", "gpus", id="a question"
        ),
        pytest.param(
            lambda content: content["parameters"][0]["options"].pop(1),
            "parameters[0].options",
            "80",
            id="an answer",
        ),
        pytest.param(
            lambda content: content["parameters"].__setitem__(
                1, {"kind": "switch", "name": "gpus", "label": "Many"}
            ),
            "parameters",
            "gpus",
            id="a question of another kind",
        ),
    ],
)
def test_what_was_offered_is_never_removed(change: Any, path: str, says: str) -> None:
    (problem,) = removed(read_template(CONTENT), a_side(change).template)
    assert problem.path == path
    assert problem.text.startswith(says)


def test_hiding_an_answer_removes_nothing() -> None:
    hidden = a_side(lambda content: content["parameters"][0]["options"][1].update(instead="40"))
    assert list(removed(read_template(CONTENT), hidden.template)) == []


def test_who_gave_answers_reads_what_differs_for_them() -> None:
    after = a_side(lambda content: content["parameters"][0]["options"][1].pop("device_class"))
    assert changes_in_words(a_side(), after, {"memory": "40"}) == []
    assert changes_in_words(a_side(), after, {"memory": "80", "gpus": 2}) == [
        "No more: 2 × GPU of class h100.",
        "Now: 2 × GPU of class a100.",
    ]
