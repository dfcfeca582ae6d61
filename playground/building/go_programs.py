"""The Go programs a real node runs as images: driver, device plugin, probe, and two small ones.

Built like the control plane (`gobuild.py`): once per user and per sources, static, and the same
bytes from the same sources.
"""

from __future__ import annotations

import threading
from pathlib import Path

from playground.building import gobuild
from playground.building.gobuild import Recipe, Tell, say_nothing
from playground.building.releases import DEFAULT_RELEASE, SOURCES, known_release, minor

SHELF = "go-programs"
PROBE_SOURCES = Path(__file__).resolve().parents[2] / "deploy" / "nodeprobe"
NODE_PROGRAMS = ("pause", "simdriver", "simplugin", "workload")
PROBE = "nodeprobe"
PROGRAMS = (*NODE_PROGRAMS, PROBE)


def build_program(
    name: str,
    release: str = DEFAULT_RELEASE,
    tell: Tell = say_nothing,
    cancelled: threading.Event | None = None,
) -> Path:
    """The path of one of `PROGRAMS`; builds it first where it is missing (seconds, once the
    control plane of that release was built, whose compiled packages are used again).

    Raises `BuildError`; see `gobuild.build`.
    """
    return gobuild.build(recipe(name, release), tell, cancelled) / name


def recipe(name: str, release: str = DEFAULT_RELEASE) -> Recipe:
    """How a program is built. Those of a node are one module, and are built together."""
    release = known_release(release)
    if name == PROBE:
        return probe_recipe()
    if name not in NODE_PROGRAMS:
        raise ValueError(f"no program {name!r}, only {', '.join(PROGRAMS)}")
    return node_recipe(release)


def node_recipe(release: str = DEFAULT_RELEASE) -> Recipe:
    """The module of a release: its own versions and files, and what all releases share."""
    number = minor(known_release(release))
    top = SOURCES / f"node-{number}"
    subfolders = {
        SOURCES / "devicefile": "devicefile",
        SOURCES / "pretend" / "pause": "pause",
        SOURCES / "pretend" / "workload": "workload",
        SOURCES / "simdriver": "simdriver",
        SOURCES / "simdriver" / number: "simdriver",
        SOURCES / "simplugin": "simplugin",
    }
    return Recipe(
        shelf=SHELF,
        name=f"node-{number}",
        title=f"the programs of real nodes for {number}",
        purpose="the programs of real nodes",
        sources=(top / "go.mod", top / "go.sum", *go_files(*subfolders)),
        program="simdriver",
        packages=tuple(f"./{name}" for name in NODE_PROGRAMS),
        subfolders=subfolders,
    )


def probe_recipe() -> Recipe:
    """The node probe is part of the product: a module of its own beside its manifest."""
    return Recipe(
        shelf=SHELF,
        name=PROBE,
        title="the node probe",
        purpose="the node probe",
        sources=(
            PROBE_SOURCES / "go.mod",
            PROBE_SOURCES / "go.sum",
            *go_files(PROBE_SOURCES),
        ),
        program=PROBE,
    )


def go_files(*folders: Path, tests: bool = False) -> tuple[Path, ...]:
    """The Go files right in these folders, in a fixed order."""
    return tuple(
        path
        for folder in folders
        for path in sorted(folder.glob("*.go"))
        if tests or not path.name.endswith("_test.go")
    )
