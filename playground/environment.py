"""Makes `.venv` from the hash-pinned lock file, and finds Chromium; needs nothing but Python.

Run by the Makefile as a file, with the machine's own Python, before anything is installed. So it
imports the standard library only. Failures end in one sentence that says what to do.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements-dev.lock"
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
LOG = VENV / "install.log"
STAMP = VENV / ".ready"

SUPPORTED = ((3, 11), (3, 13))
# What the lock file unpacks to, with compiled modules and room for pip's own work.
BYTES_NEEDED = 1_500_000_000
BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)


def main(arguments: list[str]) -> int:
    steps = {"install": install, "chromium": chromium}
    if len(arguments) != 1 or arguments[0] not in steps:
        print(f"usage: environment.py {' | '.join(steps)}", file=sys.stderr)
        return 2
    try:
        trouble = steps[arguments[0]]()
    except KeyboardInterrupt:
        return 130
    if trouble:
        print(trouble, file=sys.stderr)
    return 1 if trouble else 0


def install() -> str:
    """Brings `.venv` to what the lock file says; returns what went wrong, or nothing.

    Packages that are there already are not asked for again, so it works offline once installed.
    """
    first, last = SUPPORTED
    if not first <= sys.version_info[:2] <= last:
        return (
            f"Berth needs Python 3.11, 3.12 or 3.13, and this is {sys.version.split()[0]}:"
            " name another one with `make PYTHON=/path/to/python3 …`."
        )
    wanted = _wanted()
    if STAMP.exists() and STAMP.read_text() == wanted and _runs(PYTHON):
        STAMP.touch()  # make compares times, and a checkout may have touched the lock file
        return ""
    if not _runs(PYTHON) and (trouble := _make_venv()):
        return trouble
    return _install_packages() or _write_stamp(wanted)


def _wanted() -> str:
    """Names the packages and the Python they are for."""
    return f"{hashlib.sha256(LOCK.read_bytes()).hexdigest()}\n"


def _write_stamp(wanted: str) -> str:
    STAMP.write_text(wanted)
    return ""


def _runs(python: Path) -> bool:
    """Whether the venv works: the Python it was made from may be gone, or pip half installed."""
    if not python.exists():
        return False
    check = "import pip, sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))"
    return subprocess.run([python, "-c", check], capture_output=True).returncode == 0


def _make_venv() -> str:
    if (free := shutil.disk_usage(ROOT).free) < BYTES_NEEDED:
        return (
            f"Only {free // 10**6} MB are free in {ROOT}, and the Python packages take"
            f" {BYTES_NEEDED // 10**6}: make room and start again."
        )
    shutil.rmtree(VENV, ignore_errors=True)
    made = subprocess.run([sys.executable, "-m", "venv", VENV], capture_output=True, text=True)
    if made.returncode == 0:
        return ""
    shutil.rmtree(VENV, ignore_errors=True)
    said = made.stdout + made.stderr
    if "ensurepip" in said:
        return (
            "This Python cannot make virtual environments: install its venv package"
            " (Debian, Ubuntu: apt-get install python3-venv) and start again."
        )
    return f"The virtual environment could not be made: {_last_line(said)}"


def _install_packages() -> str:
    count = sum("==" in line for line in LOCK.read_text().splitlines())
    print(f"Installing {count} Python packages (once; one to two minutes) …", flush=True)
    began = time.monotonic()
    command: list[str | Path] = [PYTHON, "-m", "pip", "install", "--require-hashes", "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar=off", "-r", LOCK]
    with LOG.open("w") as log:
        pip = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        assert pip.stdout is not None
        collected = 0
        for line in pip.stdout:
            log.write(line)
            collected += line.startswith("Collecting ")
            if sys.stdout.isatty() and line.startswith(("Collecting ", "Installing ")):
                step = "installing" if line.startswith("I") else f"{collected} of {count} fetched"
                print(f"\r  {step}\033[K", end="", flush=True)
    if sys.stdout.isatty():
        print("\r\033[K", end="")
    if pip.wait() == 0:
        print(f"  done in {time.monotonic() - began:.0f} s", flush=True)
        return ""
    return _why_pip_failed(LOG.read_text())


def _why_pip_failed(said: str) -> str:
    """The usual causes in one sentence each, by pip's own words.

    >>> _why_pip_failed("OSError: [Errno 28] No space left on device").split(":")[0]
    'The disk is full'
    """
    offline = (
        "NewConnectionError",
        "ConnectTimeout",
        "NameResolution",
        "ProxyError",
        "ReadTimeout",
    )
    if "No space left on device" in said:
        return "The disk is full: make room for the Python packages and start again."
    if any(word in said for word in offline):
        return (
            "The Python packages could not be fetched, for want of a network: connect this"
            " machine, or point pip at your package index, and start again."
        )
    if "DO NOT MATCH THE HASHES" in said:
        return (
            "A package that was fetched is not the one the lock file names, so nothing was"
            f" installed: ask who runs your package index. {LOG} names it."
        )
    return f"The Python packages could not be installed: {_last_line(said)} ({LOG} has all of it.)"


def _last_line(said: str) -> str:
    lines = [line for line in said.splitlines() if line.strip()]
    return lines[-1].strip() if lines else "it said nothing."


def chromium() -> str:
    """Makes sure of a browser for the journeys; as root on Debian it is installed.

    `BERTH_CHROMIUM` names another one.
    """
    named = os.environ.get("BERTH_CHROMIUM")
    if any(shutil.which(name) for name in ([named] if named else BROWSERS)):
        return ""
    if os.geteuid() == 0 and shutil.which("apt-get") and not named:
        print("Installing Chromium (once) …", flush=True)
        quiet = {"DEBIAN_FRONTEND": "noninteractive", **os.environ}
        # An old list of packages may do, so a failing update alone is no reason to stop.
        subprocess.run(["apt-get", "update", "-qq"], env=quiet, stdin=subprocess.DEVNULL)
        subprocess.run(
            ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "chromium"],
            env=quiet,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        if shutil.which("chromium"):
            return ""
    return (
        "The browser tests need Chromium, and there is none: install it (Debian: apt-get install"
        " chromium) or name one with BERTH_CHROMIUM=/path/to/it, and start again."
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
