"""An object of no known shape is told as unread, never a crash."""

from __future__ import annotations

from typing import Any

import pytest

from devices.dra.reading import title
from devices.dra.snapshot import read


@pytest.mark.parametrize("metadata", [[], ["a"], "name", 7, True], ids=repr)
def test_metadata_that_is_no_object(metadata: Any):
    raw = {"kind": "ResourceClaim", "metadata": metadata, "spec": {}}
    assert title(raw) == "ResourceClaim/?"
    (unread,) = read([raw]).unread
    assert unread.object == "ResourceClaim/?"
