"""The form of bundles: the same content makes the same bytes, and whatever is wrong is named."""

from __future__ import annotations

import hashlib
import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from migrationplan.evidence.bundle import MANIFEST, Verified, canonical, packed, verified

ABOUT = {"pool": "l40s", "since": "2026-11-30T09:00:00+00:00"}
FILES = [
    ("README.txt", b"what it is\n"),
    ("moves.jsonl", b'{"id":"m1"}\n{"id":"m2"}\n'),
    ("empty.jsonl", b""),
    ("objects/Pod/team/train@0123456789ab.json", b'{"kind":"Pod"}'),
]
NAMES = st.text(st.characters(codec="ascii", categories=("Ll", "Nd")), min_size=1, max_size=120)


def made(files: list[tuple[str, bytes]] | None = None) -> bytes:
    return b"".join(packed(ABOUT, FILES if files is None else files))


def looked_at(content: bytes) -> Verified:
    return verified(io.BytesIO(content))


def changed(content: bytes, *, drop: str = "", add: str = "", edit: str = "") -> bytes:
    """The same tar with one file less, more, or another; its manifest as it was."""
    out = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(content)) as old,
        tarfile.open(fileobj=out, mode="w") as new,
    ):
        for member in old.getmembers():
            source = old.extractfile(member)
            assert source is not None
            body = source.read()
            if member.name == drop:
                continue
            if member.name == edit:
                body = body[:-2] + b"x\n"
            member.size = len(body)
            new.addfile(member, io.BytesIO(body))
        if add:
            info = tarfile.TarInfo(add)
            info.size = 3
            new.addfile(info, io.BytesIO(b"abc"))
    return out.getvalue()


def test_a_bundle_proves_itself_and_opens_with_any_tar() -> None:
    content = made()
    found = looked_at(content)
    assert found.problems == () and found.files == len(FILES)
    assert found.about == ABOUT
    assert found.digest == hashlib.sha256(content).hexdigest()
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        assert tar.getnames() == [*(name for name, _ in FILES), MANIFEST]
        assert {(one.mtime, one.uid, one.gid, one.uname, one.mode) for one in tar} == {
            (0, 0, 0, "", 0o644)
        }


@given(
    files=st.dictionaries(NAMES, st.binary(max_size=2000), max_size=8),
    about=st.dictionaries(NAMES, st.text(max_size=20), max_size=4),
)
def test_the_same_content_makes_the_same_bytes(
    files: dict[str, bytes], about: dict[str, str]
) -> None:
    rows = [(name, body) for name, body in files.items() if name != MANIFEST]
    one = b"".join(packed(about, rows))
    assert one == b"".join(packed(dict(reversed(about.items())), list(rows)))
    found = looked_at(one)
    assert (found.problems, found.files, found.about) == ((), len(rows), about)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(
            changed(made(), edit="moves.jsonl"),
            ["moves.jsonl: was changed: its digest is another one"],
            id="a changed file",
        ),
        pytest.param(
            changed(made(), drop="moves.jsonl"), ["moves.jsonl: is missing"], id="a missing file"
        ),
        pytest.param(
            changed(made(), add="more.jsonl"),
            ["more.jsonl: does not belong here: the manifest does not list it"],
            id="a file too much",
        ),
        pytest.param(
            changed(made(), add="README.txt"), ["README.txt: is there twice"], id="a file twice"
        ),
        pytest.param(changed(made(), drop=MANIFEST), [f"{MANIFEST}: is missing"], id="no manifest"),
        pytest.param(b"", [f"{MANIFEST}: is missing"], id="nothing at all"),
    ],
)
def test_what_is_wrong_is_named(content: bytes, said: list[str]) -> None:
    found = [str(problem) for problem in looked_at(content).problems]
    assert [one for one in found if not one.startswith("cannot be read")] == said


@pytest.mark.parametrize("size", [100, 512, 700, 1500, 2600])
def test_a_bundle_that_was_cut_off_does_not_prove(size: int) -> None:
    assert looked_at(made()[:size]).problems


@given(at=st.integers(0), value=st.integers(0, 255))
def test_no_byte_of_a_file_can_be_changed(at: int, value: int) -> None:
    """But for the padding of the tar itself, which no file is made of; the digest of all tells."""
    content = bytearray(made())
    place = at % len(content)
    before = content[place]
    content[place] = value
    found = looked_at(bytes(content))
    if value == before:
        assert found.problems == ()
    else:
        assert found.digest != looked_at(made()).digest


def test_a_link_is_no_file() -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        link = tarfile.TarInfo("moves.jsonl")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
    found = [str(one) for one in looked_at(out.getvalue()).problems]
    assert "moves.jsonl: is no plain file" in found


def test_a_name_stands_once() -> None:
    with pytest.raises(ValueError, match=r"a\.txt is in the bundle already"):
        made([("a.txt", b"1"), ("a.txt", b"1")])


def test_a_value_has_one_form() -> None:
    assert canonical({"b": [1, None], "a": "é\0"}) == b'{"a":"\\u00e9\\u0000","b":[1,null]}'
