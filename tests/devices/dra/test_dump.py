"""Files that people print, edit, cut off and mix up → objects, and a sentence for the rest."""

from __future__ import annotations

import json

import pytest

from devices.dra.dump import MOST_YAML, read_dump
from devices.dra.shapes import wrong_shape
from tests.devices.dra.cases import PATHS

NODE = "kind: Node\nmetadata: {name: n1}\n"


def titles(*files: bytes) -> list[str]:
    return [f.title for f in read_dump((f"f{n}", c) for n, c in enumerate(files)).objects]


def problems(content: bytes) -> list[str]:
    return [str(problem) for problem in read_dump([("f", content)]).problems]


def places(content: str) -> dict[str, int]:
    return {f.title: f.place.line for f in read_dump([("f", content.encode())]).objects}


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_every_case_is_read_without_a_problem(path) -> None:
    dump = read_dump([(path.name, path.read_bytes())])
    assert dump.problems == () and len(dump.objects) >= 2


def test_objects_stand_where_they_begin() -> None:
    assert places("---\n" + NODE + "---\n# note\n\n" + NODE.replace("n1", "n2")) == {
        "Node/n1": 2,
        "Node/n2": 7,
    }


def test_items_of_a_yaml_list_have_lines_of_their_own() -> None:
    items = "- metadata: {name: n1}\n- metadata:\n    name: n2\n"
    text = f"apiVersion: v1\nkind: NodeList\nitems:\n{items}"
    assert places(text) == {"Node/n1": 4, "Node/n2": 5}


def test_items_of_a_json_list_have_lines_of_their_own() -> None:
    nodes = [{"kind": "Node", "metadata": {"name": f"n{number}"}} for number in (1, 2)]
    text = json.dumps({"kind": "List", "items": nodes}, indent=4)
    assert places(text) == {"Node/n1": 4, "Node/n2": 10}


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(NODE, id="yaml"),
        pytest.param('{"kind": "Node", "metadata": {"name": "n1"}}', id="json"),
        pytest.param('[{"kind": "Node", "metadata": {"name": "n1"}}]', id="a json array"),
        pytest.param('{"kind":"NodeList","items":[{"metadata":{"name":"n1"}}]}', id="a typed list"),
        pytest.param("- kind: Node\n  metadata: {name: n1}\n", id="a yaml sequence"),
        pytest.param("\ufeff" + NODE, id="with a byte order mark"),
    ],
)
def test_the_forms_in_which_objects_are_printed(content) -> None:
    assert titles(content.encode()) == ["Node/n1"]
    assert titles(content.removeprefix("\ufeff").encode("utf-16")) == ["Node/n1"]


def test_documents_of_json_one_after_the_other() -> None:
    nodes = [{"kind": "Node", "metadata": {"name": name}} for name in ("n1", "n2")]
    one, other = map(json.dumps, nodes)
    assert titles(f"{one}\n{other}\n".encode()) == ["Node/n1", "Node/n2"]
    assert titles(one.encode(), other.encode()) == ["Node/n1", "Node/n2"]


def test_time_stamps_stay_text() -> None:
    [found] = read_dump([("f", (NODE + "at: 2026-06-03T08:00:00Z\n").encode())]).objects
    assert found.raw["at"] == "2026-06-03T08:00:00Z"


