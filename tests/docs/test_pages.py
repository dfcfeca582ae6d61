"""Links lead somewhere, every command is one that exists, every document in docs can be read.

What docs say to run is run: by the test that `RUN_BY` names, by `test_running.py`, or not at all
for the reason that stands in `ELSEWHERE`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from django.core.management import get_commands, load_command_class

from berthctl.arguments import parser as berth_parser
from playground.commands.table import TABLE
from portal.api.problemcodes import codes_by_status
from tests.docs.examples import ROOT, Command, anchors, blocks, commands, files, links

#: Programs of others, and why docs' lines with them are not run as they stand.
ELSEWHERE = {
    "kubectl": "against a cluster with Berth's image; what is applied is applied in tests/deploy",
    "helm": "with a registry; tests/deploy/test_install.py installs, upgrades, removes the chart",
    "docker": "no registry and no daemon where the tests run; tests/deploy/test_install.py judges "
    "what Dockerfile and docker-compose.yml say",
    "pg_dump": "tests/portal/test_backup.py runs it over a database of its own",
    "pg_restore": "the same",
    "createdb": "the same",
    "apt-get": "the machine's own packages; .ci/run installs them",
    "openssl": "makes a secret; any will do",
    "jq": "reads what inspectdump printed",
    "xargs": "of kubectl's lines",
    "curl": "tests/docs/test_running.py runs each",
    "pip": "Berth is not on a registry",
}
#: Who runs a command of ours: the file names it.
RUN_BY = {
    "berth": "tests/journeys/test_command_line.py",
    "manage.py changepassword": "",  # Django's own
    "manage.py checkrights": "tests/devices/ledger/test_checkrights.py",
    "manage.py collectstatic": "tests/deploy/test_install.py",
    "manage.py createsuperuser": "",  # Django's own
    "manage.py doctor": "tests/devices/doctor/test_runs.py",
    "manage.py eraseperson": "tests/tenants/test_erasure.py",
    "manage.py exportbundle": "tests/migrationplan/test_evidence.py",
    "manage.py exportledger": "tests/devices/ledger/test_book.py",
    "manage.py exportperson": "tests/tenants/test_erasure.py",
    "manage.py forgetold": "tests/portal/test_retention.py",
    "manage.py inspectdump": "tests/devices/test_inspectdump.py",
    "manage.py makeadmin": "tests/tenants/test_roles.py",
    "manage.py migrate": "tests/portal/test_backup.py",
    "manage.py removesecondfactor": "tests/tenants/test_signin.py",
    "manage.py replayledger": "tests/devices/ledger/test_book.py",
    "manage.py scheduleplan": "tests/migrationplan/test_scheduleplan.py",
    "manage.py verifyaudit": "tests/portal/test_audit.py",
    "manage.py verifybundle": "tests/migrationplan/test_evidence.py",
    "manage.py verifyreceipt": "tests/devices/test_closing_pages.py",
    "manage.py watchcluster": "tests/portal/test_watchcluster.py",
    "playground build": "tests/playground/building/test_controlplane_build.py",
    "playground demo": "tests/playground/demo/test_demo.py",
    "playground down": "tests/playground/commands/test_controlplane_commands.py",
    "playground fault": "tests/playground/faults/test_faults.py",
    "playground fleet": "tests/playground/commands/test_fleet_command.py",
    "playground": "tests/playground/commands/test_controlplane_commands.py",
    "playground.agreement": "tests/playground/agreement/test_agreement.py",
    "playground kubeconfig": "tests/playground/commands/test_controlplane_commands.py",
    "playground load": "tests/playground/plane/test_load.py",
    "playground services": "tests/playground/running/test_services.py",
    "playground status": "tests/playground/commands/test_controlplane_commands.py",
    "playground up": "tests/playground/commands/test_controlplane_commands.py",
}
COMMANDS = list(commands())


def ours(command: Command) -> tuple[str, list[str]] | None:
    """A command of Berth's own as (its name in RUN_BY, its arguments); None for others."""
    words = [word for word in command.words if word not in {"exec", "--"}]
    for index, word in enumerate(words):
        if word.endswith("manage.py") and index + 1 < len(words):
            return f"manage.py {words[index + 1]}", _arguments(words[index + 2 :])
        if words[index : index + 2] == ["-m", "playground"]:
            return " ".join(words[index + 1 : index + 3]), _arguments(words[index + 3 :])
        if words[index : index + 2] == ["-m", "playground.agreement"]:
            return "playground.agreement", []
    if words[0] == "berth":
        return "berth", _arguments(words[1:])
    return None


