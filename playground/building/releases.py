"""Which releases of Kubernetes the playground has, and the control plane of each as one program.

The result is one static program, `<cache>/controlplane/<release>-<digest>/berth-kube`, built from
the Go module proxy once per user (`gobuild.py`).
"""

from __future__ import annotations

import re
import subprocess
import threading
from pathlib import Path

from playground.building import gobuild
from playground.building.gobuild import BuildError, Recipe, Tell, say_nothing
from playground.errors import PlaygroundError

SOURCES = Path(__file__).resolve().parents[1] / "go"
PROGRAM = "berth-kube"
DEFAULT_RELEASE = "1.37.2"


def releases() -> tuple[str, ...]:
    """All releases that have sources here, newest first, for example ("1.37.2", "1.36.3")."""
    found = (_module_release(path) for path in SOURCES.glob("*/go.mod"))
    return tuple(sorted((r for r in found if r), key=_numbers, reverse=True))


def known_release(wanted: str) -> str:
    """The full release for "1.37" or "1.37.2". Raises `PlaygroundError` for any other."""
    for release in releases():
        if wanted in (release, minor(release)):
            return release
    raise PlaygroundError(
        f"There is no control plane {wanted} in the playground, only {', '.join(releases())}."
    )


def minor(release: str) -> str:
    """ "1.37" of "1.37.2"."""
    return ".".join(release.split(".")[:2])


def binary_path(release: str = DEFAULT_RELEASE) -> Path:
    """Where the program of a release is, or will be once it is built."""
    return recipe(release).folder / PROGRAM


def build(
    release: str = DEFAULT_RELEASE,
    tell: Tell = say_nothing,
    cancelled: threading.Event | None = None,
) -> Path:
    """The program of a release; builds it first where it is missing (5 minutes on 2 cores).

    Raises `BuildError`; see `gobuild.build`.
    """
    return gobuild.build(recipe(release), tell, cancelled) / PROGRAM


def recipe(release: str) -> Recipe:
    """How the control plane of a release is built."""
    release = known_release(release)
    return Recipe(
        shelf="controlplane",
        name=release,
        title=f"Kubernetes {release}",
        purpose="the control plane",
        sources=tuple(_source_files(release)),
        program=PROGRAM,
        stamps=version_stamps(release),
        check=lambda folder: _check_program(folder / PROGRAM, release),
    )


def version_stamps(release: str) -> dict[str, str]:
    """What a part of Kubernetes says its version is: variables of a package, and their values."""
    major, minor_number, *_ = release.split(".")
    version = "k8s.io/component-base/version"
    stamps = {"gitVersion": f"v{release}", "gitMajor": major, "gitMinor": minor_number}
    return {f"{version}.{name}": value for name, value in stamps.items()}


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)[:3])


def _module_release(go_mod: Path) -> str:
    found = re.search(r"^\s*k8s\.io/kubernetes v(\S+)", go_mod.read_text(), re.MULTILINE)
    return found[1] if found else ""


def _source_files(release: str) -> list[Path]:
    """The shared Go files and those of the release; together they are one Go module."""
    own = SOURCES / minor(release)
    return [
        path
        for path in sorted([*SOURCES.glob("*.go"), *own.iterdir()])
        if path.suffix in (".go", ".mod", ".sum") and not path.name.endswith("_test.go")
    ]


def _check_program(program: Path, release: str) -> None:
    """A program that does not start, or is another release, must never reach the cache."""
    said = subprocess.run(
        [program, "kube-apiserver", "--version"], capture_output=True, text=True, timeout=60
    ).stdout
    if said.strip() != f"Kubernetes v{release}":
        raise BuildError(f"The built control plane says {said.strip()!r}, not v{release}.")
