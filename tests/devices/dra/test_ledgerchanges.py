"""Which nodes a look visits: what it leaves out is what nothing happened to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given, settings

from devices.dra.gates import gates
from devices.dra.ledgerchanges import changed_nodes, with_sharers
from devices.dra.ledgerentries import Entry, Seen, look
from devices.dra.ledgerpools import follow
from devices.dra.snapshot import Snapshot
from tests.devices.ledger.clusters import Cluster, histories


def sharing(before: Snapshot, now: Snapshot) -> Snapshot:
    """The same snapshot with the objects of the one before wherever they are equal, as a warm
    picture has them.
    """
    slices = {piece.name: piece for piece in before.slices}
    return replace(
        now,
        slices=tuple(
            slices[piece.name] if slices.get(piece.name) == piece else piece for piece in now.slices
        ),
        pods=kept(before.pods, now.pods),
        claims=kept(before.claims, now.claims),
        nodes=kept(before.nodes, now.nodes),
        memo={},
    )


def kept(before: Mapping[Any, Any], now: Mapping[Any, Any]) -> dict[Any, Any]:
    return {key: before[key] if same(before.get(key), one) else one for key, one in now.items()}


def same(one: Any, other: Any) -> bool:
    return one == other and getattr(one, "raw", None) == getattr(other, "raw", None)


def of(seen: Seen, without: set[str]) -> tuple[set[Entry], set[Entry], set[Entry]]:
    found = (seen.entries, seen.doubled, seen.older)
    entries, doubled, older = (
        {entry for entry in entries if entry.node not in without} for entries in found
    )
    return entries, doubled, older


@settings(max_examples=80, deadline=None)
@given(history=histories())
def test_nodes_that_are_left_out_are_as_before_and_the_others_seen_alone_are_whole(
    history,
) -> None:
    before, pools = Snapshot(gates=history[0].gates), {}
    for cluster in history:
        now = sharing(before, cluster)
        was, pools_then = look(before, pools), dict(follow(pools, now))
        whole = look(now, pools_then)
        nodes = changed_nodes(before, now)
        assert nodes is not None
        assert of(was, nodes) == of(whole, nodes)
        part = look(now, pools_then, nodes)
        assert of(part, set()) == tuple(
            {entry for entry in entries if entry.node in nodes}
            for entries in (whole.entries, whole.doubled, whole.older)
        )
        before, pools = now, pools_then


def a_cluster(nodes: int = 3) -> Cluster:
    made = Cluster()
    for number in range(nodes):
        made.node(f"n{number}", cpu="16")
        made.slices(f"n{number}", mapping="2")
        made.claim(f"c{number}", f"n{number}", 0)
        made.pod(f"p{number}", f"n{number}", claims=[f"c{number}"])
    made.schedule()
    return made


def changed(made: Cluster, before: Snapshot) -> set[str] | None:
    return changed_nodes(before, sharing(before, made.read()))


def test_nothing_changed_is_nobody_to_visit_and_each_change_is_its_own_nodes() -> None:
    made = a_cluster()
    before = made.read()
    assert changed(made, before) == set()
    made.pod("more", "n1", cpu="1")
    assert changed(made, before) == {"n1"}
    made.slices("n2", generation=2, mapping="3")
    assert changed(made, before) == {"n1", "n2"}
    made.claim("c0", "n0", 1)
    assert changed(made, before) == {"n0", "n1", "n2"}


def test_a_node_that_came_or_went_is_visited() -> None:
    made = a_cluster()
    before = made.read()
    made.remove("Node", "n1")
    made.node("n9", cpu="4")
    assert changed(made, before) == {"n1", "n9"}


def test_a_device_of_several_nodes_brings_in_those_who_use_it() -> None:
    made = a_cluster()
    made.slices("fabric", mapping="1", all_nodes=True)
    made.claim("far", "fabric", 0)
    made.pod("user", "n2", claims=["far"])
    made.schedule()
    before = made.read()
    made.slices("fabric", generation=2, mapping="4", all_nodes=True)
    assert changed(made, before) == {"n2"}


def test_who_shares_a_claim_is_visited_together() -> None:
    made = a_cluster()
    made.pod("other", "n1", claims=["c0"])
    now = made.read()
    assert with_sharers(now, {"n0"}) == {"n0", "n1"}
    assert with_sharers(now, {"n2"}) == {"n2"}


def test_another_gate_is_everybody() -> None:
    before = a_cluster().read()
    assert changed_nodes(before, replace(before, gates=gates("1.36"))) is None
