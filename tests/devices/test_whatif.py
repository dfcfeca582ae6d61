"""What would come of an ask over the demo's fleet: each fate, its reason, and whose job it is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from devices.dra.codes import Who
from devices.dra.explain import explain
from devices.dra.hints import hints
from devices.dra.ledger import accounts
from devices.dra.nodeside import pod_counts
from devices.dra.objects import ClaimWish, DeviceWish, MatchWish, Shape
from devices.dra.templates import Draft, answers, build, read_template
from devices.forecasts.alternatives import alternatives
from devices.forecasts.picture import OF_DEVICES, Picture, of_devices, picture
from devices.forecasts.telling import holders, told, waiting
from devices.forecasts.whatif import Fate, outlook, wish_of, with_accounts
from portal.management.demo_templates import TEMPLATES
from tests.devices.demofleet import TAKEN, h100, holding, snapshot, unbounded
from tests.devices.dra import cases

PCIE_ROOT = "resource.kubernetes.io/pcieRoot"
MINE = frozenset({"tidewater-train"})


@pytest.fixture(scope="module")
def busy() -> Picture:
    """Two H100 machines are taken whole, two by half; one of the claims is the viewer's own."""
    return picture(
        snapshot(
            holding("whole-1", h100(1, *range(8))),
            holding("whole-2", h100(2, *range(8)), namespace="tidewater-train"),
            holding("half-3", h100(3, *range(4))),
            holding("half-4", h100(4, *range(4))),
        )
    )


def asking(
    device_class: str = "h100-80gb",
    count: int = 1,
    *,
    selectors: tuple[str, ...] = (),
    near: str = "",
    shape: Shape = Shape.TEMPLATE,
) -> ClaimWish:
    return ClaimWish(
        public_id="x",
        tenant="tidewater",
        namespace="tidewater-train",
        name="train",
        request_id="r",
        shape=shape,
        devices=(DeviceWish("gpu", device_class, count, selectors),),
        matches=(MatchWish(near, ("gpu",)),) if near else (),
    )


HOPPER = 'device.attributes["gpu.helios.example"].architecture == "Volta"'


@pytest.mark.parametrize(
    ("asked", "fate", "code", "who", "said"),
    [
        pytest.param(asking(count=4), Fate.NOW, "", Who.NOBODY, "2 nodes", id="fits on two nodes"),
        pytest.param(
            asking(shape=Shape.CLAIM), Fate.NOW, "", Who.NOBODY, "2 nodes", id="a shared claim too"
        ),
        pytest.param(
            asking(count=8),
            Fate.TAKEN,
            "NOT_ENOUGH_ON_ONE_NODE",
            Who.NOBODY,
            "8 are free, at most 4 of them on one node; 8 are asked for",
            id="a whole machine waits until one is free",
        ),
        pytest.param(
            asking(count=9),
            Fate.NEVER,
            "MORE_THAN_ANY_NODE_HAS",
            Who.TENANT,
            "No node has more than 8",
            id="more than any machine has never fits",
        ),
        pytest.param(
            asking(count=4, near=PCIE_ROOT),
            Fate.NEVER,
            "CONSTRAINT_NOT_SATISFIED",
            Who.TENANT,
            "belong together",
            id="four below one root never fit, however many are free",
        ),
        pytest.param(
            asking(selectors=(HOPPER,)),
            Fate.NEVER,
            "NO_DEVICE_MATCHES_SELECTOR",
            Who.TENANT,
            "None of 32 devices",
            id="a condition that none meets never fits",
        ),
        pytest.param(
            asking("nowhere"),
            Fate.CLOSED,
            "CLASS_MISSING",
            Who.PLATFORM,
            "does not exist",
            id="a class that is missing is the platform's",
        ),
    ],
)
def test_each_fate_has_its_reason_and_whose_job_it_is(
    busy: Picture, asked: ClaimWish, fate: Fate, code: str, who: Who, said: str
) -> None:
    found = outlook(busy, asked)
    assert (found.fate, found.code, found.who) == (fate, code, who)
    assert said in found.sentence
    assert bool(found.nodes) is (fate is Fate.NOW)


def test_devices_that_are_all_held_are_nobodys_job() -> None:
    cards = [
        ("fpga.lattice.example", f"fpga-e0{node}", f"card-{card}")
        for node in (1, 2)
        for card in (0, 1)
    ]
    found = outlook(
        picture(snapshot(holding("cards", cards, device_class="fpga-vck5000"))),
        asking("fpga-vck5000"),
    )
    assert (found.fate, found.code, found.who) == (
        Fate.TAKEN,
        "NO_MATCHING_DEVICE_FREE",
        Who.NOBODY,
    )
    assert found.sentence == "All 4 devices that match are taken."


def test_devices_that_are_tainted_are_the_platforms_job() -> None:
    rule = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceTaintRule",
        "metadata": {"name": "repair"},
        "spec": {
            "deviceSelector": {"driver": "fpga.lattice.example"},
            "taint": {"key": "example.com/repair", "effect": "NoSchedule"},
        },
    }
    found = outlook(picture(snapshot(rule)), asking("fpga-vck5000"))
    assert (found.fate, found.code, found.who) == (Fate.CLOSED, "DEVICE_TAINTED", Who.PLATFORM)


