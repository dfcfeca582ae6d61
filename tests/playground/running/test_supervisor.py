"""Starting, restarting, stopping in order, and cleaning up after a supervisor that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from playground.errors import PlaygroundError
from playground.running.supervisor import (
    Program,
    Record,
    Supervisor,
    clear_leftovers,
    log_path,
    records,
    start,
    stop_all,
)

# Writes its name to the diary when it is up, and again when it is told to stop.
OBEDIENT = """
    import signal, sys, time
    diary, name = sys.argv[1:3]
    def note(word):
        with open(diary, "a") as file:
            file.write(f"{name} {word}\\n")
    def stop(*_):
        note("stops")
        time.sleep(0.1)
        note("ends")
        sys.exit(0)
    signal.signal(signal.SIGTERM, stop)
    note("up")
    time.sleep(60)
"""
STUBBORN = """
    import signal, subprocess, sys
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    work = "import time; print('worker up', flush=True); time.sleep(60)"
    subprocess.run([sys.executable, "-c", work])  # what is ignored here is ignored there too
"""


def a_program(name: str, source: str, *arguments: str, **options: object) -> Program:
    argv = (sys.executable, "-u", "-c", textwrap.dedent(source), *arguments)
    return replace(Program(name, argv), **options)  # type: ignore[arg-type]


def until(true: Callable[[], object], *, look: Callable[[], None] = lambda: None) -> None:
    patience = time.monotonic() + 10
    while not true():
        assert time.monotonic() < patience, "it never came true"
        look()
        time.sleep(0.02)


def alive(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with a space in its name; whatever a failed test leaves in it is ended."""
    place = tmp_path / "a folder"
    place.mkdir()
    yield place
    for record in records(place):
        record.kill()
    clear_leftovers(place)


@pytest.fixture
def supervisor(folder: Path) -> Supervisor:
    said: list[str] = []
    made = Supervisor(folder, said.append)
    made.said = said  # type: ignore[attr-defined]
    return made


def test_a_higher_stage_has_ended_before_a_lower_one_is_asked(
    folder: Path, supervisor: Supervisor
) -> None:
    diary = folder / "diary"
    for name, stage in (("database", 0), ("cluster", 1), ("web", 2), ("worker", 2)):
        supervisor.start(a_program(name, OBEDIENT, str(diary), name, stage=stage))
    until(lambda: diary.exists() and diary.read_text().count("up") == 4)
    assert supervisor.stop() == []
    lines = [line for line in diary.read_text().splitlines() if not line.endswith("up")]
    assert lines[4:] == ["cluster stops", "cluster ends", "database stops", "database ends"]
    assert sorted(lines[:2]) == ["web stops", "worker stops"], "one stage is asked together"
    assert records(folder) == []


def test_who_does_not_stop_in_time_is_killed_with_its_workers(
    folder: Path, supervisor: Supervisor
) -> None:
    supervisor.start(a_program("stubborn", STUBBORN, patience=0.3))
    until(lambda: "worker up" in log_path(folder, "stubborn").read_text())
    [record] = records(folder)
    pids = [process.pid for process in record.members()]
    assert len(pids) == 2
    began = time.monotonic()
    assert supervisor.stop() == ["stubborn"]
    assert 0.3 < time.monotonic() - began < 3
    assert not any(alive(pid) for pid in pids)


def test_what_dies_is_started_again_without_the_workers_of_the_dead(
    folder: Path, supervisor: Supervisor
) -> None:
    supervisor.start(a_program("web", STUBBORN, patience=0.3))
    until(lambda: "worker up" in log_path(folder, "web").read_text())
    [record] = records(folder)
    before = [process.pid for process in record.members()]
    os.kill(record.pid, signal.SIGKILL)
    until(lambda: log_path(folder, "web").read_text().count("up") == 2, look=supervisor.look)
    assert not any(alive(pid) for pid in before)
    assert supervisor.children["web"].record.alive
    assert "web ended (killed by SIGKILL); starting it again now" in supervisor.said[0]  # type: ignore[attr-defined]
    supervisor.stop()


