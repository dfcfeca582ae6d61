"""What `berth apply` reads, and what it makes of it."""

from __future__ import annotations

from typing import Any

import pytest

from berthctl.manifests import Step, distinct, key, read, step
from berthctl.outcomes import USAGE, Failure

ONE = """
apiVersion: berth.dev/v1
kind: Claim
metadata: {name: train, namespace: tidewater-train}
spec: {template: gpu, values: {gpus: 2}, atOnce: 3, note: nightly}
"""
PRESENT = {
    "template": "gpu",
    "values": {"gpus": 2, "memory": "80"},
    "at_once": 3,
    "note": "nightly",
}


def test_a_document_becomes_the_body_of_an_ask() -> None:
    (wanted,) = read(ONE, "a.yaml")
    assert wanted.ask == {
        "name": "train",
        "namespace": "tidewater-train",
        "template": "gpu",
        "values": {"gpus": 2},
        "at_once": 3,
        "note": "nightly",
    }
    assert wanted.source == "a.yaml, document 1"


def test_empty_documents_between_are_no_claims() -> None:
    assert [one.name for one in read(f"---\n---{ONE}---{ONE.replace('train,', 'eval,')}", "x")] == [
        "train",
        "eval",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: [", "no YAML"),
        ("", "no claim in it"),
        ("- a", "document 1: a document is a mapping"),
        (ONE.replace("berth.dev/v1", "v1"), "apiVersion is berth.dev/v1 and kind is Claim"),
        (ONE.replace("name: train", "names: train"), "no such field: metadata.names"),
        (ONE.replace("atOnce", "at_once"), "no such field: spec.at_once"),
        (ONE.replace("name: train", "name: 7"), "metadata.name is a text"),
        (ONE.replace("{gpus: 2}", "[2]"), "spec.values is a mapping"),
        (ONE.replace("template: gpu", "template: ''"), "spec.template is a text"),
    ],
)
def test_a_wrong_document_is_named(text: str, said: str) -> None:
    with pytest.raises(Failure, match=said) as caught:
        read(text, "a.yaml")
    assert caught.value.exit_code == USAGE
    assert "a.yaml" in caught.value.words


def test_one_claim_in_two_files_is_a_mistake() -> None:
    with pytest.raises(Failure, match=r"stands twice: in a.yaml, document 1 and in b.yaml"):
        distinct([*read(ONE, "a.yaml"), *read(ONE, "b.yaml")])


@pytest.mark.parametrize(
    ("present", "then"),
    [
        (None, Step.REQUEST),
        (PRESENT, Step.NOTHING),
        ({**PRESENT, "note": "weekly"}, Step.NOTE),
        ({**PRESENT, "values": {"gpus": 4}}, Step.REPLACE),
        ({**PRESENT, "template": "other"}, Step.REPLACE),
        ({**PRESENT, "at_once": 1, "note": "weekly"}, Step.REPLACE),
    ],
)
def test_what_is_so_already_is_left_alone(present: dict[str, Any] | None, then: Step) -> None:
    (wanted,) = read(ONE, "a.yaml")
    assert step(wanted, present) is then


def test_what_a_document_leaves_out_is_as_it_is() -> None:
    (wanted,) = read(ONE.replace(", atOnce: 3, note: nightly", ""), "a.yaml")
    assert step(wanted, {**PRESENT, "note": "by hand", "at_once": 9}) is Step.NOTHING


def test_two_runs_at_once_have_one_key_and_one_after_a_release_another() -> None:
    (wanted,), (again,) = read(ONE, "a.yaml"), read(ONE, "elsewhere.yaml")
    assert key(wanted, ["k1", "k2"]) == key(again, ["k2", "k1"])
    assert key(wanted, []) != key(wanted, ["k1"])
    (other,) = read(ONE.replace("gpus: 2", "gpus: 3"), "a.yaml")
    assert key(other, []) != key(wanted, [])
