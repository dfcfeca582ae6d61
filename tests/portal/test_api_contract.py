"""The OpenAPI document is what is served, is told in the changelog, and every operation keeps it.

Schemathesis asks every operation of every floor, also those that come after this was written, at a
serving Berth on a real database, with one of everything in it.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.generators import SchemaGenerator
from jsonschema import Draft202012Validator
from pytest_django import DjangoDbBlocker

from portal.api.problemcodes import codes_by_status
from tests.matrix.table import Row, all_rows
from tests.matrix.test_matrix import in_time
from tests.matrix.world import World
from tests.portal.apiserver import Serving, a_database, filled, serving

#: So that the test's own database is made, of which the serving Berth has a copy.
pytestmark = pytest.mark.django_db
ROOT = Path(__file__).parents[2]
DOCUMENT = "docs/openapi.json"
WORDS = {"description", "summary", "example", "examples", "title", "tags"}
SCHEMATHESIS = str(Path(sys.executable).with_name("schemathesis"))
ONE_TENANT = "/api/v1/tenants/{slug}"
#: Streams, files, and bodies that are no JSON: what they say is tested beside them.
ASIDE = "claims/watch|/export|ledger/replay|/file$"


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    GENERATOR_STATS.reset()
    found: dict[str, Any] = SchemaGenerator().get_schema(request=None, public=True)
    return json.loads(json.dumps(found, default=str))  # type: ignore[no-any-return]


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, found in document["paths"].items():
        for method in ("get", "post", "put", "patch", "delete"):
            if method in found:
                yield path, method, found[method]


def test_the_committed_document_is_what_is_served(
    document: dict[str, Any], golden: Callable[[str, str], None]
) -> None:
    golden(DOCUMENT, json.dumps(document, indent=1, sort_keys=True) + "\n")


def test_no_two_shapes_share_a_name(document: dict[str, Any]) -> None:
    said = [str(one) for one in GENERATOR_STATS._warn_cache if "identical names" in str(one)]
    assert said == [], "name one of them by another word"


def contract(found: Any) -> Any:
    """The document without its words."""
    if isinstance(found, dict):
        return {
            k: contract(v)
            for k, v in sorted(found.items())
            if not (k in WORDS and not isinstance(v, dict))
        }
    return [contract(one) for one in found] if isinstance(found, list) else found


def test_the_changelog_tells_of_this_contract() -> None:
    """A line "API contract 1a2b3c4d" stands in the newest entry: whoever changes it says so."""
    text = json.dumps(contract(json.loads((ROOT / DOCUMENT).read_text())), sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    newest = re.search(r"API contract `?([0-9a-f]{8})`?", (ROOT / "CHANGELOG.md").read_text())
    assert newest and newest[1] == digest, (
        f"The API changed: say what in CHANGELOG.md, with the words: API contract {digest}"
    )


def test_the_changelog_names_every_operation_that_is_to_go(document: dict[str, Any]) -> None:
    told = (ROOT / "CHANGELOG.md").read_text()
    gone = [one["operationId"] for _, _, one in operations(document) if one.get("deprecated")]
    assert [name for name in gone if f"`{name}`" not in told] == []


def test_every_operation_says_how_it_fails_and_shows_what_it_takes(
    document: dict[str, Any],
) -> None:
    for path, method, one in operations(document):
        where = f"{method} {path}"
        assert {"401", "403", "404", "406", "422", "429"} <= set(one["responses"]), where
        for status, answer in one["responses"].items():
            if "$ref" in answer:
                assert answer["$ref"].endswith(f"Problem{status}"), where
                continue
            for kind, content in answer.get("content", {}).items():
                assert "json" not in kind or "example" in content, f"{where} {status}"
        for kind, content in one.get("requestBody", {}).get("content", {}).items():
            assert "json" not in kind or "example" in content, where
        names = {str(parameter.get("$ref", "")) for parameter in one["parameters"]}
        assert any(name.endswith(("Fields", "DryRun")) for name in names) or method == "post", where


def test_examples_fit_their_shapes(document: dict[str, Any]) -> None:
    wrong = []
    for path, method, one in operations(document):
        for content in one.get("requestBody", {}).get("content", {}).values():
            if "example" not in content:
                continue
            schema = {**content["schema"], "components": document["components"]}
            wrong += [
                f"{method} {path}: {error.json_path} {error.message}"
                for error in Draft202012Validator(schema).iter_errors(content["example"])
            ]
    assert wrong == []


def test_every_code_that_is_given_is_documented() -> None:
    """Literal `code="…"` where something is refused, on every floor."""
    known = {code for codes in codes_by_status().values() for code in codes}
    found: dict[str, str] = {}
    for file in [one for app in ("portal", "tenants", "devices", "migrationplan")
                 for one in (ROOT / app).rglob("*.py")]:  # fmt: skip
        for node in ast.walk(ast.parse(file.read_text())):
            if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call):
                continue
            for keyword in node.exc.keywords:
                if keyword.arg == "code" and isinstance(keyword.value, ast.Constant):
                    found[str(keyword.value.value)] = str(file.relative_to(ROOT))
    missing = {code: file for code, file in found.items() if code not in known}
    assert missing == {}, "add them to portal/api/problemcodes.py"


# --- Every operation, asked -----------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Contract:
    """A serving Berth, its document with real things in the addresses, and tokens by kind."""

    serving: Serving
    document: Path
    #: The same with nothing but what there is and what is taken, so that most calls succeed.
    narrow: Path
    tokens: dict[str, str]


@pytest.fixture
def served(
    django_db_setup: None, django_db_blocker: DjangoDbBlocker, tmp_path: Path
) -> Iterator[Contract]:
    """A world for each run: whoever tries everything closes the tenant in the end."""
    rates = {"API_READS_A_MINUTE": "1000000", "API_WRITES_A_MINUTE": "1000000"}
    with django_db_blocker.unblock(), a_database("api_contract") as database:
        world = filled(database)
        with serving(database, **rates) as running:
            ask = urllib.request.Request(
                f"{running.address}/api/v1/openapi.json",
                headers={"Authorization": f"Bearer {world['tokens']['tenant']}"},
            )
            with urllib.request.urlopen(ask, timeout=120) as answer:
                found = json.load(answer)
            put_real_things(found, world["values"])
            (file := tmp_path / "openapi.json").write_text(json.dumps(found))
            take_nothing_else(found, world["values"]["slug"])
            (narrow := tmp_path / "narrow.json").write_text(json.dumps(found))
            yield Contract(running, file, narrow, world["tokens"])


def rows_by_path() -> dict[str, list[Row]]:
    """The matrix's rows by the address that the document has for them."""
    found: dict[str, list[Row]] = {}
    for row in all_rows():
        path = re.sub(r"<\w+:(\w+)>", r"{\1}", f"/{row.route.lstrip('/')}")
        found.setdefault(path.replace("{pk}", "{id}"), []).append(row)
    return found


