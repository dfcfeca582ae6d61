"""What a control plane's folder remembers of its last start: release, options, ports."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from playground.plane.certificates import write_private
from playground.plane.components import Tuning

FILE = "plane.json"


@dataclass(frozen=True, slots=True)
class Memory:
    """The options of `ControlPlane` as they were, and the port of each of `components.PORTS`."""

    release: str
    gates: Mapping[str, bool]
    emulated_version: str | None
    components: tuple[str, ...]
    tuning: Tuning
    ports: Mapping[str, int]

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """None where nothing was started yet, or nothing readable is left."""
        try:
            read = json.loads((folder / FILE).read_text())
            return cls(
                release=read["release"],
                gates=read["gates"],
                emulated_version=read["emulated_version"],
                components=tuple(read["components"]),
                tuning=Tuning.read(read["tuning"]),
                ports=read["ports"],
            )
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            return None

    def write(self, folder: Path) -> None:
        """Whole or not at all."""
        write_private(folder / FILE, json.dumps(dataclasses.asdict(self), indent=2).encode())
