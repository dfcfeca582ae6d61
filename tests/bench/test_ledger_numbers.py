"""Replaying a million lines of the ledger (design: 20 s on one core, memory flat).

Each size is replayed by the command itself, in a process of its own, whose time and peak of memory
count. Nothing fails for being slow; a file that does not replay to its own digest does.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from devices.dra.ledgerfile import Chain, FileLine, Header, encoded_header

pytestmark = [pytest.mark.bench]

SIZES = (100_000, 1_000_000)
ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench-results" / "ledger.json"
REACH = 20.0
NODES = 500
#: Of each node so many devices are charged at a time; every later line ends one and charges anew.
DEVICES = 8
AT = "2026-11-30T12:00:00Z"


def lines(count: int) -> Iterator[FileLine]:
    """Claims that come and go: charge, release, charge, over all devices of all nodes."""
    standing: dict[tuple[int, int], int] = {}
    claims: dict[tuple[int, int], int] = {}
    for number in range(1, count + 1):
        place = (number % NODES, number // NODES % DEVICES)
        ends = standing.pop(place, 0)
        if not ends:
            standing[place] = number
            claims[place] = number
        node, claim = f"node-{place[0]:04}", f"team-{place[0] % 40}/train-{claims[place]}"
        yield FileLine(
            id=number, look=number // 200 + 1, at=AT, act="release" if ends else "charge",
            ends=ends, node=node, rule="mapping", resource="cpu", amount="1500m",
            payer=f"claim/{claim}", pod=f"{claim}-0", pod_uid=f"pod-{claims[place]}", claim=claim,
            claim_uid=f"claim-{claims[place]}",
            device=("cpu.example.com", node, f"core-{place[1]}"), share="", container="",
            numa=place[1] % 2, contained=False, version=(1, 1, 7), source=f"slice {node}",
            writer="cpu-driver", code="",
        )  # fmt: skip


def written(file: Path, count: int) -> None:
    """The header goes before the lines and has their digest, so they are written twice over."""
    chain = Chain()
    for line in lines(count):
        chain.encoded(line)
    header = Header(chain.digest, count, 0, "1.37", "bench", "v1.37.2", AT, AT)
    again = Chain()
    with file.open("wb") as out:
        out.write(encoded_header(header))
        for line in lines(count):
            out.write(again.encoded(line))


def replayed(file: Path) -> dict[str, float]:
    """What `manage.py replayledger` takes on one processor: by the clock, of the processor, memory.
    On a machine that does other things as well the processor's seconds are those that count.
    """
    command = [sys.executable, "-m", "tests.bench.test_ledger_numbers", str(file)]
    began = time.perf_counter()
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    clock = time.perf_counter() - began
    return {"clock": round(clock, 1), **json.loads(done.stdout)}


def test_replaying(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures: dict[str, dict[str, float]] = {}
    for count in SIZES:
        file = tmp_path / f"{count}.jsonl"
        written(file, count)
        figures[f"{count:,} lines"] = {**replayed(file), "file": round(file.stat().st_size / 1e6)}
    with capsys.disabled():
        print(f"\n\nReplaying the ledger (reach: {REACH:.0f} s for a million, memory flat)")
        print(f"  {'':<20}{'clock':>8}{'processor':>11}{'memory':>10}{'file':>9}")
        for name, found in figures.items():
            print(
                f"  {name:<20}{found['clock']:>6.1f} s{found['processor']:>9.1f} s"
                f"{found['memory']:>7.0f} MB{found['file']:>6.0f} MB"
            )
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(figures, indent=2))


def _replay(file: Path) -> None:
    """As the command does it, and what it took of memory at most."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {0})
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "portal.settings")
    os.environ.setdefault("DEBUG", "true")
    import django
    from django.core.management import call_command

    django.setup()
    with open(os.devnull, "w") as nowhere:
        call_command("replayledger", str(file), stdout=nowhere)
    used = resource.getrusage(resource.RUSAGE_SELF)
    spent = round(used.ru_utime + used.ru_stime, 1)
    # What getrusage calls the peak also counts the process that this one was forked from.
    status = Path("/proc/self/status").read_text()
    peak = int(status.partition("VmHWM:")[2].split()[0]) // 1024
    print(json.dumps({"processor": spent, "memory": peak}))


if __name__ == "__main__":
    _replay(Path(sys.argv[1]))
