"""Which path new work takes: what is set, what counts of it, and what cannot follow."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devices.dra.objects import Shape
from devices.routing.routes import Path, Ruling, Serving, route, ruling
from tests.devices.test_whatif import asking

SET_AT = datetime(2026, 11, 2, 9, tzinfo=UTC)
CLASS = "h100-80gb"
NAME = "x.example/gpu"


def ruled(path: Path = Path.PLUGIN, **more: object) -> Ruling:
    fields = {"id": path.value, "device_class": CLASS, "reason": "Pool 3 is moved.", **more}
    return Ruling(path=path, **{"set_at": SET_AT, **fields})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rulings", "wanted"),
    [
        pytest.param([], None, id="nothing is set"),
        pytest.param([ruled(id="a")], "a", id="one for all"),
        pytest.param([ruled(id="a", device_class="other")], None, id="of another class"),
        pytest.param([ruled(id="a", tenant="basalt")], None, id="of another tenant"),
        pytest.param([ruled(id="a", template="pair")], None, id="by another template"),
        pytest.param(
            [ruled(id="b", tenant="tidewater"), ruled(id="a", set_at=SET_AT + timedelta(days=1))],
            "b",
            id="its tenant's counts before a newer one for all",
        ),
        pytest.param(
            [ruled(id="b", template="gpu"), ruled(id="a", tenant="tidewater")],
            "a",
            id="its tenant's counts before its template's",
        ),
        pytest.param(
            [ruled(id="a", tenant="tidewater"), ruled(id="b", tenant="tidewater", template="gpu")],
            "b",
            id="both counts before one of them",
        ),
        pytest.param(
            [ruled(id="a"), ruled(id="b", set_at=SET_AT + timedelta(seconds=1))],
            "b",
            id="of equals the newest",
        ),
    ],
)
def test_what_counts_of_all_that_is_set(rulings: list[Ruling], wanted: str | None) -> None:
    found = ruling(rulings, CLASS, "tidewater", "gpu")
    assert (found.id if found else None) == wanted


RULINGS = st.builds(
    ruled,
    path=st.sampled_from(list(Path)),
    id=st.text("abc", min_size=1, max_size=3),
    device_class=st.sampled_from([CLASS, "other"]),
    tenant=st.sampled_from(["", "tidewater", "basalt"]),
    template=st.sampled_from(["", "gpu", "pair"]),
    set_at=st.integers(0, 3).map(lambda n: SET_AT + timedelta(hours=n)),
)


@given(st.lists(RULINGS, max_size=6))
def test_nothing_narrower_or_newer_is_passed_over(rulings: list[Ruling]) -> None:
    found = ruling(rulings, CLASS, "tidewater", "gpu")
    concerned = [one for one in rulings if one.concerns(CLASS, "tidewater", "gpu")]
    assert (found is None) == (not concerned)
    for other in concerned:
        assert found is not None
        rank = (bool(found.tenant), bool(found.template), found.set_at)
        assert rank >= (bool(other.tenant), bool(other.template), other.set_at)
    assert ruling(list(reversed(rulings)), CLASS, "tidewater", "gpu") == found or len(
        {one.id for one in concerned}
    ) < len(concerned)


@pytest.mark.parametrize(
    ("serving", "shape", "near", "path", "why"),
    [
        pytest.param(
            {"resource": NAME, "ruling": ruled(until=datetime(2026, 12, 1, 8, tzinfo=UTC))},
            Shape.TEMPLATE,
            "",
            Path.PLUGIN,
            "by the device plugin until 1 Dec 08:00 UTC: Pool 3 is moved.",
            id="who, where, until when and why",
        ),
        pytest.param(
            {"resource": NAME, "ruling": ruled(Path.CLAIM), "by_dra": 0, "by_plugin": 8},
            Shape.TEMPLATE,
            "",
            Path.CLAIM,
            "by a claim (DRA)",
            id="by claim, though only the plugin has some",
        ),
        pytest.param(
            {"resource": NAME, "ruling": ruled()},
            Shape.CLAIM,
            "",
            Path.CLAIM,
            "only a claim can be shared",
            id="a shared one cannot follow",
        ),
        pytest.param(
            {"resource": NAME, "ruling": ruled()},
            Shape.TEMPLATE,
            "x/y",
            Path.CLAIM,
            "Only a claim can say",
            id="a condition cannot follow",
        ),
        pytest.param(
            {"ruling": ruled()},
            Shape.TEMPLATE,
            "",
            Path.CLAIM,
            "names no extended resource",
            id="a class without a name",
        ),
        pytest.param(
            {"ruling": ruled(Path.EXTENDED), "extended": False},
            Shape.TEMPLATE,
            "",
            Path.CLAIM,
            "does not turn extended resources into claims",
            id="a cluster that does not serve it",
        ),
        pytest.param(
            {"ruling": ruled(Path.EXTENDED)},
            Shape.TEMPLATE,
            "",
            Path.EXTENDED,
            "by an extended resource that DRA serves",
            id="by the implicit name",
        ),
    ],
)
def test_a_path_that_is_set(
    serving: dict[str, object], shape: Shape, near: str, path: Path, why: str
) -> None:
    all_ = {"by_dra": 8, "by_plugin": 8, "extended": True, **serving}
    found = route(asking(count=2, near=near, shape=shape), [Serving(CLASS, **all_)])  # type: ignore[arg-type]
    assert found.path is path
    assert why in found.why
    assert found.rulings == (serving["ruling"].id,)  # type: ignore[attr-defined]
    name = NAME if "resource" in serving else f"deviceclass.resource.kubernetes.io/{CLASS}"
    assert found.resources == (() if path is Path.CLAIM else ((name, 2),))
