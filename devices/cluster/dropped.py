"""Which fields of an object the API server did not keep: a disabled feature drops them silently."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any


def dropped_fields(sent: Mapping[str, Any], stored: Mapping[str, Any]) -> tuple[str, ...]:
    """Paths (`spec.devices[0].nodeAllocatableResources`) that were sent and are not in `stored`.

    Values that differ do not count (quantities come back in canonical form, defaults are filled
    in), nor do empty ones, which the API server leaves out. Source: `dropDisabledFields` of
    pkg/registry/resource/*/strategy.go, which strict field validation does not report.
    """
    return tuple(_dropped("", sent, stored))


def _dropped(path: str, sent: Any, stored: Any) -> Iterator[str]:
    if isinstance(sent, Mapping):
        for key, value in sent.items():
            at = f"{path}.{key}" if path else str(key)
            if not isinstance(stored, Mapping) or key not in stored:
                if value not in (None, "", 0, False, {}, []):
                    yield at
            else:
                yield from _dropped(at, value, stored[key])
    elif isinstance(sent, list | tuple):
        kept = stored if isinstance(stored, list | tuple) else ()
        for number, value in enumerate(sent):
            if number < len(kept):
                yield from _dropped(f"{path}[{number}]", value, kept[number])
            else:
                yield f"{path}[{number}]"
