"""The words of the command line, and completion made from them."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import Any

import pytest

from berthctl.arguments import SHELLS, parser, seconds, value
from berthctl.commands import COMMANDS, main
from berthctl.completion import script


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ("gpus=2", ("gpus", 2)),
        ("memory=80Gi", ("memory", "80Gi")),
        ("exact=true", ("exact", True)),
        ("where=a=b", ("where", "a=b")),
        ('name="7"', ("name", "7")),
        ("note=", ("note", "")),
        ("zones=[1, 2]", ("zones", [1, 2])),
    ],
)
def test_an_answer_is_json_where_it_reads_as_json(given: str, read: tuple[str, Any]) -> None:
    assert value(given) == read


@pytest.mark.parametrize(
    ("given", "read"), [("90", 90), ("90s", 90), ("10m", 600), ("2h", 7200), ("0", 0)]
)
def test_times(given: str, read: float) -> None:
    assert seconds(given) == read


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["nonsense"],
        ["request", "gpu"],
        ["request", "gpu", "--name", "a", "--namespace", "b", "-v", "gpus"],
        ["wait", "a", "--timeout", "soon"],
        ["wait", "a", "--timeout", "-1"],
        ["wait", "a", "--until", "tomorrow"],
        ["completion", "tcsh"],
        ["apply"],
    ],
)
def test_what_does_not_read_ends_with_2(words: list[str], capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2
    assert "usage: berth" in capsys.readouterr().err


def test_every_command_of_the_parser_does_something() -> None:
    text = parser().format_help()
    assert set(re.findall(r"^    (\w+)(?: |$)", text, re.MULTILINE)) >= set(COMMANDS)


def test_exit_codes_stand_in_every_help(capsys: Any) -> None:
    for name in COMMANDS:
        with pytest.raises(SystemExit):
            main([name, "--help"])
        assert "3  not yet" in capsys.readouterr().out


@pytest.mark.parametrize("shell", SHELLS)
def test_completion_knows_every_command(shell: str) -> None:
    text = script(shell, parser())
    for name in COMMANDS:
        assert name in text
    assert "dry-run" in text


def test_bash_takes_its_completion() -> None:
    bash = shutil.which("bash")
    assert bash
    asked = (
        f"{script('bash', parser())}\n"
        "COMP_WORDS=(berth re) COMP_CWORD=1; _berth; echo ${COMPREPLY[@]}\n"
        "COMP_WORDS=(berth release --dr) COMP_CWORD=2; _berth; echo ${COMPREPLY[@]}\n"
    )
    said = subprocess.run([bash], input=asked, capture_output=True, text=True, check=True)
    assert said.stdout.split("\n")[:2] == ["request release", "--dry-run"]
    assert said.stderr == ""
