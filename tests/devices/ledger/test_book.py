"""The ledger's tables: looks add lines and nothing else, states ring, files replay to the sums."""

from __future__ import annotations

import io
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from devices.dra.charges import Rule
from devices.dra.ledgerfile import replay
from devices.dra.ledgerlog import fold, node_sums
from devices.dra.quantity import NANO, parse
from devices.ledger.book import forget, scan, standing_charges
from devices.ledger.exports import export
from devices.ledger.figures import counted, figures, zones
from devices.ledger.rows import lines_of
from devices.models import LedgerDifference, LedgerHead, LedgerLine, LedgerNode, LedgerPool
from portal.alerts.models import Alert
from tests.devices.dra.cases import by_number, snapshot
from tests.devices.dra.test_ledgerchanges import sharing
from tests.devices.ledger.clusters import Cluster
from tests.factories import NOON

pytestmark = pytest.mark.django_db


def minute(number: float) -> datetime:
    return NOON + timedelta(minutes=number)


def looked(made: Cluster, number: float) -> int:
    """One look at that minute; returns how many lines it added."""
    return scan(made.read(), minute(number), minute(number)).lines


@pytest.fixture
def made() -> Cluster:
    """A node with two devices that cost 2 CPUs and some overhead, and a Pod that uses one."""
    cluster = Cluster()
    cluster.node("n1", cpu="16", memory="64Gi")
    cluster.slices("n1", mapping="2", overhead=("500m", "250m"))
    cluster.claim("c1", "n1", 0)
    cluster.pod("p1", "n1", cpu="1", claims=["c1"], references=2)
    cluster.schedule()
    return cluster


