"""What a simulated kubelet knows of its plugins' devices, and goes on remembering."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from playground.fleet.devicebook import DeviceBook, NotAdmitted
from tests.playground.conftest import a_pod

Obj = dict[str, Any]

GRACE = 300.0


@dataclass
class Clock:
    seconds: float = 0.0

    def __call__(self) -> float:
        return self.seconds


def a_book() -> tuple[DeviceBook, Clock]:
    clock = Clock()
    return DeviceBook(grace=GRACE, clock=clock), clock


def a_holder(name: str, count: int = 1) -> Obj:
    pod = a_pod(name, limits={"x.example/gpu": str(count)})
    return {**pod, "metadata": {**pod["metadata"], "uid": name}}


def test_a_plugin_s_devices_are_held_released_and_remembered() -> None:
    book, clock = a_book()
    book.register("x.example/gpu", ["dev-0", "dev-1"])
    first, second = a_holder("first"), a_holder("second")
    book.allocate(first, {})
    book.allocate(first, {})  # twice is once
    book.allocate(second, {})
    assert book.held("first", "main")["x.example/gpu"][0]["resourceID"] == "dev-0"
    with pytest.raises(NotAdmitted, match="Requested: 1, Available: 0"):
        book.allocate(a_holder("third"), {})
    book.release("first")
    book.release("second")
    book.stopped("x.example/gpu")
    assert book.offered() == {"x.example/gpu": (2, 0)}
    with pytest.raises(NotAdmitted, match="no healthy devices present"):
        book.allocate(first, {})
    assert not book.trap(first), "not before the grace is over"
    clock.seconds += GRACE
    assert book.offered() == {"x.example/gpu": (0, 0)}
    assert "endpoint not found" in book.trap(first)
    book.list_pods()
    assert not book.trap(first), "a podresources List forgets who is gone"


def a_stopped_plugin(*, asked_in_time: bool) -> tuple[DeviceBook, Clock]:
    """The grace after a plugin that gave a device to a Pod long gone is over."""
    book, clock = a_book()
    book.register("x.example/gpu", ["dev-0"])
    book.allocate(a_holder("gone"), {})
    book.release("gone")
    book.stopped("x.example/gpu")
    if asked_in_time:
        book.list_pods()
    clock.seconds += GRACE
    book.offered()
    return book, clock


def test_who_was_asked_in_time_has_clean_notes() -> None:
    (book, _), pod = a_stopped_plugin(asked_in_time=True), a_holder("next")
    assert not book.trap(pod)
    book.restart()
    assert not book.trap(pod)


def test_who_was_asked_too_late_remembers_at_every_start() -> None:
    (book, clock), pod = a_stopped_plugin(asked_in_time=False), a_holder("next")
    assert book.trap(pod)
    book.list_pods()
    assert not book.trap(pod)
    book.restart()
    assert book.trap(pod), "at once: the plugin no longer stands in its notes"
    book.register("x.example/gpu", ["dev-0"])
    assert not book.trap(pod), "a plugin is there"
    book.stopped("x.example/gpu")
    book.list_pods()
    clock.seconds += GRACE
    book.offered()
    book.restart()
    assert not book.trap(pod), "asked within the grace of a plugin that ran for a moment"


def test_a_kubelet_that_starts_within_the_grace_begins_it_anew() -> None:
    book, clock = a_book()
    book.register("x.example/gpu", ["dev-0"])
    book.allocate(a_holder("gone"), {})
    book.release("gone")
    book.stopped("x.example/gpu")
    clock.seconds += 0.6 * GRACE
    book.restart()
    assert book.offered() == {"x.example/gpu": (0, 0)}, "at once, and it means nothing"
    clock.seconds += 0.6 * GRACE
    book.offered()
    assert not book.trap(a_holder("next")), "not before its own grace is over"
    clock.seconds += 0.6 * GRACE
    book.offered()
    assert book.trap(a_holder("next"))


def test_a_plugin_tells_that_a_device_is_unwell() -> None:
    book, _ = a_book()
    book.register("x.example/gpu", ["dev-0", "dev-1"])
    book.tell("x.example/gpu", "dev-0", healthy=False)
    assert book.offered() == {"x.example/gpu": (2, 1)}
    book.tell("x.example/gpu", "dev-0", healthy=True)
    assert book.offered() == {"x.example/gpu": (2, 2)}


def test_a_pod_on_a_node_whose_key_is_0_is_out_of_the_resource() -> None:
    book, clock = a_book()
    book.allocate(a_holder("unknown"), {})  # no plugin ever: none of the kubelet's business
    book.register("x.example/gpu", ["dev-0"])
    book.stopped("x.example/gpu")
    clock.seconds += GRACE
    book.offered()
    with pytest.raises(NotAdmitted) as no:
        book.allocate(a_holder("late"), {"x.example/gpu": "0"})
    assert no.value.reason == "OutOfx.example/gpu"
    assert no.value.message == (
        "Node didn't have enough resource: x.example/gpu, requested: 1, used: 0, capacity: 0"
    )


def test_a_pod_that_is_refused_makes_the_kubelet_forget() -> None:
    book, _ = a_stopped_plugin(asked_in_time=False)
    with pytest.raises(NotAdmitted, match="cannot allocate unregistered device"):
        book.allocate(a_holder("late"), {"x.example/gpu": "0"})
    assert not book.trap(a_holder("next"))
    book.allocate(a_holder("past"), {})  # the key was removed by hand: admitted, with no device
    assert not book.held("past", "main")
