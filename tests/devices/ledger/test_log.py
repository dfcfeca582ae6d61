"""The log and its fold: any order comes to the same sums, and those are the snapshot's."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devices.dra.charges import Rule
from devices.dra.gates import gates
from devices.dra.ledger import accounts
from devices.dra.ledgercompare import Verdict, balances
from devices.dra.ledgerentries import Entry
from devices.dra.ledgerlog import Act, LogLine, fold, node_sums, zone_sums
from devices.dra.ledgerstate import State
from devices.dra.quantity import ZERO, Quantity, parse
from devices.dra.snapshot import Snapshot, read
from tests.devices.dra.cases import PATHS, by_number, objects, snapshot
from tests.devices.ledger.clusters import ON, Cluster, histories
from tests.devices.ledger.memory import Book

LEDGER_CASES = [*range(10, 19), 32, 33, 49, 50]


def of_snapshot(cluster: Snapshot) -> dict[tuple[str, str], Quantity | None]:
    """What the accounts of a snapshot are charged, those with nothing left out."""
    return {
        (node, resource): account.charged
        for node, by_resource in accounts(cluster).items()
        for resource, account in by_resource.items()
        if account.charged != ZERO
    }


def known(sums: dict[tuple[str, str], Quantity | None]) -> dict[tuple[str, str], Quantity | None]:
    return {place: amount for place, amount in sums.items() if amount != ZERO}


#: Object sets without any Pod: a log needs Pods, a snapshot takes reservations for them.
WITH_PODS = [path for path in PATHS if snapshot(path).pods]


@pytest.mark.parametrize("path", WITH_PODS, ids=lambda path: path.stem)
def test_of_every_case_the_log_comes_to_the_accounts_of_the_snapshot(path) -> None:
    book, cluster = Book(), snapshot(path)
    book.look(cluster)
    assert known(node_sums(fold(book.lines).standing.values())) == of_snapshot(cluster)
    assert book.look(cluster) == []


@pytest.mark.parametrize("number", LEDGER_CASES)
def test_of_the_ledger_cases_log_objects_and_pod_status_agree(number) -> None:
    book = Book()
    book.look(snapshot(by_number(f"{number:02}")))
    assert [(one.pod, one.code) for one in book.differences] == []
    assert [b for b in balances(book.charges, book.seen) if not b.equal] == []


def test_a_restart_of_the_driver_releases_nothing_and_begins_an_epoch() -> None:
    book = Book()
    every = copy.deepcopy(list(objects(by_number("13"))))
    book.look(read(every, gates=ON))
    before = book.charges
    without = [obj for obj in every if obj["kind"] != "ResourceSlice"]
    assert book.look(read(without, gates=ON)) == []
    assert book.state("node-l1") == (State.REBUILDING, {"LEDGER_REBUILDING"})
    assert book.differences == ()
    for obj in every:
        if obj["kind"] == "ResourceSlice":
            obj["metadata"]["uid"] = "made anew"
    assert book.look(read(every, gates=ON)) == []
    assert {state.epoch for state in book.pools.values()} == {2}
    assert book.charges == before
    assert book.state("node-l1") == (State.SAFE, set())


def a_cluster(**changes: Any) -> Cluster:
    made = Cluster()
    made.node("n1", cpu="16")
    made.slices("n1", **changes)
    return made


def test_an_older_generation_is_refused_and_shown_until_it_is_gone() -> None:
    book, made = Book(), a_cluster(generation=5, mapping="2")
    book.look(made.read())
    made.slices("n1", generation=3, mapping="1")
    made.claim("c1", "n1", 0)
    made.pod("p1", "n1", claims=["c1"])
    [added] = [line for line in book.look(made.read()) if line.entry.rule is Rule.MAPPING]
    assert (added.act, added.entry.code) == (Act.OLDER, "LEDGER_OLDER_VERSION")
    assert book.state("n1")[0] is State.UNSAFE
    assert "LEDGER_OLDER_VERSION" in book.state("n1")[1]
    assert fold(book.lines).older == 1
    made.slices("n1", generation=6, mapping="1")
    acts = {line.act for line in book.look(made.read())}
    assert acts == {Act.RELEASE, Act.CHARGE}
    assert node_sums(book.charges.values())["n1", "cpu"] == parse("1")


def test_a_bound_pod_keeps_its_version_and_the_next_one_gets_the_new() -> None:
    book, made = Book(), a_cluster(mapping="2")
    made.claim("c1", "n1", 0)
    made.pod("p1", "n1", claims=["c1"])
    made.schedule()
    book.look(made.read())
    made.slices("n1", generation=2, mapping="3")
    assert book.look(made.read()) == []
    [later] = book.differences
    assert (later.verdict, later.code) == (Verdict.LATER, "LEDGER_CHANGED_LATER")
    assert (later.log, later.objects, later.status) == (parse("2"), parse("3"), parse("2"))
    assert book.state("n1") == (State.SAFE, set())
    made.remove("Pod", "p1")
    made.pod("p2", "n1", claims=["c1"])
    made.schedule()
    [line] = [line for line in book.look(made.read()) if line.entry.rule is Rule.MAPPING]
    assert (line.entry.version[:2], line.entry.amount) == ((1, 2), parse("3"))
    assert book.differences == ()


def test_a_slice_that_changed_before_the_pod_was_first_seen_is_put_right() -> None:
    """The scheduler read version 2 and the log was written when only version 1 was known."""
    book, made = Book(), a_cluster(mapping="2")
    made.claim("c1", "n1", 0)
    made.pod("p1", "n1", claims=["c1"])
    book.look(made.read())
    made.slices("n1", generation=2, mapping="3")
    made.schedule()
    book.look(made.read())
    assert node_sums(book.charges.values())["n1", "cpu"] == parse("3")
    assert book.differences == ()


@pytest.mark.parametrize(
    "written, code, verdict",
    [
        pytest.param("1", "LEDGER_POD_STATUS_DIFFERS", Verdict.DIVERGES, id="less than the log"),
        pytest.param("2000m", "", None, id="the same in another unit"),
        pytest.param(None, "LEDGER_POD_STATUS_DIFFERS", Verdict.DIVERGES, id="nothing written"),
    ],
)
def test_a_pod_status_that_says_something_else_diverges(written, code, verdict) -> None:
    book, made = Book(), a_cluster(mapping="2")
    made.claim("c1", "n1", 0)
    pod = made.pod("p1", "n1", claims=["c1"])
    made.schedule()
    charged = pod["status"]["nodeAllocatableResourceClaimStatuses"]
    if written is None:
        charged.clear()
    else:
        charged[0]["mapping"][0]["quantity"] = written
    book.look(made.read())
    assert [(one.code, one.verdict) for one in book.differences] == (
        [(code, verdict)] if code else []
    )
    assert book.state("n1")[0] is (State.UNSAFE if code else State.SAFE)


def test_a_mapped_claim_of_two_pods_counts_once_and_the_second_key_is_rejected() -> None:
    book, made = Book(), a_cluster(mapping="2")
    made.claim("c1", "n1", 0)
    made.pod("p1", "n1", claims=["c1"])
    made.pod("p2", "n1", claims=["c1"])
    made.schedule()
    book.look(made.read())
    folded = fold(book.lines)
    assert (folded.doubled, node_sums(folded.standing.values())["n1", "cpu"]) == (1, parse("2"))
    [one] = book.differences
    assert (one.pod, one.code) == ("ns/p2", "LEDGER_COUNTED_TWICE")
    assert book.look(made.read()) == []
    assert fold(book.lines).doubled == 1


def test_more_than_the_node_has_is_unsafe() -> None:
    book, made = Book(), a_cluster(mapping="2")
    made.pod("p1", "n1", cpu="17")
    book.look(made.read())
    assert book.state("n1") == (State.UNSAFE, {"LEDGER_OVERCOMMITTED"})


def test_a_claim_that_moves_to_another_node_takes_its_line_with_it() -> None:
    """A device that several nodes can use: the line is the claim's and follows its Pod."""
    book, made = Book(), Cluster()
    made.node("n1", cpu="16")
    made.node("n2", cpu="16")
    made.slices("fabric", mapping="2", all_nodes=True)
    made.claim("c1", "fabric", 0)
    made.pod("p1", "n1", claims=["c1"])
    made.schedule()
    book.look(made.read())
    made.remove("Pod", "p1")
    made.pod("p2", "n2", claims=["c1"])
    made.schedule()
    book.look(made.read())
    assert known(node_sums(book.charges.values())) == {("n2", "cpu"): parse("2")}
    assert known(node_sums(fold(book.lines).standing.values())) == {("n2", "cpu"): parse("2")}


