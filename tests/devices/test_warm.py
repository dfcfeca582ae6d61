"""The warm picture: whole once, then what changed, and always what the mirror has."""

from __future__ import annotations

import copy

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from devices import mirror as mirrors
from devices.dra.snapshot import KINDS, read_json
from devices.forecasts.warm import gates_of, warm
from devices.models import Observed, Sync
from tests.devices.demofleet import fleet_objects, h100, holding, mirror
from tests.devices.following import until

pytestmark = pytest.mark.django_db


def equal_to_the_mirror() -> None:
    """What is kept warm is what reading the whole mirror gives."""
    seen = warm()
    assert seen is not None
    whole = read_json(mirrors.raw_objects(*KINDS), gates=seen.now.gates)
    assert seen.now == whole


def test_before_every_kind_was_listed_there_is_no_picture() -> None:
    assert warm() is None
    Sync.objects.create(kind="ResourceSlice", version="", listed_at=None)
    assert warm() is None


def test_it_follows_what_comes_changes_and_goes() -> None:
    fleet = fleet_objects()
    mirror(fleet)
    equal_to_the_mirror()
    first = warm()

    claim = holding("job", h100(1, 0, 1))
    mirror([claim], version="2")
    equal_to_the_mirror()
    second = warm()
    assert first is not None and second is not None
    assert second.empty is first.empty, "claims say nothing about the devices there are"

    changed = copy.deepcopy(claim)
    del changed["status"]
    mirror([changed], version="3")
    equal_to_the_mirror()

    Observed.objects.filter(kind="ResourceClaim").delete()
    Sync.objects.filter(kind="ResourceClaim").update(version="4")
    equal_to_the_mirror()

    piece = next(one for one in fleet if one["kind"] == "ResourceSlice")
    fewer = copy.deepcopy(piece)
    fewer["spec"]["devices"] = fewer["spec"]["devices"][:1]
    mirror([fewer], version="5")
    equal_to_the_mirror()
    third = warm()
    assert third is not None and third.empty is not first.empty, "devices went"

    Observed.objects.filter(kind="Node", name="h100-a01").delete()
    Sync.objects.filter(kind="Node").update(version="6")
    equal_to_the_mirror()


def test_an_object_made_anew_under_its_old_name_is_the_new_one() -> None:
    mirror([*fleet_objects(), holding("job", h100(1, 0))])
    assert warm() is not None
    Observed.objects.filter(kind="ResourceClaim").delete()
    again = holding("job", h100(2, 0, 1))
    again["metadata"]["uid"] = "another"
    mirror([again], version="2")
    equal_to_the_mirror()


def test_an_object_that_can_no_longer_be_read_is_said() -> None:
    claim = holding("job", h100(1, 0))
    mirror([*fleet_objects(), claim])
    assert warm() is not None
    broken = copy.deepcopy(claim)
    broken["spec"]["devices"]["requests"] = "none of your business"
    mirror([broken], version="2")
    equal_to_the_mirror()
    seen = warm()
    assert seen is not None and len(seen.now.unread) == 1


@pytest.mark.django_db(transaction=True)
def test_a_large_mirror_is_read_beside_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("devices.forecasts.warm.MANY_ROWS", 10)
    mirror(fleet_objects())
    assert warm() is None, "the first page does not wait"
    first = until(warm, what="the picture")
    mirror([holding("job", h100(1, 0))], version="2")
    assert warm() == first, "the picture before, as old as it is"
    until(lambda: (seen := warm()) and seen.now.claims, what="the change")
    equal_to_the_mirror()


def test_nothing_is_read_while_nothing_changes() -> None:
    mirror(fleet_objects())
    assert warm() is not None
    with CaptureQueriesContext(
        connection,
    ) as asked:
        assert warm() is not None
    assert len(asked) == 1, "one look at how far the mirror is"


@pytest.mark.parametrize(
    ("release", "capabilities", "gate", "on"),
    [
        pytest.param("v1.36.3", [], "DRADeviceTaintRules", False, id="a release's defaults"),
        pytest.param("v1.37.2", [], "DRADeviceTaintRules", True, id="a newer release's"),
        pytest.param("v1.99.0", [], "DRADeviceTaintRules", True, id="an unknown release: newest"),
        pytest.param(
            "v1.37.2",
            [{"name": "DRAConsumableCapacity", "state": "off", "source": "metric"}],
            "DRAConsumableCapacity",
            False,
            id="what the API server says counts",
        ),
        pytest.param(
            "v1.35.0",
            [{"name": "DRADerivedAttributes", "state": "on", "source": "metric"}],
            "DRADerivedAttributes",
            False,
            id="a gate that the release cannot have is not believed",
        ),
    ],
)
def test_the_features_of_the_cluster(
    release: str, capabilities: list[dict[str, str]], gate: str, on: bool
) -> None:
    found = gates_of({"release": release, "capabilities": capabilities})
    assert (gate in found) is on
    assert found.scheduled and gate in found.assumed
