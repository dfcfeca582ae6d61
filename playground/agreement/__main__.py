"""`python -m playground.agreement`: asks both sides, and says how often they agree."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from devices.dra.gates import parse
from playground.agreement.comparison import report
from playground.agreement.rounds import run, run_scheduler
from playground.building.releases import build, known_release, minor


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs from the command line; 1 where fewer than 99.5 % of the answers agree."""
    parser = argparse.ArgumentParser(prog="python -m playground.agreement", description=__doc__)
    parser.add_argument("--release", default="1.37", help="1.36 or 1.37")
    parser.add_argument("--sets", type=int, default=200, help="how many object sets")
    parser.add_argument("--seed", type=int, default=0, help="the first set's seed")
    parser.add_argument("--gates", default="default", help="default, all, then Name=true,…")
    parser.add_argument("--cel", type=int, default=2000, help="how many expressions")
    parser.add_argument("--folder", type=Path, help="where disagreements are written")
    parser.add_argument("--scheduler", action="store_true", help="ask kube-scheduler itself")
    options = parser.parse_args(arguments)
    release = known_release(options.release)
    gates = parse(options.gates, minor(release))
    folder = options.folder or Path(tempfile.mkdtemp(prefix="berth-agreement-"))
    seeds = range(options.seed, options.seed + options.sets)
    if options.scheduler:
        build(release)
        tally = run_scheduler(release, seeds, folder)
    else:
        tally = run(build(release), gates, seeds, folder, cel=options.cel)
    report(tally, options.sets)
    return 0 if tally.rate >= 0.995 else 1


if __name__ == "__main__":
    sys.exit(main())
