"""The icons: read once from `icons.svg`, drawn by reference, defined once per page.

`{% icon "ok" %}` draws a reference and remembers the name; `{% icon_defs %}`, the last thing in
the body, defines what the page used. A fragment that arrives later cannot add definitions, so the
shapes of the status words and of devices are defined on every page (`ALWAYS`).
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from django.utils.safestring import SafeString, mark_safe

SOURCE = Path(__file__).with_name("icons.svg")

_SYMBOL = re.compile(
    r'<symbol id="(?P<name>[a-z0-9-]+)" viewBox="0 0 16 16">(?P<body>.*?)</symbol>', re.S
)

#: On every page, because a fragment may need them: kinds of devices, and what rows and events show.
#: The shapes of the status words (`statuses.py`) come on top.
ALWAYS = frozenset(
    {
        "calendar",
        "claim",
        "copy",
        "cpu",
        "device",
        "export",
        "fpga",
        "gpu",
        "mig",
        "minus",
        "nic",
        "people",
        "plus",
        "pods",
        "right",
        "x",
    }
)

#: Hints in a class's, driver's or template's name at what kind of device it is, best first.
_KINDS = (
    ("mig", ("mig", "slice", "partition")),
    ("gpu", ("gpu", "nvidia", "h100", "a100", "h200", "l40s", "cuda", "mi300")),
    ("nic", ("nic", "net", "rdma", "connectx", "mlnx", "sriov", "vf", "port")),
    ("fpga", ("fpga", "xilinx", "versal", "vck")),
    ("cpu", ("cpu", "numa", "core")),
)


@cache
def symbols() -> dict[str, str]:
    """name → inner SVG of every icon there is."""
    source = SOURCE.read_text(encoding="utf-8")
    return {found["name"]: " ".join(found["body"].split()) for found in _SYMBOL.finditer(source)}


def draw(name: str) -> SafeString:
    """An icon by reference: decoration only, the word stands beside it.

    Raises KeyError for a name that `icons.svg` does not have.
    """
    symbols()[name]
    return mark_safe(  # the name is one of ours
        f'<svg class="i" viewBox="0 0 16 16" aria-hidden="true" focusable="false">'
        f'<use href="#i-{name}"/></svg>'
    )


def definitions(names: set[str]) -> SafeString:
    """The symbols of `names`, to stand once in a page's hidden svg."""
    drawn = symbols()
    return mark_safe(
        "".join(
            f'<symbol id="i-{name}" viewBox="0 0 16 16">{drawn[name]}</symbol>'
            for name in sorted(names)
        )
    )


def kind_of_device(*names: str) -> str:
    """The icon for a device of that class, driver or template: a guess that only decorates."""
    words = set(re.split(r"[^a-z0-9]+", " ".join(names).lower()))
    text = " ".join(names).lower()
    for icon, hints in _KINDS:
        if any(hint in words or (len(hint) > 3 and hint in text) for hint in hints):
            return icon
    return "device"
