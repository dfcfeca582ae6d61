"""Programs of others that tests run for real: Helm over the chart, Prometheus over the metrics.

Built from the Go module proxy like everything else (`gobuild.py`): once per user, at the versions
that the committed go.mod and go.sum name. Minutes each on two cores.
"""

from __future__ import annotations

import threading
from pathlib import Path

from playground.building import gobuild
from playground.building.gobuild import Recipe, Tell, say_nothing
from playground.building.releases import SOURCES

SHELF = "go-tools"
#: Program to the module that pins it, and its import path.
TOOLS = {
    "helm": ("helm", "helm.sh/helm/v4/cmd/helm"),
    "prometheus": ("prometheus", "github.com/prometheus/prometheus/cmd/prometheus"),
    "promtool": ("prometheus", "github.com/prometheus/prometheus/cmd/promtool"),
}


def recipe(name: str) -> Recipe:
    """How the module of a program is built; programs of one module are built together."""
    if name not in TOOLS:
        raise ValueError(f"no tool {name!r}, only {', '.join(TOOLS)}")
    module = TOOLS[name][0]
    folder = SOURCES / module
    return Recipe(
        shelf=SHELF,
        name=module,
        title=module.capitalize(),
        purpose=module.capitalize(),
        sources=(folder / "go.mod", folder / "go.sum"),
        program=name,
        packages=tuple(path for of, path in TOOLS.values() if of == module),
    )


def build_tool(
    name: str, tell: Tell = say_nothing, cancelled: threading.Event | None = None
) -> Path:
    """The path of one of `TOOLS`; builds it first where it is missing. Raises `BuildError`."""
    return gobuild.build(recipe(name), tell, cancelled) / name