def cpu(node: str = "n1", at: datetime | None = None) -> tuple[int | None, ...]:
    [one] = [
        f for f in figures(LedgerLine.objects.charges(at)) if (f.node, f.resource) == (node, "cpu")
    ]
    parts = (one.requests, one.mapping, one.overhead, one.left)
    return tuple(None if part is None else part * 1000 // NANO for part in parts)


def test_a_look_writes_what_there_is_and_a_second_one_nothing(made) -> None:
    assert looked(made, 0) == 2 + 1 + 1 + 3  # offered, requested, mapped; overhead and two refs
    assert looked(made, 1) == 0
    assert cpu() == (2000, 2000, 1000, 11000)
    assert LedgerNode.objects.get().state == "safe"
    line = LedgerLine.objects.get(rule="mapping")
    assert (line.claim, line.numa, line.source) == ("ns/c1", 0, "slice n1")
    assert line.claim_uid.startswith("ResourceClaim-c1")


def test_lines_can_neither_be_changed_nor_removed(made) -> None:
    looked(made, 0)
    rows = LedgerLine.objects.all()
    for change in (lambda: rows.update(nanos=0), lambda: rows.delete()):
        with pytest.raises(DatabaseError), transaction.atomic():
            change()


def test_as_of_shows_what_stood_then(made) -> None:
    looked(made, 0)
    made.remove("Pod", "p1")
    assert looked(made, 5) == 5
    assert cpu() == (0, 0, 0, 16000)
    assert cpu(at=minute(4)) == (2000, 2000, 1000, 11000)
    assert cpu(at=minute(5)) == (0, 0, 0, 16000)
    assert not LedgerLine.objects.charges(minute(-1)).exists()


def test_an_older_look_is_passed_over(made) -> None:
    looked(made, 5)
    made.remove("Pod", "p1")
    assert looked(made, 4) == 0
    assert LedgerHead.objects.get().look == 1


def test_a_look_costs_the_same_number_of_queries_however_much_there_is(made) -> None:
    def queries(number: float) -> int:
        with CaptureQueriesContext(
            connection,
        ) as caught:
            looked(made, number)
        return len(caught)

    looked(made, 0)
    made.node("more", cpu="8")
    made.pod("more", "more", cpu="1")
    few = queries(0.5)
    for number in range(2, 40):
        made.node(f"n{number}", cpu="8")
        made.pod(f"p{number}", f"n{number}", cpu="1")
    assert queries(1) <= few


def test_looks_that_visit_what_changed_come_to_what_a_whole_look_comes_to(made) -> None:
    made.node("n2", cpu="8")
    made.slices("n2", mapping="1")
    last = made.read()
    scan(last, minute(0), minute(0))

    def adds(number: float) -> int:
        """A look at a picture that shares with the last one what did not change."""
        nonlocal last
        last = sharing(last, made.read())
        return scan(last, minute(number), minute(number)).lines

    assert adds(1) == 0
    made.claim("c2", "n2", 0)
    made.pod("p2", "n2", cpu="1", claims=["c2"])
    made.schedule()
    assert adds(2) == 2
    made.pod("p3", "n1", claims=["c2"])  # a second user of a mapped claim, on another node
    made.schedule()
    assert adds(3) == 1
    assert LedgerHead.objects.get().doubled == 1
    made.remove("Pod", "p1")
    made.remove("Pod", "p3")
    adds(4)
    made.remove("Node", "n2")
    adds(5)
    stands = dict(standing_charges())
    forget()
    assert (looked(made, 6), dict(standing_charges())) == (0, stands)


def test_zones_and_the_kept_figures_are_the_sums_of_the_log(made) -> None:
    looked(made, 0)
    made.claim("c2", "n1", 1)
    made.pod("p2", "n1", claims=["c2"])
    made.schedule()
    looked(made, 1)
    assert [(zone.numa, zone.amounts, zone.devices) for zone in zones("n1")] == [
        (0, {"cpu": 3 * NANO}, ("d0",)),
        (1, {"cpu": 2750 * NANO // 1000}, ("d1",)),
        (None, {"cpu": 2 * NANO}, ()),
    ]
    assert LedgerNode.objects.get().figures == counted(standing_charges().values())["n1"]


def test_the_log_folds_to_what_stands(made) -> None:
    looked(made, 0)
    made.slices("n1", generation=2, mapping="3")
    made.remove("Pod", "p1")
    made.pod("p2", "n1", claims=["c1"])
    made.schedule()
    looked(made, 1)
    folded = fold(lines_of(LedgerLine.objects.order_by("?")))
    assert folded.standing == standing_charges()
    assert node_sums(folded.standing.values())["n1", "cpu"] == parse("3")


def test_a_divergence_that_lasts_rings_once_and_stops(made) -> None:
    looked(made, 0)
    pod = made._found["Pod", "p1"]
    mapped = pod["status"]["nodeAllocatableResourceClaimStatuses"][0]["mapping"][0]
    mapped["quantity"] = "1"
    looked(made, 1)
    assert not Alert.objects.exists()  # the mirror's kinds arrive one by one
    looked(made, 2)
    looked(made, 3)
    row = LedgerDifference.objects.get(until=None)
    assert (row.pod, row.log, row.objects_say, row.status) == ("ns/p1", "3", "3", "2")
    assert (row.code, row.since) == ("LEDGER_POD_STATUS_DIFFERS", minute(1))
    node = LedgerNode.objects.get()
    assert (node.state, node.code) == ("unsafe", "LEDGER_POD_STATUS_DIFFERS")
    assert [alert.subject for alert in Alert.objects.all()] == ["ledger of node n1"]
    mapped["quantity"] = "2000m"
    looked(made, 4)
    assert not LedgerDifference.objects.filter(until=None).exists()
    assert LedgerNode.objects.get().state == "safe"
    assert not Alert.objects.filter(over_at=None).exists()


def test_a_driver_that_restarts_makes_the_node_rebuild_and_then_safe(made) -> None:
    looked(made, 0)
    spec = made._found["ResourceSlice", "n1"]["spec"]
    made.remove("ResourceSlice", "n1")
    assert looked(made, 1) == 0
    node = LedgerNode.objects.get()
    assert (node.state, node.reasons) == (
        "rebuilding", [["LEDGER_REBUILDING", "d.example.com/n1 is not published"]],
    )  # fmt: skip
    assert not Alert.objects.exists()
    looked(made, 5)
    assert Alert.objects.get().code == "LEDGER_REBUILDING"
    made.slices("n1", mapping="2", overhead=("500m", "250m"))
    assert spec == made._found["ResourceSlice", "n1"]["spec"]
    assert looked(made, 6) == 0
    assert LedgerPool.objects.get().epoch == 2
    assert LedgerNode.objects.get().state == "safe"
    assert cpu() == (2000, 2000, 1000, 11000)


def test_a_node_that_is_gone_is_forgotten_and_its_lines_stay(made) -> None:
    looked(made, 0)
    for kind, name in (("Node", "n1"), ("Pod", "p1"), ("ResourceSlice", "n1")):
        made.remove(kind, name)
    looked(made, 1)
    assert not LedgerNode.objects.exists()
    assert not LedgerLine.objects.charges().exists()
    assert LedgerLine.objects.filter(node="n1", act="release").count() == 7


def test_what_is_exported_replays_to_the_same_sums_and_from_a_moment_too(made) -> None:
    looked(made, 0)
    made.claim("c2", "n1", 1)
    made.pod("p2", "n1", claims=["c2"])
    made.schedule()
    looked(made, 1)
    made.remove("Pod", "p1")
    looked(made, 2)
    sums = {
        place: amount for place, amount in node_sums(standing_charges().values()).items() if amount
    }
    for since in (None, minute(1)):
        done = replay(export(since, None))
        assert (done.fault, dict(done.charged())) == (None, sums)
    early = replay(export(None, minute(0.5)))
    assert {p: str(a) for p, a in early.charged().items()} == {("n1", "cpu"): "5"}


def test_the_commands_write_replay_and_name_the_line_that_was_changed(made, tmp_path: Path) -> None:
    looked(made, 0)
    file, other = tmp_path / "ledger.jsonl", tmp_path / "other.jsonl"
    call_command("exportledger", output=str(file), stdout=io.StringIO())
    out = io.StringIO()
    call_command("replayledger", str(file), stdout=out)
    assert "n1\tcpu\t5" in out.getvalue()
    lines = file.read_bytes().splitlines(keepends=True)
    other.write_bytes(b"".join([*lines[:3], lines[3].replace(b"n1", b"n2"), *lines[4:]]))
    with pytest.raises(CommandError, match="line 4: it is not the line that was exported"):
        call_command("replayledger", str(other), stdout=io.StringIO())
    with pytest.raises(CommandError, match="line 4: the files differ"):
        call_command("replayledger", str(file), against=str(other), stdout=io.StringIO())
    with pytest.raises(CommandError, match="cannot be opened"):
        call_command("replayledger", str(tmp_path / "none"), stdout=io.StringIO())


def test_a_case_in_the_shape_of_1_36_is_written_like_one_of_1_37() -> None:
    scan(snapshot(by_number("12")), NOON, NOON)
    found = {f.resource: f.mapping for f in figures(LedgerLine.objects.charges())}
    assert found["cpu"] == 4 * NANO
    assert found["memory"] == 8 * 2**30 * NANO
    assert not LedgerDifference.objects.exists()
    assert Rule.ALLOCATABLE.value in LedgerLine.objects.values_list("rule", flat=True)
