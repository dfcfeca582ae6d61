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
    "pass": Status(Tone.OK, "ok", "Pass"),
    "fail": Status(Tone.FAIL, "fail", "Fail"),
    "inconclusive": Status(
        Tone.WAIT, "unknown", "Inconclusive", "Too few samples.", "A person decides."
    ),
    "paused": Status(Tone.WAIT, "paused", "Paused", "A gate stopped it.", "A person decides."),
    "trial": Status(Tone.NONE, "draft", "Trial", "It is measured and does not vote."),
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
    # What needs somebody, and alarms.
    "look": Status(Tone.WAIT, "warn", "Needs a look", "Nothing breaks; look when you can."),
    "late": Status(Tone.WAIT, "warn", "Late", "Longer than 95 % of its kind."),
    "alarm": Status(Tone.FAIL, "warn", "Alarm"),
    "conflict": Status(Tone.FAIL, "conflict", "Conflict", "Two owners, or allocated twice."),
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
    # Neither good nor bad.
    "none": Status(Tone.NONE, "none", "None"),
    "unknown": UNKNOWN,
    # Notices, by the level that Django's messages give them.
    "success": Status(Tone.OK, "ok", "Done"),
    "info": Status(Tone.RUN, "info", "Note"),
    "warning": Status(Tone.WAIT, "warn", "Mind"),
    "error": Status(Tone.FAIL, "fail", "Refused"),
    # Grants (revoked and expired stand below).
    "offered": Status(
        Tone.WAIT, "grant", "Offered", "The giver said yes.", "An owner of the namespace answers."
    ),
    "accepted": Status(
        Tone.OK, "ok", "Accepted", "Both sides said yes.", "Its date, or one side ends it."
    ),
    "declined": Status(Tone.NONE, "x", "Declined", "The taker said no."),
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
