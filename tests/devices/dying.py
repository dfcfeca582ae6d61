"""A worker that dies at its n-th step: between any two statements and calls to the API server.

From then on it does nothing more, not even what stands in a `finally`: the dead write no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connection

from devices.cluster.gateway import Gateway


class Died(BaseException):
    """No error that anybody may catch."""


class Life:
    """Counts steps; dies before step `ends` (None: lives on). `taken` tells what came before."""

    def __init__(self, ends: int | None) -> None:
        self.ends, self.steps = ends, 0
        self.taken: list[str] = []

    def step(self, what: str) -> None:
        """Raises `Died` at the step where it ends, and at every one after."""
        if self.ends is not None and self.steps >= self.ends:
            raise Died(what)
        self.steps += 1
        self.taken.append(what)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Every statement of this thread's connection is a step while the block runs."""

        def wrapper(
            execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any
        ) -> Any:
            self.step(sql.split(maxsplit=1)[0])
            return execute(sql, params, many, context)

        with connection.execute_wrapper(wrapper):
            yield


class MortalGateway:
    """A gateway of which every call is two steps: to ask, and to hear the answer."""

    def __init__(self, gateway: Gateway, life: Life) -> None:
        self._gateway, self._life = gateway, life

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._gateway, name)
        if not callable(found):
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            self._life.step(name)
            answer = found(*args, **kwargs)
            self._life.step(f"the answer to {name}")
            return answer

        return call
