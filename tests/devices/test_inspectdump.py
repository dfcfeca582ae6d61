"""`manage.py inspectdump`: the rules over files, offline."""

from __future__ import annotations

import io
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.devices.dra.cases import PATHS, by_number, oracles


def printed(*files: Path | str, **options: Any) -> str:
    out = io.StringIO()
    call_command("inspectdump", *map(str, files), stdout=out, **options)
    return out.getvalue()


def records(*files: Path | str, **options: Any) -> list[dict[str, Any]]:
    text = printed(*files, json=True, **options)
    return [json.loads(line) for line in text.splitlines()]


def of_kind(found: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [record for record in found if record["kind"] == kind]


def about(found: list[dict[str, Any]], kind: str, subject: str) -> list[dict[str, Any]]:
    return [record for record in of_kind(found, kind) if record["subject"] == subject]


def gates_of(path: Path) -> str:
    """What a case presumes: everything on but list attributes, or those too."""
    lists = "GATES: DRAListTypeAttributes" in path.read_text()
    return f"all,DRAListTypeAttributes={str(lists).lower()}"


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_every_case_gives_the_oracles_answers(path) -> None:
    found = records(path, release="1.36", gates=gates_of(path))
    verdicts = {(v["subject"], v["node"]): v for v in of_kind(found, "verdict")}
    for oracle in oracles():
        if oracle.case != path.stem:
            continue
        verdict = verdicts[f"{oracle.kind}/{oracle.name}", oracle.node]
        assert verdict["verdict"] == oracle.verdict, oracle
        if oracle.verdict == "OK":
            devices = [device.rpartition("/")[2] for device in verdict["devices"]]
            assert devices == oracle.rest.split(), oracle
        elif oracle.verdict != "NO":
            assert oracle.rest in verdict["message"], oracle


def test_a_pods_verdict_carries_the_devices_own() -> None:
    [verdict] = about(records(by_number("14"), gates="all"), "verdict", "pod/budget-small")
    assert (verdict["verdict"], verdict["device_verdict"]) == ("NO", "OK")
    assert verdict["message"].startswith("pod level request for cpu")


def test_a_no_is_explained_with_its_funnel_and_what_helps() -> None:
    answers = records(by_number("07"), release="1.36")
    [found] = about(answers, "explanation", "template/two-halves")
    assert (found["code"], found["class"], found["who"]) == (
        "NO_MATCHING_DEVICE_FREE",
        "retryable",
        "nobody",
    )
    assert [step["left"] for step in found["funnel"][0]["steps"]] == [5, 2, 1]
    assert [(hint["change"], hint["release"]) for hint in found["hints"]] == [
        ("wait", ["team-b/half-0"]),
        ("count", []),
    ]


def test_what_the_cluster_said_stands_beside_what_the_rules_say() -> None:
    [found] = about(records(by_number("14"), gates="all"), "explanation", "pod/budget-small")
    assert found["code"] == found["said"]["code"] == "POD_BUDGET_TOO_SMALL"
    assert "raise it to at least 5" in " ".join(found["evidence"])


def test_findings_and_charges_are_lines_of_their_own() -> None:
    found = records(by_number("50"), gates="all")
    assert {
        (c["quantity"], c["payer"], c["rule"], c["code"]) for c in of_kind(found, "charge")
    } == {
        ("2", "claim/team-a/run", "mapping", ""),
        ("2", "claim/team-a/term", "mapping", ""),
        ("2", "claim/team-a/vanished", "mapping", "LEDGER_CLAIM_GONE"),
    }
    [leak] = of_kind(found, "leak")
    assert (leak["code"], leak["claims"]) == ("LEAK_UNRESERVED", ["team-a/idle"])
    owners = of_kind(records(by_number("34")), "ownership")
    assert [o["node"] for o in owners if o["owner"] == "conflict"] == ["n1", "n4"]


def test_capacity_adds_up() -> None:
    for path in PATHS:
        for found in of_kind(records(path, gates="all"), "capacity"):
            parts = [found["idle"], found["allocated"], found["fragmented"]]
            parts += [*found["unavailable"].values(), *found["unknown"].values()]
            assert sum(parts) == found["total"]


def test_unknown_amounts_are_said_to_be_unknown(tmp_path) -> None:
    text = by_number("12").read_text()
    odd = tmp_path / "odd.yaml"
    odd.write_text(re.sub(r"    resources: \{cpu.*\n", "    novel: {cpu: 4}\n", text))
    found = records(odd, release="1.36", gates="all")
    assert {c["quantity"] for c in of_kind(found, "charge") if c["claim"]} == {"unknown"}
    assert "unknown free" in printed(odd, release="1.36", gates="all")


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_every_case_has_words_for_people(path) -> None:
    text = printed(path, gates="all")
    assert "Capacity" in text and "Traceback" not in text
    assert all(char.isprintable() or char == "\n" for char in text)


def test_equal_nodes_stand_together() -> None:
    text = printed(by_number("47"))
    assert "NO on node-o5, node-o6, node-o7: cannot allocate all claims" in text
    assert "team-a/nic alone fits node-o7" in text


def test_broken_files_are_named_and_the_rest_is_answered(tmp_path) -> None:
    half = tmp_path / "half.yaml"
    half.write_text("kind: Node\nmetadata: {name: n\n")
    slices = tmp_path / "slice.yaml"
    slices.write_text("kind: ResourceSlice\nmetadata: {name: s}\nspec: {driver: d}\n")
    text = printed(tmp_path / "absent", tmp_path, half, slices, by_number("15"))
    assert f"{tmp_path / 'absent'}: cannot be opened: No such file or directory" in text
    assert f"{tmp_path}: cannot be opened: Is a directory" in text
    assert f"{half}:3: the YAML breaks off here" in text
    assert f"{slices}:1: ResourceSlice/s is left out: spec: Object missing required" in text
    assert "template/nic in team-a: Fits now, on node-n1." in text


def test_a_files_name_that_is_no_text_is_shown_all_the_same(tmp_path) -> None:
    odd = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.yaml"))
    odd.write_text("a: b\n")
    [problem] = of_kind(records(by_number("15"), odd), "problem")
    assert problem["file"].endswith("caf\N{REPLACEMENT CHARACTER}.yaml")


def test_a_dump_with_nothing_in_it_fails_with_a_sentence(tmp_path) -> None:
    empty = tmp_path / "empty.yaml"
    empty.touch()
    with pytest.raises(CommandError, match="Nothing was read that says anything about devices"):
        printed(empty)


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"gates": "Foo=true"}, "no gate is called Foo."),
        ({"gates": "some"}, "gates start with default or all, not 'some'."),
        ({"release": "1.20"}, "release 1.20 is not one of 1.34, 1.35, 1.36, 1.37."),
        (
            {"release": "1.35", "gates": "DRADerivedAttributes=true"},
            "DRADerivedAttributes does not exist before 1.37.",
        ),
    ],
)
def test_settings_that_cannot_be_are_refused(options, sentence) -> None:
    with pytest.raises(CommandError, match=re.escape(sentence)):
        printed(by_number("01"), **options)


def test_gates_change_the_answer() -> None:
    def answer(gates: str) -> str:
        found = of_kind(records(by_number("19"), gates=gates), "verdict")
        return next(v["verdict"] for v in found if v["subject"] == "template/three-slots")

    assert answer("default") == "OK"
    assert answer("default,DRAConsumableCapacity=false") == "FATAL"
