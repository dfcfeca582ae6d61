"""Yes or no in a body: JSON's own words alone, as the OpenAPI document says."""

from __future__ import annotations

from typing import Any

from rest_framework.serializers import BooleanField


class TrueOrFalse(BooleanField):
    """`true` or `false`. REST framework's own takes `0`, `"no"` and `"off"` for false as well, so
    that a program's mistake would do what nobody meant.
    """

    def to_internal_value(self, data: Any) -> bool:
        """Refuses everything else."""
        if not isinstance(data, bool):
            self.fail("invalid", input=data)
        return data
