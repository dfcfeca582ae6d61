"""Four stories of a node, each exported and replayed: the file comes to what the log comes to."""

from __future__ import annotations

import pytest

from devices.dra.charges import Rule
from devices.dra.ledgerfile import replay
from devices.dra.ledgerlog import Act, node_sums, zone_sums
from devices.dra.ledgerstate import State
from devices.dra.quantity import parse
from tests.devices.ledger.clusters import Cluster
from tests.devices.ledger.memory import Book
from tests.devices.ledger.test_file import exported


def a_node(**changes: str) -> Cluster:
    """One node with four devices that are 2 CPUs each: d0 and d2 on NUMA 0, d1 and d3 on 1."""
    made = Cluster()
    made.node("n1", cpu="16")
    made.slices("n1", devices=4, mapping=changes.get("mapping", "2"))
    return made


def run(made: Cluster, name: str, devices: list[int]) -> None:
    """A Pod with a claim for these devices, as the scheduler leaves it."""
    claim = made.claim(f"c-{name}", "n1", devices[0])
    results = claim["status"]["allocation"]["devices"]["results"]
    results += [{**results[0], "device": f"d{number}"} for number in devices[1:]]
    made.pod(name, "n1", claims=[f"c-{name}"])
    made.schedule()


def replays_to(book: Book) -> dict[int | None, str]:
    """What zones of n1 are charged by a replay, which must be what the log says."""
    done = replay(exported(book))
    assert (done.fault, done.standing) == (None, len(book.charges))
    sums = {place: amount for place, amount in node_sums(book.charges.values()).items() if amount}
    assert done.charged() == sums
    assert [one for one in book.differences] == []
    zones = zone_sums(book.charges.values())
    assert {place: nanos for place, nanos in done.zones.items() if nanos} == {
        place: amount.nanos for place, amount in zones.items() if amount
    }
    return {numa: str(amount) for (_, _, numa), amount in zones.items() if amount}


def test_cross_numa_one_claim_is_charged_in_both_zones_and_once_to_the_node() -> None:
    book, made = Book(), a_node()
    run(made, "wide", [0, 1])
    book.look(made.read())
    assert replays_to(book) == {0: "2", 1: "2"}
    assert node_sums(book.charges.values())["n1", "cpu"] == parse("4")
    made.remove("Pod", "wide")
    book.look(made.read())
    assert replays_to(book) == {}


def test_same_numa_two_claims_add_up_in_one_zone_and_leave_the_other_alone() -> None:
    book, made = Book(), a_node()
    run(made, "first", [0])
    book.look(made.read())
    run(made, "second", [2])
    book.look(made.read())
    assert replays_to(book) == {0: "4"}
    made.remove("Pod", "first")
    book.look(made.read())
    assert replays_to(book) == {0: "2"}


def test_release_retry_a_claim_that_is_used_again_is_given_back_and_taken_once_each() -> None:
    book, made = Book(), a_node()
    for _ in range(2):
        run(made, "try", [3])
        book.look(made.read())
        assert book.look(made.read()) == []  # a look that is repeated adds nothing
        assert replays_to(book) == {1: "2"}
        made.remove("Pod", "try")
        book.look(made.read())
        assert book.look(made.read()) == []
        assert replays_to(book) == {}
    of_device = [line for line in book.lines if line.entry.rule is Rule.MAPPING]
    assert [line.act for line in of_device] == [
        Act.CHARGE, Act.RELEASE, Act.CHARGE, Act.RELEASE,
    ]  # fmt: skip
    twice = exported(book)
    done = replay(twice)
    assert (done.doubled, done.older, done.repeated) == (0, 0, 0)


@pytest.mark.parametrize("mapping", ["2", "3"], ids=["as before", "with another mapping"])
def test_node_restart_keeps_what_is_bound_and_holds_until_the_slices_are_back(mapping) -> None:
    book, made = Book(), a_node()
    run(made, "stays", [0, 1])
    book.look(made.read())
    before = dict(book.charges)
    made.remove("ResourceSlice", "n1")  # the kubelet wipes slices when it starts
    assert book.look(made.read()) == []
    assert book.state("n1") == (State.REBUILDING, {"LEDGER_REBUILDING"})
    assert book.charges == before
    made.slices("n1", devices=4, mapping=mapping, anew=True)
    assert book.look(made.read()) == []
    assert {state.epoch for state in book.pools.values()} == {2}
    assert book.state("n1") == (State.SAFE, set())
    done = replay(exported(book))
    assert {place: str(amount) for place, amount in done.charged().items()} == {("n1", "cpu"): "4"}
    run(made, "later", [2])
    [line] = [line for line in book.look(made.read()) if line.entry.rule is Rule.MAPPING]
    assert (line.entry.version.epoch, str(line.entry.amount)) == (2, mapping)
    assert book.charges.items() >= before.items()
