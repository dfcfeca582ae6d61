"""The Go programs of real nodes: their own tests, run by Go, and how images are made of them."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from playground.building import gobuild, images
from playground.building.go_programs import build_program, go_files, node_recipe, probe_recipe
from playground.building.gobuild import Recipe
from playground.building.releases import minor, releases

RECIPES = {
    **{f"real nodes of {minor(release)}": node_recipe(release) for release in releases()},
    "the node probe": probe_recipe(),
}


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES)
def test_the_programs_own_tests_pass(recipe: Recipe, tmp_path: Path):
    folders = dict.fromkeys(source.parent for source in recipe.sources)
    for source in {*recipe.sources, *go_files(*folders, tests=True)}:
        laid = tmp_path / "module" / recipe.place(source)
        laid.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, laid)
    assert list((tmp_path / "module").rglob("*_test.go"))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = subprocess.run(
        [gobuild.find_go(), "test", "-trimpath", "./..."],
        cwd=tmp_path / "module",
        env=gobuild.go_environment(temporary),
        capture_output=True,
        text=True,
    )
    assert not done.returncode, done.stdout[-4000:] + done.stderr[-4000:]


def read(archive: Path) -> dict[str, bytes]:
    with tarfile.open(archive) as tar:
        return {one.name: tar.extractfile(one).read() for one in tar}  # type: ignore[union-attr]


def test_an_image_holds_the_program_and_nothing_else():
    program = build_program("pause")
    files = read(images.archive(program))
    [manifest] = json.loads(files["index.json"])["manifests"]
    assert manifest["annotations"]["io.containerd.image.name"] == "localhost/berth/pause:1"

    def blob(descriptor: dict[str, str]) -> bytes:
        return files["blobs/" + descriptor["digest"].replace(":", "/")]

    parts = json.loads(blob(manifest))
    [layer] = parts["layers"]
    assert json.loads(blob(parts["config"]))["config"] == {"Entrypoint": ["/pause"]}
    with tarfile.open(fileobj=io.BytesIO(blob(layer))) as tar:
        [entry] = tar
        assert (entry.name, entry.mode, entry.mtime, entry.uid) == ("pause", 0o755, 0, 0)
        found = tar.extractfile(entry)
        assert found is not None
        assert found.read() == program.read_bytes()


def test_the_same_program_gives_the_same_bytes(tmp_path, monkeypatch):
    program = build_program("pause")
    before = images.archive(program).read_bytes()
    monkeypatch.setenv("BERTH_CACHE", str(tmp_path))
    copied = shutil.copyfile(program, tmp_path / "pause")
    assert images.archive(copied).read_bytes() == before


def test_the_images_of_a_release_are_its_own():
    drivers = {build_program("simdriver", release) for release in releases()}
    assert len({images.archive(driver) for driver in drivers}) == len(releases())


def test_a_program_that_nobody_wrote_is_named(tmp_path):
    with pytest.raises(ValueError, match="no program 'simdrivers', only pause"):
        build_program("simdrivers")
