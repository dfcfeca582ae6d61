"""The status vocabulary: each state's word, shape, colour and meaning, together, once.

A state that a model, a rule or the cluster knows is looked up here by its stored value. A new state
is a row here: an existing tone, a shape of its own, and a sentence for what enters and what ends
it. `docs/decisions/0003-own-stylesheet.md` says why shape and word come before colour.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Tone(StrEnum):
    """What a colour means, never how it looks; the stylesheet's classes are `st-<tone>`."""

    OK = "ok"  # as wished
    RUN = "run"  # under way, nobody has to act
    WAIT = "wait"  # asks for a person, or waits in the cluster
    FAIL = "fail"  # failed, or an alarm
    HOLD = "hold"  # safe, resumes by itself
    PLUGIN = "plugin"  # owned by a device plugin
    NONE = "none"  # neither good nor bad: unknown, over, or to come


@dataclass(frozen=True, slots=True)
class Status:
    """One state. `enters` and `ends` are sentences for the tip behind the word."""

    tone: Tone
    icon: str
    word: str
    enters: str = ""
    ends: str = ""


UNKNOWN = Status(
    Tone.NONE, "unknown", "Unknown", "Nobody could say how it stands.", "The next news says."
)

STATUSES: dict[str, Status] = {
    # A claim or a template of a tenant (design: requested → … → released).
    "requested": Status(
        Tone.RUN,
        "run",
        "Asked",
        "The wish is written down and counted against the limit.",
        "It is sent to the cluster, usually within a second.",
    ),
    "held": Status(
        Tone.HOLD,
        "hold",
        "Held",
        "Something makes it unsafe to send now; nothing is lost.",
        "It resumes by itself, in the order of asking.",
    ),
    "applied": Status(
        Tone.RUN,
        "run",
        "Sent",
        "The object is in the cluster.",
        "A Pod uses it and the scheduler picks the devices.",
    ),
    "pending": Status(
        Tone.WAIT,
        "wait",
        "Pending",
        "A Pod asks for it and no device is allocated.",
        "The scheduler allocates, or you release it.",
    ),
    "allocated": Status(
        Tone.RUN,
        "run",
        "Allocated",
        "The scheduler has picked the devices.",
        "The node prepares them and the Pod starts.",
    ),
    "preparing": Status(
        Tone.RUN,
        "run",
        "Preparing",
        "The driver on the node makes the devices ready.",
        "The containers start.",
    ),
    "in_use": Status(
        Tone.OK,
        "ok",
        "Running",
        "A Pod runs with the devices.",
        "The last Pod ends, or you release it.",
    ),
    "releasing": Status(
        Tone.RUN,
        "run",
        "Releasing",
        "Its deletion is asked for.",
        "The cluster confirms that it is gone; only then the limit is given back.",
    ),
    "released": Status(Tone.NONE, "none", "Released", "The cluster has confirmed that it is gone."),
    "failed": Status(
        Tone.FAIL,
        "fail",
        "Failed",
        "It cannot become what was asked for.",
        "The next step on its page, or a release.",
    ),
    "ends_soon": Status(Tone.WAIT, "calendar", "Running, ends soon", "Its time is nearly up."),
    # Steps and checks.
    "done": Status(Tone.OK, "ok", "Done"),
    "here": Status(Tone.RUN, "run", "Under way"),
    "todo": Status(Tone.NONE, "none", "To come"),
    "spared": Status(Tone.NONE, "none", "Not needed", "It was given up before it came to this."),
    "pass": Status(Tone.OK, "ok", "Pass"),
    "fail": Status(Tone.FAIL, "fail", "Fail"),
    "inconclusive": Status(
        Tone.WAIT, "unknown", "Inconclusive", "Too few samples.", "A person decides."
    ),
    "paused": Status(Tone.WAIT, "paused", "Paused", "A gate stopped it.", "A person decides."),
    "wave_running": Status(
        Tone.RUN, "run", "Running", "Its nodes move.", "Every node is through, or it is paused."
    ),
    "soaking": Status(
        Tone.RUN, "wait", "Soaking", "Every node is through.", "Its time is over and gates agree."
    ),
    "rolling_back": Status(
        Tone.WAIT, "back", "Rolling back", "A person or a gate said so.", "Every node is back."
    ),
    "rolled_back": Status(Tone.NONE, "back", "Rolled back", "Every node is where it was."),
    "trial": Status(Tone.NONE, "draft", "Trial", "It is measured and does not vote."),
    # People's accounts.
    "account_open": Status(Tone.OK, "ok", "Open", "They may sign in."),
    "account_closed": Status(
        Tone.NONE, "none", "Closed", "An admin closed it.", "An admin opens it again."
    ),
    "account_new": Status(
        Tone.WAIT, "key", "Waits for a password", "It has none.", "The link is used."
    ),
    # Devices, Pods, nodes.
    "healthy": Status(Tone.OK, "ok", "Healthy", "The driver says so."),
    "unhealthy": Status(
        Tone.FAIL, "fail", "Unhealthy", "The driver says so.", "The driver says otherwise."
    ),
    "ready": Status(Tone.OK, "ok", "Ready"),
    "running": Status(Tone.OK, "ok", "Running"),
    "succeeded": Status(Tone.OK, "ok", "Ended well"),
    "tainted": Status(
        Tone.WAIT, "warn", "Closed to new work", "A taint keeps new Pods away; what runs stays."
    ),
    "idle": Status(Tone.OK, "ok", "Free", "Nobody holds it and nothing closes it."),
    "shared": Status(
        Tone.RUN, "share", "Shared", "Part of it is held.", "The last share is given back."
    ),
    "fragmented": Status(
        Tone.WAIT, "mig", "Fragmented", "Other parts of its hardware are held.", "They are free."
    ),
    "unavailable": Status(
        Tone.WAIT, "lock", "Unavailable", "Nobody holds it and it cannot be had.", "See its reason."
    ),
    # Slice pools.
    "complete": Status(Tone.OK, "ok", "Complete", "Every slice of it is there."),
    "incomplete": Status(
        Tone.WAIT, "warn", "Incomplete", "Slices are missing.", "The driver has published them all."
    ),
    "invalid": Status(
        Tone.FAIL, "fail", "Invalid", "The scheduler refuses it.", "The driver publishes it anew."
    ),
    # How far one may rely on a feature of the cluster.
    "stable": Status(Tone.OK, "ok", "Stable", "The release promises to keep it."),
    "beta": Status(Tone.RUN, "run", "Beta", "It is on and may still change."),
    "alpha": Status(Tone.WAIT, "drill", "Alpha", "It is on and may go away with any release."),
    "driver_specific": Status(
        Tone.HOLD,
        "device",
        "Driver-specific",
        "It is the driver's own; no release promises it.",
    ),
    "not_served": Status(Tone.NONE, "gone", "Not served", "This cluster does not have it."),
    "assumed": Status(
        Tone.NONE, "draft", "Assumed", "No API tells it.", "An admin says how it is set."
    ),
    # What needs somebody, and alarms.
    "look": Status(Tone.WAIT, "warn", "Needs a look", "Nothing breaks; look when you can."),
    "late": Status(Tone.WAIT, "warn", "Late", "Longer than 95 % of its kind."),
    "alarm": Status(Tone.FAIL, "warn", "Alarm"),
    "conflict": Status(Tone.FAIL, "conflict", "Conflict", "Two owners, or allocated twice."),
    "isolated": Status(
        Tone.HOLD,
        "hold",
        "Isolated",
        "Devices could not be got ready there, so new work is kept away.",
        "A trial Pod runs, Pods become ready there again, or somebody opens it.",
    ),
    "frozen": Status(
        Tone.HOLD, "freeze", "Frozen", "Somebody froze new work.", "The freeze ends or is lifted."
    ),
    # Which path serves devices.
    "plugin": Status(Tone.PLUGIN, "plugin", "plugin", "Devices come from a device plugin."),
    "dra": Status(Tone.RUN, "dra", "DRA", "Devices come by Dynamic Resource Allocation."),
    # Templates.
    "draft": Status(Tone.NONE, "draft", "Draft"),
    "in_review": Status(
        Tone.WAIT, "wait", "In review", "Its author asked.", "Somebody else decides."
    ),
    "approved": Status(Tone.OK, "ok", "Approved"),
    "observed": Status(
        Tone.HOLD, "info", "Seen in the cluster", "Somebody did it there, going round Berth."
    ),
    # Approvals (approved stands above).
    "open": Status(Tone.WAIT, "wait", "To decide", "Somebody asked.", "Enough people said yes."),
    "denied": Status(Tone.FAIL, "fail", "Sent back", "Somebody said no, and why."),
    "void": Status(Tone.NONE, "none", "Void", "What was asked for changed, or was withdrawn."),
    "retired": Status(Tone.NONE, "none", "Retired", "New requests use its successor."),
    # The cluster, as Berth sees it.
    "live": Status(Tone.OK, "ok", "Live"),
    "building": Status(
        Tone.RUN,
        "run",
        "On its way",
        "The cluster is being made.",
        "It answers for the first time.",
    ),
    "stale": Status(
        Tone.WAIT, "warn", "Stale", "No news for longer than the window.", "News come in again."
    ),
    "unreachable": Status(
        Tone.FAIL, "warn", "Unreachable", "The cluster does not answer.", "It answers."
    ),
    # The node ledger.
    "safe": Status(Tone.OK, "ok", "Safe", "Log, objects and Pod status agree."),
    "rebuilding": Status(
        Tone.HOLD,
        "hold",
        "Rebuilding",
        "A driver or its node is coming back.",
        "Its slices are complete and its claims are accounted for.",
    ),
    "unsafe": Status(
        Tone.FAIL,
        "warn",
        "Unsafe",
        "What is charged to it cannot be relied on.",
        "What is wrong is put right; the page names it.",
    ),
    "met": Status(Tone.OK, "ok", "Met"),
    "not_met": Status(Tone.WAIT, "warn", "Not met"),
    "diverges": Status(
        Tone.FAIL, "warn", "Diverges", "Log, objects and Pod status differ.", "They agree."
    ),
    # Neither good nor bad.
    "none": Status(Tone.NONE, "none", "None"),
    "unknown": UNKNOWN,
    # Notices, by the level that Django's messages give them.
    "success": Status(Tone.OK, "ok", "Done"),
    "info": Status(Tone.RUN, "info", "Note"),
    "warning": Status(Tone.WAIT, "warn", "Mind"),
    "error": Status(Tone.FAIL, "fail", "Refused"),
    # Alerts, by how soon somebody should look ("warning" stands above).
    "notice": Status(Tone.RUN, "info", "Notice", "Somebody should know.", "It is over."),
    "critical": Status(Tone.FAIL, "fail", "Critical", "Somebody should look now.", "It is over."),
    "retrying": Status(Tone.WAIT, "again", "Tried again", "It did not arrive."),
    # Grants (revoked and expired stand below).
    "offered": Status(
        Tone.WAIT, "grant", "Offered", "The giver said yes.", "An owner of the namespace answers."
    ),
    "accepted": Status(
        Tone.OK, "ok", "Accepted", "Both sides said yes.", "Its date, or one side ends it."
    ),
    "declined": Status(Tone.NONE, "x", "Declined", "The taker said no."),
    # Tenants and their namespaces.
    "active": Status(Tone.OK, "ok", "Active"),
    "closing": Status(
        Tone.HOLD,
        "hold",
        "Closing",
        "Nothing new can be asked for; what runs goes on.",
        "Its last Pod has ended and all is reclaimed, or it is cancelled.",
    ),
    "closed": Status(Tone.NONE, "none", "Closed", "All was reclaimed; the receipt says what."),
    "in_force": Status(Tone.OK, "ok", "In force", "The cluster has it as Berth means it."),
    "missing": Status(Tone.FAIL, "fail", "Missing", "The cluster has no such namespace."),
    "refused": Status(Tone.FAIL, "fail", "Refused", "The cluster refused what Berth wrote."),
    "waiting": Status(Tone.WAIT, "wait", "Waiting for the cluster"),
    "leaving": Status(Tone.RUN, "run", "Leaving", "Berth's names are being taken off."),
    # Tokens.
    "valid": Status(Tone.OK, "ok", "Valid"),
    "expired": Status(Tone.NONE, "none", "Expired"),
    "revoked": Status(Tone.NONE, "none", "Revoked"),
}


def status_of(state: str) -> Status:
    """The row for a stored value ("in use" and "IN_USE" are the same).

    A state that the table does not know is shown as unknown, with its own text, never hidden.
    """
    key = str(state).strip().lower().replace(" ", "_").replace("-", "_")
    found = STATUSES.get(key)
    if found is not None:
        return found
    return Status(UNKNOWN.tone, UNKNOWN.icon, str(state) or UNKNOWN.word, UNKNOWN.enters)


def shapes() -> frozenset[str]:
    """Every icon that a status word may need."""
    return frozenset(status.icon for status in STATUSES.values())