def put_real_things(document: dict[str, Any], values: dict[str, str]) -> None:
    """Gives each parameter of an address what the matrix's world has in its place."""
    rows = rows_by_path()
    for path, found in document["paths"].items():
        if path not in rows:
            continue  # the matrix's own test names it
        pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path)
        real = re.fullmatch(pattern, World(values=values).path(rows[path][0].route))
        assert real
        for operation in found.values():
            for one in operation.get("parameters", []):
                if one.get("in") == "path":
                    one["example"] = real[one["name"]]


def take_nothing_else(document: dict[str, Any], tenant: str) -> None:
    """Leaves of bodies those that the matrix sends, and of the tenants one: schemathesis begins
    where an address takes nothing.
    """
    rows, paths = rows_by_path(), {}
    for path, found in document["paths"].items():
        for method, operation in found.items():
            bodies = [
                json.loads(in_time(row.body))
                for row in rows.get(path, [])
                if row.method == method.upper() and row.body.startswith("{")
            ]
            content = operation.get("requestBody", {}).get("content", {}).get("application/json")
            if content and bodies:
                content["schema"] = {"enum": bodies}
                content.pop("example", None)
            within = path.startswith(ONE_TENANT)
            operation["parameters"] = [
                one
                for one in operation["parameters"]
                if one.get("in") == "path" and not (within and one["name"] == "slug")
            ]
            for response in operation["responses"].values():
                for link in response.get("links", {}).values():
                    if within:
                        del link["parameters"]["slug"]
        paths[path.replace(ONE_TENANT, f"/api/v1/tenants/{tenant}")] = found
    document["paths"] = paths


def held(contract: Contract, kind: str, *options: str, narrow: bool = False) -> str:
    """What schemathesis says, with a token of the tenant or of the platform; fails where it does.

    With `narrow`, it takes real things alone.
    """
    which = "--include-path-regex" if kind == "platform" else "--exclude-path-regex"
    reach = "/platform/" if kind == "platform" else f"/platform/|{ASIDE}"
    aside = ["--exclude-path-regex", ASIDE] if kind == "platform" else []
    done = subprocess.run(
        [SCHEMATHESIS, "--config-file", str(ROOT / "tests/portal/schemathesis.toml"), "run",
         str(contract.narrow if narrow else contract.document), "--url", contract.serving.address,
         "-H", f"Authorization: Bearer {contract.tokens[kind]}", which, reach, *aside,
         "--seed", "1", "--request-timeout", "60", *options],
        capture_output=True, text=True, cwd=contract.document.parent,
    )  # fmt: skip
    if done.returncode:
        pytest.fail(f"{done.stdout[-12_000:]}\n{done.stderr[-2_000:]}", pytrace=False)
    return done.stdout


@pytest.mark.parametrize("kind", ["tenant", "platform"])
def test_every_operation_takes_its_own_example(served: Contract, kind: str) -> None:
    held(served, kind, "--phases", "examples")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["tenant", "platform"])
def test_every_operation_keeps_its_contract(served: Contract, kind: str) -> None:
    held(served, kind, "--phases", "examples,coverage,fuzzing", "--max-examples", "20")


@pytest.mark.long
@pytest.mark.parametrize("kind", ["tenant", "platform"])
def test_what_one_operation_answers_another_takes(served: Contract, kind: str) -> None:
    """Along the document's links: what was made is found, changed, and gone once it was deleted.

    Each seed takes other ways through them.
    """
    for seed in "12345":
        said = held(served, kind, "--phases", "stateful", "--seed", seed, narrow=True)
        covered = re.search(r"API Links:\s+(\d+) covered", said)
        assert covered and int(covered[1]) > 0, said[-4_000:]