def test_what_dies_young_waits_longer_each_time(folder: Path, supervisor: Supervisor) -> None:
    supervisor.start(a_program("broken", "raise SystemExit(3)"))
    said: list[str] = supervisor.said  # type: ignore[attr-defined]
    until(lambda: len(said) == 3, look=supervisor.look)
    assert [text.split(";")[1].split(".")[0].strip() for text in said] == [
        "starting it again now",
        "starting it again in 1 s",
        "starting it again in 2 s",
    ]
    assert "exit code 3" in said[0]
    supervisor.stop()


SUPERVISING = """
    import sys, time
    from pathlib import Path
    from playground.running.supervisor import Program, start
    folder, tied, source = Path(sys.argv[1]), sys.argv[2] == "tied", sys.argv[3]
    program = Program("child", (sys.executable, "-u", "-c", source), patience=0.5)
    start(program, folder, tied=tied)
    print("started", flush=True)
    time.sleep(60)
"""


def a_killed_supervisor(folder: Path, tied: str) -> Record:
    """The record of a child with a worker, whose supervisor was ended by kill -9."""
    command = [sys.executable, "-c", textwrap.dedent(SUPERVISING), str(folder), tied]
    with subprocess.Popen(
        [*command, textwrap.dedent(STUBBORN).replace("SIG_IGN", "SIG_DFL")],
        stdout=subprocess.PIPE,
    ) as supervising:
        assert supervising.stdout is not None
        assert supervising.stdout.readline() == b"started\n"
        until(lambda: "worker up" in log_path(folder, "child").read_text())
        supervising.kill()
    [record] = records(folder)
    return record


@pytest.mark.skipif(
    sys.platform != "linux", reason="only Linux tells a child of its parent's death"
)
def test_a_tied_program_is_told_to_stop_when_its_supervisor_is_killed(folder: Path) -> None:
    record = a_killed_supervisor(folder, "tied")
    until(lambda: not record.alive)


def test_the_next_start_ends_what_a_killed_supervisor_left(folder: Path) -> None:
    record = a_killed_supervisor(folder, "untied")
    assert record.alive
    pids = [process.pid for process in record.members()]
    assert clear_leftovers(folder) == ["child"]
    assert not any(alive(pid) for pid in pids)
    assert records(folder) == []


def test_workers_whose_leader_was_killed_too_are_found(folder: Path) -> None:
    record = a_killed_supervisor(folder, "untied")
    workers = [process.pid for process in record.members() if process.pid != record.pid]
    os.kill(record.pid, signal.SIGKILL)
    until(lambda: not record.alive)
    assert clear_leftovers(folder) == ["child"]
    assert workers and not any(alive(pid) for pid in workers)


def test_a_stranger_that_got_the_number_of_a_dead_program_is_left_alone(folder: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"]) as stranger:
        Record("web", stranger.pid, "an earlier boot/1", 0, "SIGTERM", 1.0, str(folder)).save()
        assert clear_leftovers(folder) == []
        assert stranger.poll() is None
        assert records(folder) == []
        stranger.kill()


def test_an_unreadable_record_does_not_stop_the_next_start(folder: Path) -> None:
    (folder / "run").mkdir()
    (folder / "run" / "web.json").write_text('{"from": "another version"}')
    assert clear_leftovers(folder) == []
    assert not (folder / "run" / "web.json").exists()


def test_a_missing_program_is_a_sentence(folder: Path) -> None:
    program = Program("web", (str(folder / "no such program"),))
    with pytest.raises(PlaygroundError, match="web cannot be started") as refused:
        start(program, folder, tied=False)
    assert "no such program" in str(refused.value)


def test_a_large_log_is_set_aside_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("playground.running.supervisor.LOG_LIMIT_BYTES", 10)
    log = log_path(folder, "web")
    log.parent.mkdir()
    log.write_text("much of the last run")
    child = start(a_program("web", "print('new')"), folder)
    child.process.wait()
    stop_all([child.record])
    assert log.read_text() == "new\n"
    assert log.with_suffix(".log.1").read_text() == "much of the last run"
