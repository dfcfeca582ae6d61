"""Whole conversions, with the kubelet's five minutes: the safe sequence there and back, and the
trap for those who do not take it.

Every script begins on a node that neither plugin nor driver is called to.
"""

from __future__ import annotations

from datetime import datetime

from devices.dra.conversion import (
    canary_proves,
    canary_started,
    claims_are_free,
    driver_is_off,
    no_plugin_holders,
    plugin_is_off,
    plugin_is_on,
    slices_are_complete,
    slices_are_gone,
)
from devices.dra.ownership import Owner
from tests.playground.conftest import a_claim
from tests.playground.conversion.stand import RESOURCE, TOLERATES, Stand, now

OUT_OF = (
    f"Pod was rejected: Node didn't have enough resource: {RESOURCE},"
    " requested: 1, used: 0, capacity: 0"
)
UNREGISTERED = (
    f"Pod was rejected: Allocate failed due to cannot allocate unregistered device {RESOURCE},"
    " which is unexpected"
)


def there_and_back(at: Stand) -> None:
    """The safe sequence, both ways; a Pod that uses no device sees nothing of it."""
    at.pod("bystander", limits={})
    at.path("plugin")
    at.until(plugin_is_on)
    at.pod("work")
    to_driver(at, "work")

    at.pod("bound-late", bound=at.node, ready=False)
    assert at.failed("bound-late") == (f"OutOf{RESOURCE}", OUT_OF)
    at.delete("bound-late")
    # Clean for good: a container that starts again, and a kubelet that does, meet no trap.
    at.pod("work")
    at.kill_container("work")
    at.restarted("work", 0)
    at.restart_kubelet()
    at.kill_container("work")
    at.restarted("work", 1)
    at.until(slices_are_complete, seconds=120)

    to_plugin(at, "work")
    at.pod("work")
    assert at.restarts("bystander") == 0
    assert at.mixed == [], "at no moment had both given devices out"


def to_driver(at: Stand, *holders: str) -> None:
    """Eight steps, each with its proof, from the plugin to the driver."""
    closed(at, "trial-to-driver")
    empty = {"empty_since": None, "times": at.times}
    assert at.verdict(no_plugin_holders, **empty) == "not yet"
    at.delete(*holders)
    at.until_empty(no_plugin_holders)
    assert at.verdict(plugin_is_off) == "not yet"
    at.path("none")
    at.until(plugin_is_off)
    plugin_off = now()
    assert at.memory(plugin_off).verdict == "not known"
    at.probe()
    assert at.memory(plugin_off).proved
    at.path("dra")
    at.until(slices_are_complete, seconds=120)
    settled(at, plugin_off, "canary-by-driver")
    at.delete("canary-by-driver", "trial-to-driver")
    at.close(closed=False)


def settled(at: Stand, plugin_off: datetime, canary: str) -> None:
    """The last steps to the driver: the five minutes, and a Pod that runs after them."""
    since = at.until_settled(plugin_off)
    at.pod(canary, tolerations=TOLERATES, ready=False)
    at.until(canary_proves, seconds=180, canary=at.key(canary), since=since, path=Owner.DRA)


def to_plugin(at: Stand, *holders: str) -> None:
    """Seven steps, each with its proof, from the driver to the plugin."""
    closed(at, "trial-to-plugin")
    free = {"empty_since": None, "report": None, "times": at.times}
    assert at.verdict(claims_are_free, **free) == "not yet"
    at.delete(*holders)
    at.until_empty(claims_are_free)
    assert at.verdict(driver_is_off) == "not yet"
    at.path("none")
    at.until(driver_is_off, seconds=120)
    at.until(slices_are_gone, seconds=90)
    assert not at.uses().claims
    since = now()
    at.path("plugin")
    at.until(plugin_is_on)
    canary = at.key("canary-by-plugin")
    at.pod("canary-by-plugin", tolerations=TOLERATES, ready=False)
    at.until(canary_proves, canary=canary, since=since, path=Owner.PLUGIN)
    at.delete("canary-by-plugin", "trial-to-plugin")
    at.close(closed=False)


def closed(at: Stand, trial: str) -> None:
    at.close()
    at.until_kept_off(trial)


def trapped_and_cured(at: Stand) -> None:
    """The plugin stops, nobody asks the node, and five minutes later no Pod starts; the cures."""
    at.path("plugin")
    at.until(plugin_is_on)
    at.pod("long-gone")
    at.delete("long-gone")
    at.path("dra")  # in one step
    at.until(slices_are_complete)
    at.until(plugin_is_off)
    plugin_off = now()
    at.pod("early")
    early = at.key("early")
    at.until(canary_proves, canary=early, since=plugin_off, path=Owner.DRA)

    at.ground.wait(
        "no capacity",
        lambda: at.shown() == ("0", "0"),
        seconds=at.times.grace.total_seconds() + 60,
    )
    at.say("capacity 0")
    at.pod("canary", ready=False)
    caught(at, "canary")
    refuted = at.asked(canary_proves, canary=at.key("canary"), since=plugin_off, path=Owner.DRA)
    assert (refuted.verdict, str(refuted.code)) == ("refuted", "KUBELET_TRAP")
    assert at.given("canary"), "its claim is allocated"
    words = f"Error: endpoint not found in cache for a registered resource: {RESOURCE}"
    at.ground.wait("the event", lambda: at.ground.said("canary", "Failed") == words)
    at.delete("canary")
    # What runs goes on, until it has to start again. Claims by name are not hit.
    assert at.runs("early")
    at.kill_container("early")
    caught(at, "early")
    at.ground.make(a_claim("claim", "l40s"))
    at.pod("explicit", claim="claim")
    at.delete("explicit")

    # A look at the node cures it until its kubelet's next start, which reads the old notes.
    at.probe()
    at.restarted("early", 0)
    late = at.memory(plugin_off)
    assert (late.verdict, str(late.code)) == ("refuted", "KUBELET_MEMORY_KEPT")
    at.restart_kubelet()
    at.kill_container("early")
    caught(at, "early")
    # So does a Pod that goes past the scheduler, though the kubelet refuses it.
    at.pod("bound-late", bound=at.node, ready=False)
    assert at.failed("bound-late") == ("UnexpectedAdmissionError", UNREGISTERED)
    at.restarted("early", 1)
    at.delete("bound-late", "early")

    # For good: the plugin runs for a moment, and the node is asked in time.
    at.close()
    at.path("both")
    at.until(plugin_is_on)
    at.path("dra")
    at.until(plugin_is_off)
    plugin_off = now()
    at.probe()
    assert at.memory(plugin_off).proved
    at.until(slices_are_complete, seconds=120)
    settled(at, plugin_off, "canary-at-last")
    at.restart_kubelet()
    at.kill_container("canary-at-last")
    at.restarted("canary-at-last", 0)
    at.close(closed=False)
    at.until(slices_are_complete, seconds=120)
    to_plugin(at, "canary-at-last")


def caught(at: Stand, pod: str) -> None:
    """Returns when the kubelet's trap shows in the Pod."""
    at.ground.wait(f"{pod} is caught", lambda: at.trapped(pod) == RESOURCE, seconds=60)
    at.say(f"Pod {pod} is caught")
    found = at.asked(canary_started, canary=at.key(pod), since=now())
    assert (found.verdict, str(found.code)) == ("refuted", "KUBELET_TRAP")


WHOLE = (there_and_back, trapped_and_cured)
