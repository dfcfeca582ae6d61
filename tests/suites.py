"""A pytest plugin: the four kinds of tests in their order, the fast ones first, and what each took.

rules: pure, no database. app: PostgreSQL and Valkey. contract: what the real control plane answers.
journeys: whole stories through a browser or over the wire. Loaded with `-p tests.suites`.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import PurePosixPath

import pytest

KINDS = ("rules", "app", "contract", "journeys")
RULES = (
    "tests/devices/dra",
    "tests/migrationplan/test_wave.py",
    "tests/migrationplan/test_wave_always.py",
    "tests/migrationplan/test_windows.py",
    "tests/migrationplan/test_schedule.py",
    "tests/migrationplan/test_node.py",
    "tests/migrationplan/test_gates.py",
    "tests/migrationplan/test_survey.py",
)
CONTRACT = ("tests/devices/cluster", "tests/playground")
JOURNEYS = ("tests/journeys",)

_seconds: defaultdict[str, float] = defaultdict(float)
_tests: Counter[str] = Counter()


def kind_of(path: str, markers: frozenset[str] = frozenset()) -> str:
    """The kind of a test by where it lies (relative to the checkout), then by what it needs."""
    place = PurePosixPath(path)
    for kind, folders in (("journeys", JOURNEYS), ("rules", RULES), ("contract", CONTRACT)):
        if any(place.is_relative_to(folder) for folder in folders):
            needs_cluster = kind == "rules" and markers & {"cluster", "cluster136"}
            return "contract" if needs_cluster else kind
    return "contract" if markers & {"cluster", "cluster136"} else "app"


def _kind(item: pytest.Item) -> str:
    markers = frozenset(marker.name for marker in item.iter_markers())
    return kind_of(item.nodeid.partition("::")[0], markers)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sorts by kind; within one kind the order stays as collected."""
    for item in items:
        item.user_properties.append(("kind", _kind(item)))
    items.sort(key=lambda item: KINDS.index(_kind(item)))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    kind = dict(report.user_properties).get("kind")
    if isinstance(kind, str):
        _seconds[kind] += report.duration
        _tests[kind] += report.when == "call"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    parts = [f"{kind} {_tests[kind]} in {_seconds[kind]:.0f} s" for kind in KINDS if _tests[kind]]
    if parts:
        terminalreporter.write_line("suites: " + ", ".join(parts))
