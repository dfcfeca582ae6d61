"""What the API server did not keep is named by its path."""

from __future__ import annotations

import pytest

from devices.cluster.dropped import dropped_fields


@pytest.mark.parametrize(
    "sent, stored, paths",
    [
        pytest.param({"a": 1}, {"a": 1, "b": 2}, (), id="defaults filled in are no loss"),
        pytest.param({"a": "1000m"}, {"a": "1"}, (), id="a canonical form is no loss"),
        pytest.param({"a": {}, "b": [], "c": ""}, {}, (), id="empty values are left out"),
        pytest.param({"a": {"b": 1}}, {"a": {}}, ("a.b",), id="a field"),
        pytest.param({"a": {"b": {"c": 1}}}, {}, ("a",), id="the outermost lost field is named"),
        pytest.param(
            {"spec": {"devices": [{"name": "g"}, {"name": "h", "overhead": {"x": 1}}]}},
            {"spec": {"devices": [{"name": "g"}, {"name": "h"}]}},
            ("spec.devices[1].overhead",),
            id="a field within a list",
        ),
        pytest.param({"a": [1, 2]}, {"a": [1]}, ("a[1]",), id="an element"),
        pytest.param({"a": [1]}, {"a": None}, ("a[0]",), id="a list that became nothing"),
    ],
)
def test_dropped_fields(sent, stored, paths):
    assert dropped_fields(sent, stored) == paths
