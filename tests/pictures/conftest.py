"""The system's browser, in the same thread as the database."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.journeys.conftest import browser_type_launch_args

__all__ = ["browser_type_launch_args", "same_thread"]


@pytest.fixture(scope="session", autouse=True)
def same_thread() -> Iterator[None]:
    """The browser's driver runs a loop in this thread, which Django takes for ours."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "yes")
        yield
