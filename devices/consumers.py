"""The Pods that use an ask's claims, as the mirror has them: for showing, not for writing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any
