"""The form of a bundle: a tar with a manifest of digests at its end, written and checked. Pure.

The same content makes the same bytes: names are sorted by who gives them, and no entry carries a
time, an owner or anything of the machine that wrote it.
"""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import IO, Any, Final

MANIFEST: Final = "MANIFEST.json"
FORMAT: Final = 1
#: A manifest longer than this is not one of ours.
LONGEST_MANIFEST: Final = 64 * 1024 * 1024
_PIECE: Final = 64 * 1024

File = tuple[str, bytes]


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong with a bundle: a file's name (empty: the bundle itself), and how."""

    file: str
    words: str

    def __str__(self) -> str:
        return f"{self.file}: {self.words}" if self.file else self.words


@dataclass(frozen=True, slots=True)
class Verified:
    """What a look at a bundle found. `digest` is of the whole file, `about` what it says it is."""

    digest: str
    files: int
    about: Mapping[str, Any]
    problems: tuple[Problem, ...]


def canonical(value: Any) -> bytes:
    """JSON of which one value has one form."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return text.encode("ascii")


def packed(about: Mapping[str, Any], files: Iterable[File]) -> Iterator[bytes]:
    """The tar, piece by piece: the files in their order, then the manifest. Each name once; raises
    ValueError for a second one.
    """
    listed: dict[str, dict[str, Any]] = {}
    for name, content in files:
        if name in listed or name == MANIFEST:
            raise ValueError(f"{name} is in the bundle already")
        listed[name] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
        yield _entry(name, content)
    manifest = {"format": FORMAT, "about": dict(about), "files": listed}
    text = json.dumps(manifest, sort_keys=True, indent=1, ensure_ascii=True) + "\n"
    yield _entry(MANIFEST, text.encode("ascii"))
    yield b"\0" * (2 * tarfile.BLOCKSIZE)


def verified(file: IO[bytes]) -> Verified:
    """Reads a bundle to its end, whoever made it: what is changed, missing or too much is named."""
    whole = _Digesting(file)
    found: dict[str, tuple[str, int]] = {}
    problems: list[Problem] = []
    manifest: dict[str, Any] = {}
    try:
        with tarfile.open(fileobj=whole, mode="r|") as tar:
            for member in tar:
                source = tar.extractfile(member) if member.isfile() else None
                if source is None:
                    problems.append(Problem(member.name, "is no plain file"))
                elif member.name in found or (member.name == MANIFEST and manifest):
                    problems.append(Problem(member.name, "is there twice"))
                elif member.name == MANIFEST:
                    manifest = _manifest(source, member.size)
                else:
                    found[member.name] = _digest(source)
    except (tarfile.TarError, EOFError, ValueError) as error:
        problems.append(Problem("", f"cannot be read to its end: {error}"))
    problems += _compared(found, manifest)
    about = manifest.get("about")
    told = about if isinstance(about, dict) else {}
    return Verified(whole.finish(), len(found), told, tuple(problems))


def _compared(found: Mapping[str, tuple[str, int]], manifest: Mapping[str, Any]) -> list[Problem]:
    if not manifest:
        return [Problem(MANIFEST, "is missing")]
    if manifest.get("format") != FORMAT:
        return [Problem(MANIFEST, f"is of format {manifest.get('format')}, not {FORMAT}")]
    listed = manifest.get("files")
    if not isinstance(listed, dict):
        return [Problem(MANIFEST, "lists no files")]
    problems = []
    for name in sorted(listed.keys() | found.keys()):
        if name not in found:
            problems.append(Problem(name, "is missing"))
        elif name not in listed:
            problems.append(Problem(name, "does not belong here: the manifest does not list it"))
        elif _said(listed[name]) != found[name]:
            problems.append(Problem(name, "was changed: its digest is another one"))
    return problems


def _said(entry: Any) -> tuple[Any, Any]:
    return (entry.get("sha256"), entry.get("size")) if isinstance(entry, dict) else (None, None)


def _manifest(source: IO[bytes], size: int) -> dict[str, Any]:
    if size > LONGEST_MANIFEST:
        raise ValueError(f"{MANIFEST} is too long")
    read = json.loads(source.read())
    if not isinstance(read, dict):
        raise ValueError(f"{MANIFEST} is no manifest")
    return read


def _digest(source: IO[bytes]) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    while piece := source.read(_PIECE):
        digest.update(piece)
        size += len(piece)
    return digest.hexdigest(), size


def _entry(name: str, content: bytes) -> bytes:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(content), 0o644, 0
    head = info.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict")
    return head + content + b"\0" * (-len(content) % tarfile.BLOCKSIZE)


class _Digesting(io.RawIOBase):
    """A file that counts what is read of it into a digest."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._digest = file, hashlib.sha256()

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        piece = self._file.read(size)
        self._digest.update(piece)
        return piece

    def finish(self) -> str:
        """Reads the rest; the digest of all of it."""
        while self.read(_PIECE):
            pass
        return self._digest.hexdigest()
