"""What a page says first about an ask: one sentence, whose job it is, and the next step. Pure.

Reasons that the cluster gives have their words in `devices.dra.codes`; here are the reasons that
Berth itself gives. A code that neither knows is shown as unknown, with its own text.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from devices.dra.codes import CODES, Class, Who


class Job(StrEnum):
    """Who must act, as the page says it. Every wait names one."""

    TENANT = "Your job"
    PLATFORM = "Platform team"
    NOBODY = "Nobody has to act"
    UNKNOWN = "Nobody knows whose job it is"


JOBS = {Who.TENANT: Job.TENANT, Who.PLATFORM: Job.PLATFORM, Who.NOBODY: Job.NOBODY}


@dataclass(frozen=True, slots=True)
class Verdict:
    """`step` is what that somebody does, or what happens by itself. `wrong` says that it is no
    usual wait: the message of the cluster belongs on the page.
    """

    sentence: str
    job: Job
    step: str = ""
    wrong: bool = False


OWN: dict[str, Verdict] = {
    "SENDING": Verdict("Asked for. Berth is sending it to the cluster.", Job.NOBODY),
    "CLUSTER_UNREACHABLE": Verdict(
        "Held: the cluster does not answer. Nothing is lost.",
        Job.NOBODY,
        "It is sent in the order of asking once the cluster answers.",
    ),
    "WAITING_FOR_POD": Verdict(
        "Ready for your Pod. It gets its devices when a Pod uses it.",
        Job.TENANT,
        "Paste one of the manifests below.",
    ),
    "RELEASING": Verdict("On its way out of the cluster.", Job.NOBODY),
    "IN_USE_UNTIL_PODS_END": Verdict(
        "It goes when its Pods have ended. Nothing is stopped.",
        Job.TENANT,
        "End the Pods when you no longer need them.",
    ),
    "EXPIRED": Verdict(
        "Released: its time was over. Nothing of it is left in the cluster.",
        Job.NOBODY,
        "Ask again like this one if you still need it.",
    ),
    "DELETED_OUTSIDE": Verdict(
        "Released: somebody deleted it in the cluster, not here.",
        Job.TENANT,
        "Ask again if you still need it.",
    ),
    "RIGHTS_MISSING": Verdict(
        "Held: Berth lacks a right in the cluster.",
        Job.PLATFORM,
        "The message below names the right; it is sent as soon as it is given.",
    ),
    "FROZEN": Verdict(
        "Held: new work is frozen for now. What runs goes on.",
        Job.NOBODY,
        "It is sent by itself when the freeze ends, in the order of asking.",
    ),
    "STALE_INVENTORY": Verdict(
        "Held: nobody can be sure which of its devices are there. Nothing is lost.",
        Job.PLATFORM,
        "It is sent by itself, in the order of asking, once they are heard of again.",
    ),
    "GENERATION_WENT_BACK": Verdict(
        "Held: a driver counts from an older state of its devices than it did before.",
        Job.PLATFORM,
        "Restart the driver on its node; it is sent by itself once it publishes anew.",
        wrong=True,
    ),
    "TENANT_CLOSING": Verdict(
        "Held: its tenant is being closed, so nothing new is sent.",
        Job.NOBODY,
        "It goes on by itself where the closing is cancelled, else it is released with the rest.",
    ),
    "NAMESPACE_MISSING": Verdict(
        "Held: its namespace is not in the cluster.",
        Job.PLATFORM,
        "It is sent by itself once the namespace is there; the message below says more.",
        wrong=True,
    ),
    "NAMESPACE_OF_ANOTHER": Verdict(
        "Held: the cluster says that its namespace is another tenant's.",
        Job.PLATFORM,
        "Whoever labelled the namespace decides whose it is.",
        wrong=True,
    ),
    "REFUSED_BY_CLUSTER": Verdict(
        "Failed: the cluster refused it.",
        Job.TENANT,
        "Read the cluster's message, then release this and ask for something else.",
        wrong=True,
    ),
    "FIELD_OWNED_BY_OTHERS": Verdict(
        "Failed: somebody else holds an object of that name.",
        Job.PLATFORM,
        "The message below names who.",
        wrong=True,
    ),
}

BY_STATE: dict[str, Verdict] = {
    "requested": OWN["SENDING"],
    "held": Verdict("Held: nothing is lost, it resumes by itself.", Job.NOBODY),
    "in use": Verdict("Running.", Job.NOBODY),
    "released": Verdict("Released. Nothing of it is left in the cluster.", Job.NOBODY),
}


def verdict(code: str, state: str, lasted: timedelta = timedelta()) -> Verdict:
    """The words for an ask's code, else for its state alone, else an honest unknown.

    What lasts longer than its code's patience is the platform's job, whoever's it was before.
    """
    if code in OWN:
        return OWN[code]
    known = CODES.get(code)
    if known is None:
        return BY_STATE.get("" if code else state) or Verdict(
            "Berth has no words for this yet.", Job.UNKNOWN, "The message is all there is.", True
        )
    overdue = known.patience is not None and lasted > known.patience
    usual = known.class_ in {Class.RETRYABLE, Class.INFORMATION}
    return Verdict(
        known.words,
        Job.PLATFORM if overdue else JOBS[known.who],
        known.next_step,
        wrong=overdue or not usual,
    )
