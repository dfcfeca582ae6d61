"""The rules against upstream: a small fixed run each time, any size by `make agreement`.

For other sizes and gates: ``python -m playground.agreement --help``.
"""

from __future__ import annotations

import io
from collections import Counter
from pathlib import Path

import pytest

from devices.dra.allocate import allocate, forecast
from devices.dra.gates import gates, parse
from devices.dra.snapshot import read
from playground.agreement.comparison import Tally, Told, report
from playground.agreement.nodesides import with_sides
from playground.agreement.objectsets import make
from playground.agreement.rounds import our_pod, ours, run, run_scheduler, wishes_of
from playground.agreement.shrink import shrunk
from playground.building.releases import binary_path, build
from tests.playground.planes import NEWEST, OLDER, built

KEPT = Path(__file__).parents[2] / "devices" / "dra" / "disagreements"
RELEASES = [
    pytest.param(NEWEST, marks=pytest.mark.cluster, id=NEWEST),
    pytest.param(OLDER, marks=pytest.mark.cluster136, id=OLDER),
]
#: Known, and not worth being like: cel-go folds ``x in []`` and refuses some literal keys.
CEL_RATE = 0.998


def shown(tally: Tally, sets: int) -> str:
    out = io.StringIO()
    report(tally, sets, out)
    return out.getvalue()


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("chosen", ["default", "all"])
def test_the_allocator_answers_the_same_about_sixty_object_sets(release, chosen, tmp_path):
    cluster = parse(chosen, ".".join(release.split(".")[:2]))
    tally = run(binary_path(built(release)), cluster, range(60), tmp_path, questions=12)
    assert tally.asked > 700
    assert tally.equal == tally.asked, shown(tally, 60)


@pytest.mark.parametrize("release", RELEASES)
def test_cel_answers_the_same_about_two_thousand_expressions(release, tmp_path):
    cluster = gates(".".join(release.split(".")[:2]))
    tally = run(binary_path(built(release)), cluster, range(0), tmp_path, cel=2000)
    assert tally.asked > 1900
    assert tally.rate >= CEL_RATE, shown(tally, 0)


@pytest.mark.parametrize("release", RELEASES)
def test_the_real_scheduler_answers_the_same_about_three_object_sets(release, tmp_path):
    tally = run_scheduler(built(release), range(3), tmp_path, questions=10)
    assert tally.asked >= 25
    assert tally.equal == tally.asked, shown(tally, 3)
    assert not +tally.unsaid, shown(tally, 3)


def test_the_sets_are_varied():
    """Every feature in at least a twentieth of the sets, each verdict in a twentieth of answers."""
    sets = [make(seed, 8, lists=True, derived=True) for seed in range(150)]
    features = Counter(feature for one in sets for feature in one.features)
    assert len(features) == 27
    assert [name for name, count in features.items() if count < len(sets) / 20] == []
    everything = gates(every=True)
    verdicts = Counter(
        ours(seen, question).verdict
        for one in sets
        for seen in [read(one.objects, gates=everything)]
        for question in one.questions
    )
    shares = {verdict: count / verdicts.total() for verdict, count in verdicts.items()}
    assert 0.3 <= shares["OK"] <= 0.6
    assert all(shares[verdict] >= 0.05 for verdict in ("NO", "NODE_ERROR", "FATAL"))


def test_the_nodes_own_side_is_varied():
    """What keeps Pods off nodes apart from devices, in a twentieth of the sets as well."""
    sets = [(make(seed, 8), with_sides(make(seed, 8))) for seed in range(150)]
    features = Counter(feature for plain, one in sets for feature in one.features - plain.features)
    assert len(features) == 13
    assert [name for name, count in features.items() if count < len(sets) / 20] == []
    everything = gates(every=True)
    told = [our_pod(one, q, everything) for _, one in sets[:60] for q in one.questions]
    assert 0.3 <= sum(answer.verdict == "OK" for answer in told) / len(told) <= 0.6
    for words in ("Insufficient", "Too many pods", "untolerated", "unschedulable", "affinity"):
        assert any(words in answer.text for answer in told), words
    assert all(plain.objects[-1] == one.objects[-1] for plain, one in sets)


