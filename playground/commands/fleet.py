"""`python -m playground fleet`: simulated machines on a control plane that is up."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import logging
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from devices.cluster.gateway import ClusterError
from playground.commands.plane import FOLDER
from playground.errors import PlaygroundError
from playground.faults.table import find
from playground.fleet import scale
from playground.fleet.fleet import Fleet
from playground.fleet.mailbox import LOOK_EVERY, Mailbox
from playground.fleet.scale import FULL, Size
from playground.fleet.site import gateway
from playground.fleet.spec import SCENARIOS, SpecError
from playground.plane.components import CONTROLLER_MANAGER, SCHEDULER
from playground.plane.controlplane import ControlPlane
from playground.realnodes import described, nodes
from playground.running.supervisor import write_whole

STOP_WITHIN = 5.0
SIZES = {
    name: getattr(FULL, name)
    for name in ("nodes", "devices_per_node", "claims", "pods", "namespaces")
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """up, down, status, scenarios and scale."""
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    up = actions.add_parser("up", help="run a scenario until Ctrl-C")
    up.add_argument("scenario", help="a scenario's name, or the path of a fleet file")
    up.add_argument(
        "--real-nodes", action="store_true", help="drivers for real nodes, though none is there yet"
    )
    down = actions.add_parser("down", help="stop the fleet; the cluster's objects stay")
    status = actions.add_parser("status", help="machines, drivers and Pods of the fleet")
    scale_ = actions.add_parser("scale", help="write a cluster of any size; nothing lives in it")
    for name, value in SIZES.items():
        option = f"--{name.replace('_', '-')}"
        scale_.add_argument(option, type=int, default=value, help=f"default {value}")
    for action in (up, down, status, scale_):
        action.add_argument("--folder", type=Path, default=FOLDER, help="of the control plane")
    actions.add_parser("scenarios", help="the scenarios that there are")


def run(options: argparse.Namespace) -> int:
    """Returns the exit code. Raises PlaygroundError with a sentence for people."""
    match options.action:
        case "up":
            return _up(options.scenario, options.folder, options.real_nodes)
        case "down":
            _down(options.folder)
        case "status":
            print(mailbox(options.folder).ask("status"))
        case "scale":
            _scale(options.folder, Size(**{name: getattr(options, name) for name in SIZES}))
        case "scenarios":
            for path in sorted(SCENARIOS.glob("*.yaml")):
                first = path.read_text().partition("\n")[0]
                print(f"{path.stem:<10} {first.lstrip('# ')}")
    return 0


def mailbox(folder: Path) -> Mailbox:
    """The letters to the fleet that runs on the control plane in `folder`.

    Raises PlaygroundError where no fleet runs.
    """
    if not _pid(folder):
        raise PlaygroundError(f"No fleet runs in {folder}: python -m playground fleet up demo")
    return Mailbox(folder / "fleet" / "mail")


def _up(scenario: str, folder: Path, real_nodes: bool) -> int:
    """Runs in the foreground; ends in order by SIGTERM or Ctrl-C."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    plane = ControlPlane.open(folder)
    ended = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        ended.set()

    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGINT, end)
    with _alone(folder):
        try:
            if real_nodes or nodes.known(plane):
                fleet = Fleet(scenario, plane, objects=partial(described.objects, plane=plane))
            else:
                fleet = Fleet(scenario, plane)
        except SpecError as error:
            raise PlaygroundError(str(error)) from error
        letters = Mailbox(folder / "fleet" / "mail")
        letters.open()
        try:
            fleet.start()
            print(f"{len(fleet.kubelets)} machines of {fleet.spec.name} are up", flush=True)
            while not ended.wait(LOOK_EVERY):
                if not fleet.site.sight.alive:
                    raise PlaygroundError("The fleet has gone blind; its log says why.")
                letters.serve(lambda name, arguments: answer(fleet, name, arguments))
        except TimeoutError as error:
            raise PlaygroundError(f"The API server does not answer: {error}.") from error
        finally:
            fleet.stop()
    return 0


def _scale(folder: Path, size: Size) -> None:
    """Loads a big cluster; scheduler and controllers are stopped first, and stay so."""
    plane = ControlPlane.open(folder)
    for name in {SCHEDULER, CONTROLLER_MANAGER} & set(plane.components):
        plane.stop_component(name)
    took = scale.load(
        gateway(plane.admin_kubeconfig),
        size,
        release=plane.release,
        tell=lambda what, count, seconds: print(f"{count} {what} in {seconds:.0f} s", flush=True),
    )
    print(f"Loaded in {took:.0f} s. Scheduler and controllers are stopped: they would undo it.")


def _down(folder: Path) -> None:
    pid = _pid(folder)
    if not pid:
        return
    os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + STOP_WITHIN
    while _pid(folder):
        if time.monotonic() > until:
            raise PlaygroundError(f"The fleet (process {pid}) does not end; see its log.")
        time.sleep(0.05)


def answer(fleet: Fleet, name: str, arguments: dict[str, Any]) -> str:
    """What a letter asks of the fleet: its status, or a fault's beginning or end."""
    if name == "status":
        return status(fleet)
    try:
        fault = find(arguments["fault"])
        return fault.do(fleet, mend=arguments["mend"], arguments=arguments["arguments"])
    except ClusterError as error:
        raise PlaygroundError(f"The cluster refused: {error}") from error


def status(fleet: Fleet) -> str:
    """What the fleet does now, in a few lines for people."""
    running = [one for one in fleet.kubelets.values() if one.running]
    drivers = Counter(name for one in fleet.kubelets.values() for name in one.drivers)
    pods = Counter(
        run.stage.value for one in fleet.kubelets.values() for run in one.pods.runs.values()
    )
    return "\n".join(
        [
            f"{fleet.spec.name}: {len(running)} of {len(fleet.kubelets)} kubelets run",
            *(f"driver {name}: on {count} nodes" for name, count in sorted(drivers.items())),
            *(f"controller {name}: runs" for name in sorted(fleet.controllers)),
            "Pods: " + (", ".join(f"{n} {stage}" for stage, n in sorted(pods.items())) or "none"),
        ]
    )


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One fleet per control plane; the note says which process it is."""
    place = folder / "fleet"
    place.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (place / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise PlaygroundError(
                f"A fleet runs in {folder} already: python -m playground fleet down"
            ) from None
        write_whole(place / "fleet.json", json.dumps({"pid": os.getpid()}))
        try:
            yield
        finally:
            (place / "fleet.json").unlink(missing_ok=True)


def _pid(folder: Path) -> int:
    """The process of the fleet, or 0. The lock, not the note, says whether it lives."""
    place = folder / "fleet"
    try:
        with (place / "lock").open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return 0
    except FileNotFoundError:
        return 0
    except OSError:
        try:
            return int(json.loads((place / "fleet.json").read_text())["pid"])
        except (FileNotFoundError, ValueError, KeyError):
            return 0
