"""The log as a file: which lines, in which order, and the header before them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

from devices.dra.ledgerfile import Chain, FileLine, Header, encoded_header, file_line
from devices.ledger.rows import COLUMNS, line_of
from devices.models import ClusterState, LedgerHead, LedgerLine
from devices.models.ledger import LedgerLines


def export(since: datetime | None = None, until: datetime | None = None) -> Iterator[bytes]:
    """The log from one moment to another, header first: what stood at `since` opens it.

    The log is only ever added to, so that two passes over it see the same lines; what a look adds
    meanwhile is left for the next file.
    """
    head = LedgerHead.objects.first()
    until = until or (head.as_of if head and head.as_of else datetime.now(UTC))
    newest = LedgerLine.objects.filter(at__lte=until).order_by("-pk").first()
    parts = _parts(since, until, newest.pk if newest else 0)
    chain, opening = Chain(), 0
    for number, rows in enumerate(parts):
        for line in _lines(rows):
            chain.encoded(line)
        if number + 1 < len(parts):
            opening = chain.lines
    cluster = ClusterState.objects.first()
    release = cluster.release if cluster else ""
    yield encoded_header(
        Header(
            digest=chain.digest,
            lines=chain.lines,
            opening=opening,
            shape=shape_of(release),
            cluster=cluster.identity if cluster else "",
            release=release,
            from_=_moment(since) if since else "",
            to=_moment(until),
        )
    )
    again = Chain()
    for rows in parts:
        for line in _lines(rows):
            yield again.encoded(line)


def shape_of(release: str) -> str:
    """Which field of slices a release knows: 1.36, 1.37, or unknown where it does not say."""
    parts = release.removeprefix("v").split(".")[:2]
    if len(parts) != 2 or not all(part.isdigit() for part in parts):
        return "unknown"
    return "1.36" if tuple(map(int, parts)) <= (1, 36) else "1.37"


def _parts(since: datetime | None, until: datetime, last: int) -> list[LedgerLines]:
    rows = LedgerLine.objects.filter(pk__lte=last, at__lte=until)
    if since is None:
        return [rows.order_by("pk")]
    standing = LedgerLine.objects.standing(since).filter(pk__lte=last)
    return [standing.order_by("pk"), rows.filter(at__gt=since).order_by("pk")]


def _lines(rows: LedgerLines) -> Iterator[FileLine]:
    for row in rows.values_list(*COLUMNS, "at", "writer").iterator(chunk_size=5000):
        yield file_line(line_of(row[:-2]), _moment(row[-2]), row[-1])


def _moment(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