@pytest.mark.parametrize("release", ["1.36", "1.37"])
def test_a_forecast_for_all_nodes_says_of_each_what_it_says_of_it_alone(release):
    """Nodes that are alike are computed once; here is where a difference that was overlooked in
    telling them alike would show.
    """
    everything = gates(release, every=True)
    for seed in range(60):
        one = make(seed, 6, lists=True, derived=release == "1.37")
        seen = read(one.objects, gates=everything)
        for question in one.questions:
            wishes = wishes_of(question)
            for node, verdict in forecast(seen, wishes):
                alone = allocate(seen, seen.node(node), wishes)
                assert (verdict.kind, verdict.given) == (alone.kind, alone.given), (seed, question)
                assert verdict.text == alone.text


def test_the_same_seed_makes_the_same_set():
    assert make(7) == make(7)
    assert make(7) != make(8)


def test_a_disagreement_is_made_small():
    record = {
        "objects": [{"kind": "Node", "n": number} for number in range(5)],
        "claims": [{"spec": {"devices": {"requests": [1, 2, 3], "constraints": [4]}}}],
    }
    small = shrunk(record, lambda r: {"kind": "Node", "n": 3} in r["objects"])
    assert small["objects"] == [{"kind": "Node", "n": 3}]
    assert small["claims"] == [{"spec": {"devices": {"requests": [1], "constraints": []}}}]


def test_a_tally_counts_what_differs_and_sets_time_outs_apart():
    tally = Tally()
    assert tally.add(Told("OK", (("0", "r"),)), Told("OK", (("0", "r"),)), ["any"])
    assert not tally.add(Told("OK", (("0", "r"),)), Told("OK", (("0", "s"),)), ["any"])
    assert tally.add(Told("TIMEOUT"), Told("NO"), ["any"])
    assert (tally.asked, tally.equal, tally.missed["any"]) == (2, 1, 1)
    assert "near the time limit" in shown(tally, 1)


def test_a_tally_tells_a_right_no_for_a_wrong_reason():
    tally = Tally()
    said = "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) didn't satisfy plugin(s)."
    for ours_ in ("Insufficient cpu", "Insufficient cpu", "Too many pods"):
        assert tally.add(Told("NO", text=ours_), Told("NO", text=said), ["any"])
    assert "NO because Insufficient cpu: 2, of which the scheduler says so 2" in shown(tally, 1)
    assert "NO because Too many pods: 1, of which the scheduler says so 0" in shown(tally, 1)


@pytest.mark.agreement
@pytest.mark.parametrize("release", [NEWEST, OLDER])
@pytest.mark.parametrize("chosen", ["default", "all"])
def test_five_hundred_object_sets(release, chosen, capsys):
    cluster = parse(chosen, ".".join(release.split(".")[:2]))
    tally = run(build(release), cluster, range(5000, 5500), KEPT)
    with capsys.disabled():
        print(f"\n\nallocator of {release}, gates {chosen}\n{shown(tally, 500)}")
    assert tally.rate >= 0.995


@pytest.mark.agreement
@pytest.mark.parametrize("release", [NEWEST, OLDER])
def test_twenty_thousand_expressions(release, tmp_path, capsys):
    cluster = gates(".".join(release.split(".")[:2]))
    tally = run(build(release), cluster, range(5000, 5000), tmp_path, cel=20_000)
    with capsys.disabled():
        print(f"\n\nCEL of {release}\n{shown(tally, 0)}")
    assert tally.rate >= CEL_RATE


@pytest.mark.agreement
@pytest.mark.parametrize("release", [NEWEST, OLDER])
def test_a_hundred_object_sets_in_the_real_scheduler(release, capsys):
    build(release)
    tally = run_scheduler(release, range(6000, 6100), KEPT)
    with capsys.disabled():
        print(f"\n\nkube-scheduler {release}\n{shown(tally, 100)}")
    assert tally.rate >= 0.995
    answers = Counter(theirs for (theirs, _), count in tally.verdicts.items() for _ in range(count))
    shares = {verdict: count / tally.asked for verdict, count in answers.items()}
    assert all(shares[verdict] >= 0.05 for verdict in ("OK", "NO", "NODE_ERROR", "FATAL"))
