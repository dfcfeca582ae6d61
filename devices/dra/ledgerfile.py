"""The ledger as a file: JSON lines with a header, and replaying one on any machine. Pure.

The first line is the header. Every other line is one line of the log and ends in ``chain``: a
digest over itself and all before it, so that the first line that was changed is found. The header
has the last one, as the digest of the whole. Amounts are quantities as text, exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Final

import msgspec

from devices.dra.claims import DeviceKey
from devices.dra.ledgerentries import identity
from devices.dra.ledgerlog import Act, LogLine
from devices.dra.quantity import Quantity, QuantityError, canonical, parse

SCHEMA: Final = 1
FORMAT: Final = "berth node ledger"
#: ``,"chain":"`` + 32 digits + ``"}``
_TAIL: Final = 44
_START: Final = bytes(16)


class Header(msgspec.Struct, frozen=True, rename={"from_": "from"}):
    """What a file is: of which cluster and time, in which shape, and how many lines follow.

    ``opening`` of them stood already at ``from``. ``shape`` is the field of slices that the
    cluster's release knows.
    """

    digest: str
    lines: int
    opening: int
    shape: str
    cluster: str
    release: str
    from_: str
    to: str
    schema: int = SCHEMA
    format: str = FORMAT


class FileLine(msgspec.Struct, frozen=True, gc=False):
    """One line of the log, as it is written."""

    id: int
    look: int
    at: str
    act: str
    ends: int
    node: str
    rule: str
    resource: str
    amount: str | None
    payer: str
    pod: str
    pod_uid: str
    claim: str
    claim_uid: str
    device: DeviceKey | None
    share: str
    container: str
    numa: int | None
    contained: bool
    version: tuple[int, int, int]
    source: str
    writer: str
    code: str


def file_line(line: LogLine, at: str, writer: str) -> FileLine:
    """A line of the log in the file's form; ``at`` is a moment in RFC 3339."""
    entry = line.entry
    return FileLine(
        line.id, line.look, at, line.act.value, line.ends, entry.node, entry.rule.value,
        entry.resource, None if entry.amount is None else canonical(entry.amount), entry.payer,
        entry.pod, entry.pod_uid, entry.claim, entry.claim_uid, entry.device, entry.share,
        entry.container, entry.numa, entry.contained,
        (entry.version[0], entry.version[1], entry.version[2]), entry.source, writer, entry.code,
    )  # fmt: skip


class Chain:
    """Gives each line its digest; ``digest`` is the last one."""

    def __init__(self) -> None:
        self._last = _START
        self.lines = 0

    @property
    def digest(self) -> str:
        return self._last.hex()

    def encoded(self, line: FileLine) -> bytes:
        """The line as bytes, with its newline."""
        body = _encoder.encode(line)[:-1]
        return b'%s,"chain":"%s"}\n' % (body, self.follow(body).encode())

    def follow(self, body: bytes) -> str:
        """Takes the next line's bytes (without the chain) in; returns its digest."""
        self._last = blake2b(self._last + body, digest_size=16).digest()
        self.lines += 1
        return self._last.hex()


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(FileLine)
_headers = msgspec.json.Decoder(Header)


def encoded_header(header: Header) -> bytes:
    """The header as bytes, with its newline."""
    return _encoder.encode(header) + b"\n"


@dataclass(frozen=True, slots=True)
class Fault:
    """Where a file stops being what it says: the line's number in the file, and why."""

    line: int
    why: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.why}"


@dataclass(slots=True)
class Replayed:
    """What a file comes to. ``sums`` are billionths by node and resource, ``zones`` by NUMA zone
    besides; ``unknown`` counts standing lines without an amount there, and makes the sum unknown.
    """

    header: Header | None = None
    fault: Fault | None = None
    lines: int = 0
    standing: int = 0
    doubled: int = 0
    older: int = 0
    repeated: int = 0
    digest: str = ""
    sums: dict[tuple[str, str], int] = field(default_factory=dict)
    zones: dict[tuple[str, str, int | None], int] = field(default_factory=dict)
    unknown: dict[tuple[str, str], int] = field(default_factory=dict)

    def charged(self) -> Mapping[tuple[str, str], Quantity | None]:
        """What is charged, by node and resource, in order; None where it is unknown."""
        places = sorted({*self.sums, *self.unknown})
        return {
            place: None if self.unknown.get(place) else Quantity(self.sums.get(place, 0))
            for place in places
            if self.sums.get(place) or self.unknown.get(place)
        }


