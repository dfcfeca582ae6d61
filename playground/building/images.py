"""Container images of one static program each, as OCI archives: same program, same bytes.

An archive is a tar of an OCI image layout (opencontainers/image-spec, image-layout.md): the layer,
its configuration, a manifest, and an index that names the image as containerd's import wants it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import tarfile
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from playground.building.go_programs import PROGRAMS, build_program
from playground.building.gobuild import Tell, cache_folder, say_nothing
from playground.building.releases import DEFAULT_RELEASE
from playground.errors import PlaygroundError

Obj = dict[str, Any]

LAYER = "application/vnd.oci.image.layer.v1.tar"
CONFIG = "application/vnd.oci.image.config.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
# The workload again, under the names of images that Pods ask for and this machine cannot have. It
# runs for those who want to sleep, too.
STAND_IN = "stand-in"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}


def image_name(program: str) -> str:
    """What Pods call the image: "localhost/berth/pause:1". Never pulled, always imported."""
    return f"localhost/berth/{program}:1"


def build_images(
    release: str = DEFAULT_RELEASE,
    tell: Tell = say_nothing,
    cancelled: threading.Event | None = None,
) -> tuple[Path, ...]:
    """The archives of all images that a node of a release needs: one for each of `PROGRAMS`, and
    the stand-in.

    Builds what is missing. Raises `BuildError`; see `gobuild.build`.
    """
    built = {name: build_program(name, release, tell, cancelled) for name in PROGRAMS}
    stand_in = archive(built["workload"], STAND_IN, ("bin/sleep",))
    return (*(archive(program) for program in built.values()), stand_in)


def archive(program: Path, name: str = "", also: Iterable[str] = ()) -> Path:
    """The archive of a program's image (`Image.of`); its file name stands for its content."""
    image = Image.of(program, name, also)
    folder = cache_folder() / "images"
    target = folder / f"{image.name}-{image.digest[:12]}.tar"
    if not target.exists():
        folder.mkdir(parents=True, exist_ok=True)
        fresh = folder / f".{target.name}.{os.getpid()}"
        fresh.write_bytes(image.archive())
        fresh.replace(target)  # whoever looks sees all of it or nothing
    return target


@dataclass(frozen=True, slots=True)
class Image:
    """An image with one program, `/<name>`, which it runs."""

    name: str
    layer: bytes

    @classmethod
    def of(cls, program: Path, name: str = "", also: Iterable[str] = ()) -> Image:
        """The image of a program, under another `name` if given; `also` are further paths of it."""
        name, content = name or program.name, program.read_bytes()
        return cls(name, _tar([(path, content, 0o755) for path in (name, *also)]))

    @property
    def config(self) -> Obj:
        return {
            "architecture": architecture(),
            "os": "linux",
            "config": {"Entrypoint": [f"/{self.name}"]},
            "rootfs": {"type": "layers", "diff_ids": [f"sha256:{_sha256(self.layer)}"]},
        }

    @property
    def manifest(self) -> Obj:
        return {
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": _descriptor(CONFIG, _json(self.config)),
            "layers": [_descriptor(LAYER, self.layer)],
        }

    @property
    def digest(self) -> str:
        """Sixty-four hexadecimal digits over all there is to the image."""
        return _sha256(_json(self.manifest))

    def archive(self) -> bytes:
        return _tar(self._files())

    def _files(self) -> Iterator[tuple[str, bytes, int]]:
        manifest = _json(self.manifest)
        named = {
            # The second is what OCI tools read, the first what containerd's import reads.
            "io.containerd.image.name": image_name(self.name),
            "org.opencontainers.image.ref.name": image_name(self.name).rpartition(":")[2],
        }
        index = {
            "schemaVersion": 2,
            "mediaType": INDEX,
            "manifests": [{**_descriptor(MANIFEST, manifest), "annotations": named}],
        }
        yield "oci-layout", _json({"imageLayoutVersion": "1.0.0"}), 0o644
        yield "index.json", _json(index), 0o644
        for blob in (manifest, _json(self.config), self.layer):
            yield f"blobs/sha256/{_sha256(blob)}", blob, 0o644


def architecture() -> str:
    """This machine's, as Go and OCI name it. Raises `PlaygroundError` for one we do not know."""
    machine = platform.machine()
    try:
        return ARCHITECTURES[machine]
    except KeyError:
        raise PlaygroundError(f"There are no images for machines of type {machine}.") from None


def _descriptor(kind: str, blob: bytes) -> Obj:
    return {"mediaType": kind, "digest": f"sha256:{_sha256(blob)}", "size": len(blob)}


def _json(value: Obj) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def _sha256(blob: bytes) -> str:
    return hashlib.sha256(blob).hexdigest()


def _tar(files: Iterable[tuple[str, bytes, int]]) -> bytes:
    """Without owner, time or anything else that differs from build to build."""
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content, mode in files:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), mode
            tar.addfile(entry, io.BytesIO(content))
    return written.getvalue()
