"""The manifests of `deploy/` as this Berth carries them: the measure of what is installed."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml
from django.conf import settings

from devices.doctor.rights import Right, needed

Obj = dict[str, Any]


@cache
def objects(part: str) -> tuple[Obj, ...]:
    """Every object of `deploy/rbac` or `deploy/policies`; empty where an image lacks the folder."""
    folder = Path(settings.BASE_DIR, "deploy", part)
    return tuple(
        obj
        for path in sorted(folder.glob("*.yaml"))
        for obj in yaml.safe_load_all(path.read_text())
        if obj
    )


def accounts() -> dict[str, frozenset[Right]]:
    """What each of Berth's accounts needs."""
    return needed(objects("rbac"))
