"""The rules' numbers at 5,000 to 40,000 devices, and upstream's allocator over the same nodes.

Each size is measured in processes of its own, so that *cold* is what the first question after a
start costs. Figures are printed and written to bench-results/; nothing fails for being slow, for a
shared machine would make that a lottery.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import statistics
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import msgspec
import pytest

from devices.dra.allocate import forecast
from devices.dra.capacity import capacity
from devices.dra.claims import read_claim_spec
from devices.dra.explain import explain
from devices.dra.gates import gates
from devices.dra.requests import Wish
from devices.dra.snapshot import Snapshot, read_json
from playground.building.releases import binary_path
from tests.playground.planes import NEWEST, built

pytestmark = [pytest.mark.bench]

#: Devices in all; eight on each node.
SIZES = (5_000, 10_000, 20_000, 40_000)
PER_NODE = 8
#: The share of the devices that is allocated, one to a claim.
USED = 0.5
#: How many processes measure each size; the middle one counts.
RUNS = int(os.environ.get("BERTH_BENCH_RUNS", "3"))
ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "bench-results" / "rules.json"

DRIVER = "gpu.nvidia.com"
ATTRIBUTES = f'device.attributes["{DRIVER}"]'
MEMORY = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("{{}}")) >= 0'
H100 = f'{ATTRIBUTES}.productName.startsWith("NVIDIA H100")'
FITS = (f"{H100} && {MEMORY.format('40Gi')}",)
TOO_BIG = (f"{H100} && {MEMORY.format('90Gi')}",)
#: What is reached for, in milliseconds at 40,000 devices.
REACH = {
    "snapshot from raw bytes": 1000,
    "what-if, first of the process": 300,
    "what-if again": 50,
    "what-if, other number": 50,
    "explanation, fits": 150,
    "explanation, does not fit": 150,
    "capacity of everything": 500,
}


# --- a cluster ---


def objects(devices: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """A cluster of so many devices: three kinds of cards, and claims that hold every other one."""
    yield "DeviceClass", a_class()
    for number in range(devices // PER_NODE):
        name = f"node-{number:05}"
        yield (
            "Node",
            {
                "metadata": {
                    "name": name,
                    "uid": f"u-{name}",
                    "labels": {"rack": f"r{number // 40}"},
                },
                "status": {"allocatable": {"cpu": "128", "memory": "1Ti", "pods": "110"}},
            },
        )
        yield "ResourceSlice", a_slice(name, number)
        for index in range(round(PER_NODE * USED)):
            yield "ResourceClaim", a_holder(name, index)


def a_class() -> dict[str, Any]:
    expression = f'device.driver == "{DRIVER}" && {ATTRIBUTES}.type == "gpu"'
    return {
        "metadata": {"name": DRIVER},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def a_slice(node: str, number: int) -> dict[str, Any]:
    kind = ("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "NVIDIA L40S")[number % 3]
    return {
        "metadata": {"name": f"{node}-{DRIVER}", "uid": f"s-{node}", "resourceVersion": "7"},
        "spec": {
            "driver": DRIVER,
            "nodeName": node,
            "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
            "devices": [
                {
                    "name": f"gpu-{index}",
                    "attributes": {
                        "type": {"string": "gpu"},
                        "productName": {"string": kind},
                        "brand": {"string": "Nvidia"},
                        "architecture": {"string": "Hopper"},
                        "cudaComputeCapability": {"version": "9.0.0"},
                        "cudaDriverVersion": {"version": "13.0.0"},
                        "driverVersion": {"version": "580.65.6"},
                        "uuid": {"string": f"GPU-{uuid.UUID(int=number * 64 + index)}"},
                        "resource.kubernetes.io/pciBusID": {"string": f"0000:{index:02x}:00.0"},
                        "resource.kubernetes.io/pcieRoot": {"string": f"pci0000:{index // 2:02x}"},
                    },
                    "capacity": {"memory": {"value": "46068Mi" if number % 3 == 2 else "81559Mi"}},
                }
                for index in range(PER_NODE)
            ],
        },
    }


def a_holder(node: str, index: int) -> dict[str, Any]:
    here = {"key": "metadata.name", "operator": "In", "values": [node]}
    result = {"request": "gpu", "driver": DRIVER, "pool": node, "device": f"gpu-{index}"}
    return {
        "metadata": {
            "name": f"{node}-{index}",
            "namespace": f"team-{node[-2:]}",
            "uid": f"c-{node}-{index}",
        },
        "spec": spec(1),
        "status": {
            "allocation": {
                "devices": {"results": [result]},
                "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
            },
            "reservedFor": [{"resource": "pods", "name": "p", "uid": f"p-{node}-{index}"}],
        },
    }


def spec(count: int, selectors: Sequence[str] = ()) -> dict[str, Any]:
    exactly = {
        "deviceClassName": DRIVER,
        "allocationMode": "ExactCount",
        "count": count,
        "selectors": [{"cel": {"expression": text}} for text in selectors],
    }
    return {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}


def wishes(count: int, selectors: Sequence[str]) -> list[Wish]:
    return [Wish("team/wish", read_claim_spec(spec(count, selectors), "spec", []))]


def as_bytes(pairs: Iterable[tuple[str, dict[str, Any]]]) -> dict[str, list[bytes]]:
    """Objects as the mirror stores them: the bytes of each, by kind."""
    found: dict[str, list[bytes]] = {}
    for kind, obj in pairs:
        found.setdefault(kind, []).append(msgspec.json.encode(obj))
    return found


# --- ours: one process for each set of figures ---


def measure(devices: int) -> dict[str, float]:
    """Milliseconds (wall clock) of each question, in the order in which a process meets them."""
    raw = as_bytes(objects(devices))
    gc.collect()
    timed = Stopwatch()
    seen = timed("snapshot from raw bytes", lambda: read_json(raw, gates=gates("1.37")))
    assert sum(len(piece.devices) for piece in seen.slices) == devices
    ask(seen, devices, timed)
    again = read_json(raw, gates=gates("1.37"))
    whole = timed("capacity of everything", lambda: capacity(again))
    assert whole.cluster.total == devices
    once_more = read_json(raw, gates=gates("1.37"))
    timed.figures["its calls (thousands)"] = calls_of(lambda: capacity(once_more))
    timed.figures["peak memory (MB)"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return timed.figures


def calls_of(question: Callable[[], Any]) -> float:
    """Thousands of function calls that a question takes: work that no cache or neighbour changes,
    so that growth by more work is told from growth by memory that lies further apart.
    """
    calls = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        question()
    finally:
        sys.setprofile(None)
    return calls / 1000


class Stopwatch:
    """Runs a question and keeps how long it took."""

    def __init__(self) -> None:
        self.figures: dict[str, float] = {}

    def __call__(self, name: str, question: Callable[[], Any]) -> Any:
        began = time.perf_counter()
        answer = question()
        self.figures[name] = (time.perf_counter() - began) * 1000
        return answer


def ask(seen: Snapshot, devices: int, timed: Stopwatch) -> None:
    first = timed("what-if, first of the process", lambda: forecast(seen, wishes(2, FITS)))
    assert len(first.fitting) == a_third(devices)
    timed("what-if again", lambda: forecast(seen, wishes(2, FITS)))
    timed("what-if, other number", lambda: forecast(seen, wishes(3, FITS)))
    timed("what-if, other condition", lambda: forecast(seen, wishes(1, (H100,))))
    fits = timed("explanation, fits", lambda: explain(seen, wishes(4, FITS)))
    assert fits.code is None
    no = timed("explanation, does not fit", lambda: explain(seen, wishes(1, TOO_BIG)))
    assert no.code is not None and no.code.name == "NO_DEVICE_MATCHES_SELECTOR"


def a_third(devices: int) -> int:
    """How many nodes have the cards that are asked for."""
    return -(-(devices // PER_NODE) // 3)


def measured_apart(devices: int) -> dict[str, float]:
    """The middle of several processes, figure by figure."""
    runs = []
    for _ in range(RUNS):
        command = [sys.executable, "-m", "tests.bench.test_rules_numbers", str(devices)]
        done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, check=True, text=True)
        runs.append(json.loads(done.stdout))
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


# --- upstream ---


def upstream(program: Path, devices: int) -> tuple[float, int]:
    """Milliseconds that upstream's allocator takes for the same request on every node, one after
    the other on one processor, and on how many it fits. Reading the objects is not in it.
    """
    found = [{"kind": kind, **obj} for kind, obj in objects(devices)]
    claim = {"metadata": {"name": "wish", "namespace": "team", "uid": "w"}, "spec": spec(2, FITS)}
    question = {
        "id": "1",
        "nodes": [obj["metadata"]["name"] for obj in found if obj["kind"] == "Node"],
        "claims": [claim],
    }
    document = {"features": sorted(gates("1.37").on), "objects": found, "questions": [question]}
    done = subprocess.run(
        [str(program), "oracle"],
        input=json.dumps(document),
        stdout=subprocess.PIPE,
        check=True,
        text=True,
        env={**os.environ, "GOMAXPROCS": "1"},
    )
    answer = json.loads(done.stdout)
    assert answer["verdict"] == "OK", answer
    return answer["nanoseconds"] / 1e6, answer["fits"]


# --- the table ---


def test_rules(capsys: pytest.CaptureFixture[str]) -> None:
    program = binary_path(built(NEWEST))
    table = {devices: measured_apart(devices) for devices in SIZES}
    for devices in SIZES:
        took, fitting = upstream(program, devices)
        assert fitting == a_third(devices)
        table[devices]["upstream's allocator, every node"] = took
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(table, indent=2))
    with capsys.disabled():
        print("\n".join(lines(table)))


def lines(table: Mapping[int, Mapping[str, float]]) -> Iterator[str]:
    """The table: a row for each figure; growth is the last size against the first, per device."""
    smallest, largest = SIZES[0], SIZES[-1]
    yield "\n\nThe rules (milliseconds of wall clock, the middle of several processes)"
    yield f"  {'devices':<36}" + "".join(f"{n:>10,}" for n in SIZES) + "     reach    growth"
    for name in table[largest]:
        row = "".join(f"{table[n][name]:>10,.1f}" for n in SIZES)
        grown = table[largest][name] / table[smallest][name] * smallest / largest
        reach = f"{REACH[name]:>10,}" if name in REACH else " " * 10
        yield f"  {name:<36}{row}{reach}{grown:>9.2f}x"
    yield "  growth: 1 is linear in devices, less is better"


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]))))