def test_a_pod_that_is_too_big_for_the_nodes_with_free_devices(busy: Picture) -> None:
    found = outlook(busy, asking(count=4), cpu="500")
    assert (found.fate, found.code) == (Fate.NODE, "NODE_RESOURCES_SHORT")
    assert found.beside == (("Insufficient cpu", 2),)
    assert outlook(busy, asking(count=4), cpu="100").fits


@pytest.mark.parametrize("number", ["10", "12", "13", "14", "16", "17", "44", "50"])
def test_accounts_of_some_nodes_are_those_of_all(number: str) -> None:
    """Only the Pods on the nodes that are tried are added up; the sums must be the whole ones."""
    seen = picture(cases.snapshot(cases.by_number(number)), TAKEN)
    whole = accounts(replace(seen.now, memo={}))
    counts = pod_counts(replace(seen.now, memo={}))
    for name in seen.now.node_names:
        some = with_accounts(seen.now, [name])
        assert accounts(some).get(name) == whole.get(name), name
        assert pod_counts(some)[name] == counts[name]
    assert "accounts" not in seen.now.memo, "what is known of some nodes is not passed for all"


def test_the_funnel_says_where_the_devices_went_and_what_is_asked(busy: Picture) -> None:
    [funnel] = told(outlook(busy, asking(count=8)), MINE, {"h100-80gb": "H100, 80 GB"})
    assert [(row.count, row.what) for row in funnel.rows] == [
        (168, "devices that drivers publish"),
        (32, "H100, 80 GB"),
        (8, "free now"),
        (4, "on one node, h100-a04"),
    ]
    assert funnel.rows[-1].lost == "You ask for 8"


def test_holders_of_other_tenants_are_counted_and_never_named(busy: Picture) -> None:
    found = outlook(busy, asking(count=8), mine=MINE)
    [funnel] = told(found, MINE)
    assert funnel.rows[1].lost == "taken by your whole-2 and 3 claims of other tenants"
    said = repr([told(found, MINE), waiting(found, MINE)])
    for secret in ("whole-1", "half-3", "half-4", "basalt"):
        assert secret not in said
    assert [row.text for row in waiting(found, MINE)] == [
        "You release whole-2",
        "1 claim of other tenants ends",
        "1 claim of other tenants ends",
    ]
    assert holders([], MINE) == ""


TEMPLATE = read_template(unbounded(TEMPLATES["gpu"][3]))


def drafted(draft: Draft) -> ClaimWish:
    wish = asking()
    return ClaimWish(
        wish.public_id,
        wish.tenant,
        wish.namespace,
        wish.name,
        wish.request_id,
        wish.shape,
        draft.devices,
        draft.matches,
    )


@pytest.mark.parametrize(
    ("given", "first"),
    [
        pytest.param(
            {"memory": "80-nvlink", "gpus": 8},
            "4 instead of 8 GPUs per Pod",
            id="fewer of the same come first",
        ),
        pytest.param(
            {"memory": "80", "gpus": 2, "near": True}, "", id="what fits has no alternatives to it"
        ),
        pytest.param(
            {"memory": "80-nvlink", "gpus": 8, "near": True},
            "4 instead of 8 GPUs per Pod",
            id="a switch that does not help alone is not offered alone",
        ),
    ],
)
def test_the_nearest_alternatives_all_fit(busy: Picture, given: dict[str, Any], first: str) -> None:
    values = answers(TEMPLATE, given)
    if outlook(busy, drafted(build(TEMPLATE, values))).fits:
        assert not first
        return
    found = alternatives(busy, TEMPLATE, values, drafted)
    assert found[0].text == first
    assert len(found) <= 3
    for each in found:
        changed = answers(TEMPLATE, each.values)
        again = outlook(busy, drafted(build(TEMPLATE, changed)))
        assert again.fits and again.nodes == each.nodes


def test_what_is_derived_of_devices_is_known_by_name() -> None:
    """Whoever adds a derived value must say whether it outlives a change of claims and Pods."""
    seen = picture(snapshot(holding("a", h100(1, 0))))
    for asked in (asking(count=8), asking("a100-mig-1g", 8), asking("cpu-numa"), asking(count=33)):
        outlook(seen, asked)
        explain(seen.now, [wish_of(asked)])
        hints(seen.now, [wish_of(asked)])
    of_claims = {
        "accounts",
        "accounts of some",
        "charges",
        "counter numbers",
        "largest",
        "pod counts",
        "pods by node",
        "published",
        "scheduled",
        "signatures",
        "usage",
        "usage rows",
    }
    names = {key[0] if isinstance(key, tuple) else key for key in seen.now.memo}
    assert names <= OF_DEVICES | of_claims, names - OF_DEVICES - of_claims


def test_what_is_kept_of_the_devices_changes_no_answer(busy: Picture) -> None:
    for asked in (asking(count=8), asking(count=4), asking("a100-mig-3g", 2), asking("nic-rdma")):
        outlook(busy, asked)
    after = snapshot(holding("other", h100(3, *range(8))))
    kept = picture(after)
    for key, value in busy.empty.memo.items():
        if of_devices(key):
            kept.empty.memo[key] = value
    for asked in (asking(count=8), asking(count=4), asking("a100-mig-3g", 2), asking("nic-rdma")):
        assert outlook(kept, asked) == outlook(picture(after), asked)