#: Of a standing line: its version and look, and what it adds where.
_Stood = tuple[tuple[int, int, int], int, str, str, int | None, int | None, bool]


def replay(lines: Iterable[bytes]) -> Replayed:
    """Folds a file, line by line; only what stands is kept in memory.

    Stops at the first line that is not what the file says it is (`Replayed.fault`).
    """
    done = Replayed()
    chain = Chain()
    standing: dict[tuple[str, ...], _Stood] = {}
    number, look = 0, 0
    for number, raw in enumerate(lines, 1):
        raw = raw.rstrip(b"\r\n")
        try:
            if number == 1:
                done.header = _headers.decode(raw)
                if done.header.format != FORMAT or done.header.schema != SCHEMA:
                    done.fault = Fault(1, f"only schema {SCHEMA} of {FORMAT!r} can be read")
                    return done
                continue
            body, tail = raw[:-_TAIL], raw[-_TAIL:]
            if tail != b',"chain":"%s"}' % chain.follow(body).encode():
                done.fault = Fault(number, "it is not the line that was exported")
                return done
            line = _decoder.decode(body + b"}")
            if line.look < look:
                done.fault = Fault(number, f"look {line.look} comes after look {look}")
                return done
            look = line.look if number > 1 + (done.header.opening if done.header else 0) else 0
            _take(done, standing, line)
        except (msgspec.DecodeError, QuantityError) as error:
            done.fault = Fault(number, f"it cannot be read: {error}")
            return done
    done.standing, done.digest, done.lines = len(standing), chain.digest, chain.lines
    if done.header is None:
        done.fault = Fault(1, "the file is empty")
    elif done.lines != done.header.lines or done.digest != done.header.digest:
        done.fault = Fault(number + 1, f"{done.header.lines} lines were exported, not {done.lines}")
    return done


def _take(done: Replayed, standing: dict[tuple[str, ...], _Stood], line: FileLine) -> None:
    if line.act == Act.DOUBLED:
        done.doubled += 1
        return
    if line.act == Act.OLDER:
        done.older += 1
        return
    key = identity(
        line.rule, line.resource, line.claim_uid, line.device, line.share, line.pod_uid,
        line.container, line.node,
    )  # fmt: skip
    before = standing.get(key)
    if before is not None:
        if before[:2] > (line.version, line.look):
            return
        done.repeated += line.act == Act.CHARGE and before[:2] == (line.version, line.look)
        _add(done, before, -1)
        del standing[key]
    if line.act == Act.CHARGE:
        nanos = None if line.amount is None else parse(line.amount).nanos
        stood = (
            line.version, line.look, line.node, line.resource, line.numa, nanos, line.contained,
        )  # fmt: skip
        standing[key] = stood
        _add(done, stood, 1)


def _add(done: Replayed, stood: _Stood, sign: int) -> None:
    _, _, node, resource, numa, nanos, contained = stood
    if contained:
        return
    place = (node, resource)
    if nanos is None:
        done.unknown[place] = done.unknown.get(place, 0) + sign
        return
    done.sums[place] = done.sums.get(place, 0) + sign * nanos
    zone = (node, resource, numa)
    done.zones[zone] = done.zones.get(zone, 0) + sign * nanos


def first_difference(one: Iterable[bytes], other: Iterable[bytes]) -> Fault | None:
    """The first line at which two files differ, headers apart; None where they are the same."""
    first, second = iter(one), iter(other)
    next(first, None)
    next(second, None)
    for number, (left, right) in enumerate(_pairs(first, second), 2):
        if left != right:
            if left is None or right is None:
                return Fault(number, "one of the files ends before it")
            return Fault(number, "the files differ")
    return None


def _pairs(
    one: Iterator[bytes], other: Iterator[bytes]
) -> Iterator[tuple[bytes | None, bytes | None]]:
    while True:
        left, right = next(one, None), next(other, None)
        if left is None and right is None:
            return
        yield left, right
