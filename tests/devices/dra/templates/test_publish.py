"""The check before publication: over releases, over every device, over every set of answers."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from devices.dra.gates import gates
from devices.dra.snapshot import Snapshot, read
from devices.dra.templates import Severity, examples, publish_check, read_template
from devices.dra.templates.combinations import MOST_KEPT, reachable
from portal.management.demo_templates import TEMPLATES
from tests.devices.demofleet import fleet_objects, h100, holding, snapshot
from tests.devices.dra.templates.contents import EVERYTHING

HELIOS = "gpu.helios.example"
NVLINK = f'device.attributes["{HELIOS}"].interconnect == "nvlink"'
GUARDED = f'device.attributes["{HELIOS}"].?interconnect.orValue("") == "nvlink"'


@pytest.fixture(scope="module")
def fleet() -> Snapshot:
    return snapshot()


def asking(device_class: str = "h100-80gb", **more: Any) -> dict[str, Any]:
    request = {"name": "gpu", "device_class": device_class, "words": "GPU", **more}
    return {"requests": [request]}


def counting(maximum: int, **more: Any) -> dict[str, Any]:
    count = {"kind": "count", "name": "n", "label": "N", "request": "gpu", "maximum": maximum}
    return {**asking(**more), "parameters": [count]}


def found(content: dict[str, Any], seen: Snapshot | None) -> set[tuple[str, str, str]]:
    report = publish_check(read_template(content), seen)
    return {(one.code, str(one.severity), one.path) for one in report.findings}


@pytest.mark.parametrize("slug", TEMPLATES)
def test_starter_templates_surprise_nobody(slug: str, fleet: Snapshot) -> None:
    report = publish_check(read_template(TEMPLATES[slug][3]), fleet)
    assert {one.severity for one in report.findings} <= {Severity.NOTE}
    assert report.may_publish and report.complete and report.fits


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        pytest.param(asking(), set(), id="nothing to say"),
        pytest.param(
            asking(selectors=["device.driver == "]),
            {("SELECTOR_REFUSED", "error", "requests[0].selectors[0]")},
            id="an expression that does not compile",
        ),
        pytest.param(
            asking(selectors=[f'device.attributes["{HELIOS}"].warp == "9"']),
            {("SELECTOR_FAILS", "error", "requests[0].selectors[0]")},
            id="an attribute that no device of the class has",
        ),
        pytest.param(
            asking(selectors=[NVLINK]),
            {("SELECTOR_UNGUARDED", "warning", "requests[0].selectors[0]")},
            id="an attribute that all have today, and need not",
        ),
        pytest.param(asking(selectors=[GUARDED]), set(), id="asked whether it is there"),
        pytest.param(
            asking("h100-90gb"),
            {("CLASS_MISSING", "error", "requests[0].device_class")},
            id="a class that is not there",
        ),
        pytest.param(
            asking("a100-80gb", selectors=[GUARDED]),
            {
                ("NOTHING_MATCHES", "warning", "requests[0].selectors[0]"),
                ("FITS_NEVER", "error", ""),
            },
            id="devices of the class, and none that satisfies it",
        ),
        pytest.param(
            counting(40),
            {("TOO_MANY_DEVICES", "error", "parameters")},
            id="more than a claim can hold",
        ),
        pytest.param(
            counting(9), {("FITS_NEVER", "warning", "parameters")}, id="more than a machine has"
        ),
        pytest.param(
            asking("cpu-numa"),
            {("SHARING_DIFFERS", "warning", "requests[0].sharing")},
            id="said to be whole, and shared",
        ),
        pytest.param(
            asking(sharing="partition"),
            {
                ("SHARING_DIFFERS", "warning", "requests[0].sharing"),
                ("FIELD_DROPPED", "note", "requests[0].sharing"),
            },
            id="said to be a partition, and whole",
        ),
        pytest.param(
            asking("cpu-numa", sharing="capacity", capacity={"cpu.numa.example/threads": "2"}),
            {
                (
                    "CAPACITY_NOT_OFFERED",
                    "error",
                    "requests[0].capacity.cpu.numa.example/threads",
                ),
                ("FIELD_DROPPED", "note", "requests[0].capacity.cpu.numa.example/threads"),
            },
            id="a capacity that none of them has",
        ),
        pytest.param(
            asking("cpu-numa", sharing="capacity", capacity={"cpu.numa.example/cores": "1500m"}),
            {
                ("CAPACITY_ROUNDED", "note", "requests[0].capacity.cpu.numa.example/cores"),
                ("FIELD_DROPPED", "note", "requests[0].capacity.cpu.numa.example/cores"),
            },
            id="an amount that is rounded up",
        ),
        pytest.param(
            {**asking(), "constraints": [{"match_attribute": "example.com/rack"}]},
            {
                ("ATTRIBUTE_NOT_PUBLISHED", "warning", "constraints[0].match_attribute"),
                ("FITS_NEVER", "error", ""),
            },
            id="a constraint on an attribute that nobody publishes",
        ),
        pytest.param(
            {**asking(), "config": [{"driver": "gpu.nobody.example", "parameters": {}}]},
            {("DRIVER_NOT_SEEN", "warning", "config[0].driver")},
            id="settings for a driver that is not there",
        ),
        pytest.param(
            asking(tolerations=[{"operator": "Exists"}]),
            {("FIELD_DROPPED", "note", "")},
            id="tolerations, which old releases drop",
        ),
    ],
)
def test_findings(
    content: dict[str, Any], expected: set[tuple[str, str, str]], fleet: Snapshot
) -> None:
    assert found(content, fleet) == expected


def test_a_template_that_waits_today_says_so() -> None:
    taken = [holding(f"all-{node}", h100(node, *range(8))) for node in (1, 2, 3, 4)]
    report = publish_check(read_template(asking()), snapshot(*taken))
    assert [one.code for one in report.findings] == ["FITS_NOT_NOW"]
    assert report.may_publish and report.fits == ()


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        pytest.param("1.37", {"FIELD_DROPPED"}, id="served"),
        pytest.param("1.35", {"FIELD_DROPPED", "GATE_OFF"}, id="off in this cluster"),
    ],
)
def test_what_a_cluster_must_serve(release: str, expected: set[str]) -> None:
    seen = read(fleet_objects(), gates=gates(release))
    content = TEMPLATES["cores"][3]
    report = publish_check(read_template(content), seen)
    assert {one.code for one in report.findings if one.code != "SELECTOR_FAILS"} >= expected
    [need] = report.needs
    assert (need.gate, need.since) == ("DRAConsumableCapacity", "1.36")
    assert need.state == ("on" if release == "1.37" else "off") and not need.read


def test_without_a_cluster_only_shapes_are_checked() -> None:
    report = publish_check(read_template(asking("any", selectors=["1 +"])), None)
    assert {one.code for one in report.findings} == {"SELECTOR_REFUSED", "CLUSTER_NOT_SEEN"}
    assert report.fits is None and not report.may_publish


def test_a_choice_that_an_answer_leaves_without_options(fleet: Snapshot) -> None:
    content = asking()
    content["parameters"] = [
        {"kind": "switch", "name": "big", "label": "Big"},
        {
            "kind": "choice",
            "name": "tier",
            "label": "Tier",
            "default": "a",
            "options": [{"value": "a", "label": "A", "when": {"big": [False]}}],
        },
    ]
    assert ("CHOICE_WITHOUT_OPTION", "error", "parameters[1]") in found(content, fleet)


def test_answers_that_can_be_given_together() -> None:
    sets = reachable(read_template(EVERYTHING))
    assert sets.complete
    speeds = {(one["network"], one.get("speed")) for one in sets.kept}
    assert speeds == {("none", None), ("tcp", "100"), ("rdma", "100"), ("rdma", "400")}
    assert max(one["clients"] for one in sets.kept if one["network"] == "rdma") == 4
    assert len(examples(read_template(EVERYTHING))) <= len(sets.kept)


def test_many_questions_are_checked_up_to_a_bound(fleet: Snapshot) -> None:
    content = deepcopy(asking())
    content["parameters"] = [
        {"kind": "switch", "name": f"s{number}", "label": f"S{number}"} for number in range(12)
    ]
    report = publish_check(read_template(content), fleet)
    assert (report.tried, report.complete) == (MOST_KEPT, False)
    assert [one.code for one in report.findings] == ["MANY_COMBINATIONS"]