@settings(max_examples=60, deadline=None)
@given(history=histories(), random=st.randoms(use_true_random=False))
def test_any_interleaving_folds_to_the_sums_of_the_snapshot(history, random) -> None:
    book = Book()
    for cluster in history:
        book.look(cluster)
        folded = fold(book.lines)
        assert folded.standing == book.charges
        lines = list(book.lines)
        random.shuffle(lines)
        lines += random.sample(lines, min(3, len(lines)))
        again = fold(lines)
        assert again.standing == book.charges
        assert known(node_sums(book.charges.values())) == of_snapshot(cluster)
        assert_zones_add_up(book.charges.values())


def assert_zones_add_up(entries: Iterable[Entry]) -> None:
    entries = list(entries)
    nodes: dict[tuple[str, str], Quantity | None] = {}
    for (node, resource, _), amount in zone_sums(entries).items():
        before = nodes.get((node, resource), ZERO)
        nodes[node, resource] = None if amount is None or before is None else before + amount
    assert nodes == node_sums(entries)


@settings(max_examples=40, deadline=None)
@given(history=histories(restarts=False))
def test_while_nothing_is_tampered_with_the_three_agree(history) -> None:
    book = Book()
    for cluster in history:
        book.look(cluster)
        assert [one for one in book.differences if one.verdict is not Verdict.LATER] == []


def test_a_line_that_comes_twice_counts_once_and_the_greater_of_two_amounts_counts() -> None:
    small = Entry("n1", Rule.MAPPING, "cpu", parse("1"), "claim/ns/c", claim_uid="u",
                  device=("d", "p", "x"))  # fmt: skip
    lines = [LogLine(Act.CHARGE, small, 1), LogLine(Act.CHARGE, small, 1)]
    assert (fold(lines).repeated, node_sums(fold(lines).standing.values())) == (
        1, {("n1", "cpu"): parse("1")},
    )  # fmt: skip
    lines.append(LogLine(Act.CHARGE, replace(small, amount=parse("4")), 1))
    for order in (lines, lines[::-1]):
        assert node_sums(fold(order).standing.values()) == {("n1", "cpu"): parse("4")}


def test_the_gate_being_off_means_that_devices_cost_nothing() -> None:
    book, made = Book(), a_cluster(mapping="2")
    made.claim("c1", "n1", 0)
    made.pod("p1", "n1", cpu="1", claims=["c1"])
    book.look(read(made.objects, gates=gates("1.37")))
    assert node_sums(book.charges.values()) == {("n1", "cpu"): parse("1")}