@pytest.mark.parametrize(
    "content, sentence",
    [
        pytest.param("", "f:1: the file is empty", id="empty"),
        pytest.param("  \n\n", "f:1: the file is empty", id="blank"),
        pytest.param("just words\n", "f:1: this is a text, not a Kubernetes object", id="words"),
        pytest.param("12\n", "f:1: this is a number, not a Kubernetes object", id="a number"),
        pytest.param("a: b\n", "f:1: this is no Kubernetes object: it has no kind", id="no kind"),
        pytest.param("kind: Node\n", "f:1: this Node has no metadata.name", id="no name"),
        pytest.param(
            "a: &x [1]\nb: *x\n",
            "f:1: this document has anchors, which kubectl never prints",
            id="anchors",
        ),
        pytest.param(
            "kind: Node\nmetadata: {name: n1\n",
            "f:3: the YAML breaks off here: did not find expected ',' or '}'",
            id="half a document",
        ),
        pytest.param(
            '{"kind": "Node",\n "metadata": {"na',
            "f:2: the JSON breaks off here: Unterminated string starting at",
            id="half a json document",
        ),
        pytest.param(
            '{"kind": "Node", "metadata": {"name": "n", "labels": {"a": "\\ud800"}}}',
            "f:1: this object is left out: it holds half a character, as \\ud800 is",
            id="half a character",
        ),
        pytest.param(
            NODE + "spec: {taints: {}}\n",
            "f:1: Node/n1 is left out: spec.taints: Expected `array | null`, got `object`",
            id="a wrong shape",
        ),
    ],
)
def test_what_cannot_be_read_is_said(content, sentence) -> None:
    assert problems(content.encode()) == [sentence]


def test_what_is_no_text_is_said() -> None:
    assert problems(b"kind: Node\n\xff\n") == ["f:2: this is no text: it is not encoded as UTF-8"]


def test_deep_nesting_is_a_sentence_and_no_crash() -> None:
    assert problems(b"[" * 200_000) == ["f:1: the JSON breaks off here: nested too deeply"]
    [said] = problems(b"kind: Node\nx: " + b"[" * 20_000)
    assert "nest" in said


def test_the_rest_is_read_all_the_same() -> None:
    half = "kind: List\nitems:\n- kind: Node\n  metadata: {name: n1}\n- kind: Node\n  metadata: {na"
    whole = NODE.replace("n1", "n2")
    dump = read_dump([("half", half.encode()), ("whole", ("a: b\n---\n" + whole).encode())])
    assert [found.title for found in dump.objects] == ["Node/n1", "Node/n2"]
    assert [problem.place.file for problem in dump.problems] == ["half", "whole"]
    cut = '{"kind": "NodeList", "items": [{"metadata": {"name": "n1"}}, {"metadata": {"na'
    assert titles(cut.encode()) == ["Node/n1"]


def test_characters_that_json_writes_in_two_halves_are_read() -> None:
    pod = '{"kind": "Pod", "metadata": {"name": "\\ud83d\\ude00"}} {"kind": "Node"'
    assert titles(pod.encode()) == ["Pod/\N{GRINNING FACE}"]


def test_of_two_objects_with_one_name_the_later_one_counts() -> None:
    dump = read_dump(
        [("a", NODE.encode()), ("b", (NODE + "spec: {unschedulable: true}\n").encode())]
    )
    [found] = dump.objects
    assert found.place.file == "b" and found.raw["spec"] == {"unschedulable": True}
    assert [str(p) for p in dump.problems] == [
        "b:1: Node/n1 stands at a:1 already; this one counts"
    ]


def test_yaml_that_would_take_minutes_is_turned_down_with_a_way_out() -> None:
    big = b"# dump\n" + b"a: b\n" * (MOST_YAML // 5)
    [said] = problems(big)
    assert said.startswith("f:1: 64 MiB of YAML would take minutes") and "-o json" in said


@pytest.mark.parametrize(
    "raw, wrong",
    [
        ({"kind": "ConfigMap", "metadata": 7}, ""),
        ({"kind": "Node", "metadata": {"name": "n", "labels": {"a": 1}}}, "metadata.labels[...]"),
        ({"kind": "Pod", "metadata": {"name": "p"}, "spec": {"priority": "high"}}, "spec.priority"),
        ({"kind": "ResourceSlice", "metadata": {"name": "s"}}, "spec"),
        ({"kind": "DeviceClass", "metadata": {"name": "c"}, "spec": None}, ""),
        ({"kind": "DeviceClass", "metadata": {"name": "c"}, "new": [1]}, ""),
    ],
)
def test_the_shape_of_a_kind(raw, wrong) -> None:
    found = wrong_shape(raw)
    assert (wrong in found) if wrong else found == ""