def _arguments(words: list[str]) -> list[str]:
    """Up to where the output goes, or another program begins."""
    ends = [index for index, word in enumerate(words) if word in {"<", ">", ">>"}]
    return words[: min(ends, default=len(words))]


@pytest.mark.parametrize("file", files(), ids=lambda file: str(file.relative_to(ROOT)))
def test_links_lead_somewhere(file: Path) -> None:
    lost = []
    for line, target in links(file):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        place = (file.parent / path).resolve() if path else file
        if not place.exists():
            lost.append(f"line {line}: {target}")
        elif anchor and place.suffix == ".md" and anchor not in anchors(place):
            lost.append(f"line {line}: no heading {target}")
    assert lost == []


def test_every_program_in_docs_is_run_by_a_test_or_has_its_reason() -> None:
    unknown = []
    for command in COMMANDS:
        found = ours(command)
        program = command.words[0].rpartition("/")[2]
        if found is not None:
            known = found[0] in RUN_BY
        elif program in {"make", "grep", "tr"}:
            known = True
        elif program == "python":
            known = "pytest" in command.words or command.words[1:] == ()
        else:
            known = program in ELSEWHERE
        if not known:
            unknown.append(str(command))
    assert unknown == [], "\n".join(unknown)


@pytest.mark.parametrize("name", sorted(name for name, file in RUN_BY.items() if file))
def test_the_test_that_runs_a_command_names_it(name: str) -> None:
    text = (ROOT / RUN_BY[name]).read_text()
    assert name.split()[-1].removesuffix("ctl") in text


def _whole(name: str) -> list[Command]:
    return [
        one for one in COMMANDS if (found := ours(one)) is not None and found[0].startswith(name)
    ]


def _options_of(parser: argparse.ArgumentParser) -> set[str]:
    return {option for action in parser._actions for option in action.option_strings}


def _judge(command: Command, parser: argparse.ArgumentParser, arguments: list[str]) -> None:
    """A whole command is parsed; of a mere mention only the options are looked at."""
    if command.whole:
        try:
            parser.parse_args(arguments)
        except SystemExit:
            pytest.fail(f"{command}: its own parser does not take that", pytrace=False)
        return
    asked = {word.partition("=")[0] for word in arguments if re.match(r"--?[a-z]", word)}
    assert asked <= _options_of(parser), f"{command}: no such option"


@pytest.mark.parametrize("command", _whole("manage.py "), ids=str)
def test_manage_py_takes_what_docs_say(command: Command) -> None:
    name, arguments = ours(command) or ("", [])
    name = name.removeprefix("manage.py ")
    parser = load_command_class(get_commands()[name], name).create_parser("manage.py", name)
    parser.called_from_command_line = True  # so that it exits instead of raising
    _judge(command, parser, arguments)


@pytest.mark.parametrize("command", _whole("playground "), ids=str)
def test_the_playground_takes_what_docs_say(command: Command) -> None:
    name, arguments = ours(command) or ("", [])
    row = TABLE[name.removeprefix("playground ")]
    parser = argparse.ArgumentParser()
    getattr(importlib.import_module(row.module), row.arguments)(parser)
    _judge(command, parser, arguments)


@pytest.mark.parametrize("command", [one for one in _whole("berth") if one.whole], ids=str)
def test_berth_takes_what_docs_say(command: Command) -> None:
    _judge(command, berth_parser(), (ours(command) or ("", []))[1])


def test_make_has_the_targets_that_docs_name() -> None:
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), re.MULTILINE))
    named = {
        word
        for command in COMMANDS
        if command.words[0] == "make"
        for word in command.words[1:]
        if "=" not in word
    }
    assert named <= targets


def test_files_that_commands_read_are_there() -> None:
    for command in COMMANDS:
        for word in command.words:
            # kubectl calls a Deployment deploy/NAME.
            if re.match(r"(deploy|tests|docs|playground)/(?!berth-)[\w./-]+$", word):
                assert (ROOT / word).exists(), str(command)


READ: dict[str, Callable[[str], object]] = {
    "json": json.loads,
    "yaml": lambda text: list(yaml.safe_load_all(text)),
    "python": lambda text: compile(text, "docs", "exec"),
}


@pytest.mark.parametrize(
    "text, language",
    [pytest.param(one.text, one.language, id=str(one)) for one in blocks() if one.language in READ],
)
def test_documents_can_be_read(text: str, language: str) -> None:
    found = READ[language](text)
    if isinstance(found, dict) and "code" in found:
        assert found["code"] in {code for codes in codes_by_status().values() for code in codes}


def test_every_block_says_what_it_is() -> None:
    known = {*READ, "sh", "mermaid", "promql", "text", ""}
    assert [str(one) for one in blocks() if one.language not in known] == []
