"""What a controller must know of plugin, driver and kubelet, as far as no five minutes are needed.

Every script begins on a node that neither plugin nor driver is called to.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import timedelta

from devices.dra.conversion import (
    canary_proves,
    canary_started,
    claims_are_free,
    driver_is_off,
    no_plugin_holders,
    plugin_is_off,
    plugin_is_on,
    settling_is_over,
    slices_are_complete,
    slices_are_gone,
    taint_holds,
)
from devices.dra.ownership import Owner
from tests.playground.conftest import a_claim
from tests.playground.conversion.stand import DRIVER, LEAST, RESOURCE, TAINT, TOLERATES, Stand, now

UNHEALTHY = (
    "Pod was rejected: Allocate failed due to no healthy devices present;"
    f" cannot allocate unhealthy devices {RESOURCE}, which is unexpected"
)


def plugin_stops_under_its_holders(at: Stand) -> None:
    """The plugin comes and goes; who holds its devices runs on, and the driver gives them again."""
    began = now()
    # A node that lacks the key, as a new one does: worse than 0. Nobody refuses such a Pod.
    assert at.shown() == (None, None)
    assert at.verdict(plugin_is_off) == "proved"
    at.pod("past-the-scheduler", bound=at.node)
    assert at.devices("past-the-scheduler") == [], "it runs without any device"
    assert at.verdict(no_plugin_holders, empty_since=began, times=at.times) == "not yet"
    at.delete("past-the-scheduler")

    assert at.verdict(plugin_is_on) == "not yet"
    at.path("plugin")
    at.until(plugin_is_on)
    assert at.owned().owner is Owner.PLUGIN
    at.pod("holder")
    at.until(canary_proves, canary=at.key("holder"), since=began, path=Owner.PLUGIN)
    held = at.devices("holder")
    status = at.ground.pod("holder")["status"]
    assert "extendedResourceClaimStatus" not in status and len(held) == 1

    # Nothing is lost with the socket's file.
    at.remove_socket()
    at.pod("second")
    at.delete("second")
    assert at.shown() == ("2", "2")

    assert at.verdict(plugin_is_off) == "not yet"
    at.path("none")
    at.until(plugin_is_off)
    assert at.shown() == ("2", "0"), "capacity stays for five minutes"
    assert at.verdict(no_plugin_holders, empty_since=began, times=at.times) == "not yet"
    assert at.ground.pod("holder")["status"]["containerStatuses"] == status["containerStatuses"]
    at.kill_container("holder")
    at.restarted("holder", 0)
    assert at.devices("holder") == held, "it starts again with its device"

    at.pod("late", bound=at.node, ready=False)
    assert at.failed("late") == ("UnexpectedAdmissionError", UNHEALTHY)
    [only] = at.uses().holders
    assert str(only.pod) == f"{at.ground.namespace}/holder"

    # What is waiting goes to the driver, though the plugin's device is still held: the first way to
    # two owners, and neither capacity nor allocatable tells.
    at.pod("waiting", ready=False)
    at.waits("waiting", "cannot allocate all claims")
    at.pod("strange", limits={f"{RESOURCE}s": "1"}, ready=False)
    at.waits("strange", f"Insufficient {RESOURCE}s")  # no class has that name
    at.delete("strange")
    assert not at.uses().mixed
    assert at.verdict(slices_are_complete) == "not yet"
    since = now()
    at.path("dra")
    at.until(slices_are_complete)
    at.ground.ready("waiting", seconds=30)
    at.until(canary_proves, canary=at.key("waiting"), since=since, path=Owner.DRA)
    assert at.owned().owner is Owner.DRA
    assert at.uses().mixed
    assert at.verdict(no_plugin_holders, empty_since=began, times=at.times) == "not yet"
    at.probe()
    assert at.memory(since).verdict == "not yet", "the node says the same"


def both_give_at_once(at: Stand) -> None:
    """Plugin and driver together: neither counts what the other has given."""
    at.path("both")
    at.until(plugin_is_on)
    at.until(slices_are_complete)
    assert str(at.owned().code) == "OWNER_CONFLICT"
    since = now()
    at.pod("a")
    at.pod("b")
    for name in ("a", "b"):  # by the plugin, and by the plugin only
        at.until(canary_proves, canary=at.key(name), since=since, path=Owner.PLUGIN)
    wrong = at.asked(canary_proves, canary=at.key("a"), since=since, path=Owner.DRA)
    assert (wrong.verdict, str(wrong.code)) == ("refuted", "OWNER_CONFLICT")
    at.pod("c", ready=False)
    at.waits("c", f"Insufficient {RESOURCE}")
    assert len(at.uses().holders) == 2 and not at.uses().mixed

    # The second way to two owners: claims are not counted against the plugin.
    at.ground.make(a_claim("claim", "l40s"))
    at.pod("claimant", claim="claim")
    assert at.uses().mixed
    [holds] = at.ground.results("claim")
    at.say(f"claim holds {holds['device']}, the plugin gave {at.devices('a') + at.devices('b')}")
    assert holds["device"] in at.devices("a") + at.devices("b"), "one device, given twice"

    # A plugin whose devices are all unwell offers nothing, and is there all the same.
    with at.unhealthy():
        at.ground.wait("nothing allocatable", lambda: at.shown()[1] == "0", seconds=30)
        assert at.verdict(plugin_is_off) == "not yet"
        at.ground.ready("c", seconds=30)
        at.until(canary_proves, canary=at.key("c"), since=since, path=Owner.DRA)
    at.until(plugin_is_on)


def driver_stops_under_its_claims(at: Stand) -> None:
    """The driver goes while claims are held: Pods cannot end, the plugin gives the devices again,
    and what is deleted by force shows on the node only."""
    began = now()
    at.path("dra")
    at.until(slices_are_complete)
    at.pod("extended")
    at.until(canary_proves, canary=at.key("extended"), since=began, path=Owner.DRA)
    [container] = at.ground.pod("extended")["status"]["containerStatuses"]
    assert "allocatedResourcesStatus" not in container
    at.ground.make(a_claim("claim", "l40s"))
    at.pod("explicit", claim="claim")
    free = {"empty_since": began, "report": None, "times": at.times}
    assert at.verdict(claims_are_free, **free) == "not yet"
    assert at.verdict(driver_is_off) == "not yet"

    at.path("plugin")  # in one step, as nobody should
    at.until(driver_is_off)
    at.kill_container("extended")
    at.restarted("extended", 0)  # what was prepared stays prepared
    at.until(plugin_is_on)
    # The third way to two owners.
    at.pod("next")
    assert at.uses().mixed and len(at.uses().claims) == 2
    at.delete("next")

    at.delete("extended", gone=False)
    at.ground.wait("its container ended", lambda: not at.runs("extended"))
    at.delete("explicit", gone=False, grace_seconds=0)
    at.ground.wait("the claim free", lambda: not at.ground.results("claim"))
    assert at.ground.get("Pod", "explicit") is None, "it left the API at once"
    at.until(slices_are_gone, seconds=60)
    assert at.ground.pod("extended")["metadata"]["deletionTimestamp"], "it cannot go"
    assert at.verdict(claims_are_free, **free) == "not yet"
    assert at.probe().claims_in_use == {DRIVER: 2}, "both are prepared, one shows nowhere else"

    at.path("dra")
    at.ground.gone("Pod", "extended", seconds=60)
    patient = replace(at.times, second_look=timedelta(minutes=1))
    just_empty = {**free, "empty_since": now(), "times": patient}
    assert at.verdict(claims_are_free, **just_empty) == "not yet"
    at.times = replace(at.times, second_look=LEAST)  # whole.py has the patience
    at.until_empty(claims_are_free)
    assert at.reports[-1].claims_in_use == {}


def closed_to_others(at: Stand) -> None:
    """The taint is tried by a Pod that does not tolerate it; plugin and driver do."""
    at.path("plugin")
    at.until(plugin_is_on)
    first, second = at.key("first"), at.key("second")
    assert at.verdict(taint_holds, taint=TAINT, trial=None) == "not yet"
    at.pod("first", limits={})
    assert at.verdict(taint_holds, taint=TAINT, trial=first) == "not yet", "an open node takes it"
    at.close()
    assert at.verdict(taint_holds, taint=TAINT, trial=None) == "not yet", "nobody has tried"
    assert at.verdict(taint_holds, taint=TAINT, trial=first) == "not yet", "it was here before"
    at.until_kept_off("second")
    since = now()
    at.pod("canary", tolerations=TOLERATES)
    at.until(canary_proves, canary=at.key("canary"), since=since, path=Owner.PLUGIN)
    assert at.shown() == ("2", "2"), "the plugin tolerates it"
    at.close(closed=False)
    at.ground.ready("second")
    assert at.verdict(taint_holds, taint=TAINT, trial=second) == "not yet"
    at.delete("first", "second", "canary")


def kubelet_starts_anew(at: Stand) -> None:
    """A kubelet that restarts: with the plugin, without it, and with a driver at work."""
    at.path("plugin")
    at.until(plugin_is_on)
    at.pod("gone")  # the kubelet will remember it
    at.delete("gone")
    before = at.probe()
    at.restart_kubelet()
    at.until(plugin_is_on)
    at.pod("gone-too")
    at.delete("gone-too")

    at.path("none")
    at.until(plugin_is_off)
    plugin_off = now()
    assert at.memory(plugin_off).verdict == "not known", "it was asked before"
    with at.kubelet_down():
        at.pod("unseen", bound=at.node, ready=False)
    assert at.failed("unseen") == ("UnexpectedAdmissionError", UNHEALTHY)
    at.ground.wait("0 at once", lambda: at.shown() == ("0", "0"), seconds=20)
    options = {"plugin_off": plugin_off, "times": at.times}
    assert at.verdict(settling_is_over, reports=at.reports, **options) == "not yet"
    after = at.probe()
    # To the second: a process's start is counted from the machine's, which is told in seconds.
    assert abs(after.kubelet_started - plugin_off) < timedelta(seconds=20)
    assert after.kubelet_started > before.kubelet_started + timedelta(seconds=2)
    assert at.memory(plugin_off).proved, "it was asked within the five minutes that began anew"
    settling = at.asked(settling_is_over, reports=at.reports, **options)
    assert settling.again == max(plugin_off, after.kubelet_started) + at.times.settling

    at.pod("late", bound=at.node, ready=False)
    assert at.failed("late") == ("UnexpectedAdmissionError", UNHEALTHY)
    since = now()
    at.path("dra")
    at.until(slices_are_complete)
    at.pod("early")
    early = at.key("early")
    at.until(canary_proves, canary=early, since=since, path=Owner.DRA)
    due = settling.again
    assert due is not None
    later = at.asked(canary_started, canary=early, since=due)
    assert later.verdict == "not known", "within the five minutes it proves nothing for later"

    # Slices are wiped by a kubelet that starts, and their driver runs on.
    at.restart_kubelet()
    at.ground.wait("no slices", lambda: not at.ground.slices(at.node), seconds=20)
    assert at.verdict(slices_are_gone) == "not yet"
    assert at.verdict(driver_is_off) == "not yet"
    time.sleep(1)
    assert at.runs("early") and at.restarts("early") == 0


QUICK = (
    (plugin_stops_under_its_holders,),
    (both_give_at_once,),
    (driver_stops_under_its_claims,),
    (closed_to_others, kubelet_starts_anew),
)
