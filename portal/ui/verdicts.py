"""What a page says first about a code: one sentence, whose job it is, and the next step.

The codes themselves are given by the rules and verbs of the floors above; here they only get the
words that a person would say. A code without a row is shown with its own text, as unknown.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Job(StrEnum):
    """Who must act. Every wait names one."""

    TENANT = "Your job"
    PLATFORM = "Platform team"
    NOBODY = "Nobody has to act"
    UNKNOWN = "Nobody knows whose job it is"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`sentence` stays under 90 characters; `step` is what that somebody does, or what happens."""

    sentence: str
    job: Job
    step: str = ""


VERDICTS: dict[str, Verdict] = {
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
    "CLAIM_NOT_GENERATED": Verdict(
        "Kubernetes has not made the Pod's claim yet.", Job.NOBODY, "It usually takes a second."
    ),
    "NOT_SCHEDULED_YET": Verdict(
        "The scheduler has not looked at the Pod yet.", Job.NOBODY, "It usually takes a second."
    ),
    "SCHEDULING_GATED": Verdict(
        "A scheduling gate keeps the Pod from being placed.",
        Job.TENANT,
        "Whoever put the gate on the Pod takes it off.",
    ),
    "NO_MATCHING_DEVICE_FREE": Verdict(
        "No node has all of these devices free now.",
        Job.NOBODY,
        "The scheduler tries again whenever a device is freed.",
    ),
    "CLASS_MISSING": Verdict(
        "Something that the Pod names does not exist in the cluster.",
        Job.PLATFORM,
        "The message below says what is missing.",
    ),
    "SELECTOR_FAILS": Verdict(
        "A selector of the template fails on the devices there are.",
        Job.PLATFORM,
        "The template needs a new version; releasing this one loses nothing.",
    ),
    "NODE_RESOURCES_SHORT": Verdict(
        "Devices are free, but no node has enough CPU or memory for the Pod.",
        Job.TENANT,
        "Ask for less in the Pod, or wait until other Pods end.",
    ),
    "CLAIM_ELSEWHERE": Verdict(
        "The devices are on a node where the Pod cannot go.",
        Job.TENANT,
        "Let the Pod run there, or release and ask again.",
    ),
    "CLAIM_IN_USE": Verdict(
        "Other Pods use it up to its limit.", Job.TENANT, "Wait until one ends, or ask for another."
    ),
    "CLAIM_BEING_DELETED": Verdict(
        "The claim is being deleted, so the Pod cannot have it.", Job.TENANT, "Ask again."
    ),
    "UNKNOWN_MESSAGE": Verdict(
        "The scheduler says something that Berth does not know.",
        Job.UNKNOWN,
        "The message below is all there is.",
    ),
    "PREPARING": Verdict("The devices are chosen; the node is getting them ready.", Job.NOBODY),
    "PREPARE_FAILED": Verdict(
        "The node cannot get the devices ready.",
        Job.PLATFORM,
        "The driver tries again by itself; the message below says what it met.",
    ),
    "NOT_RESERVED": Verdict(
        "The devices are held, and no Pod uses them.",
        Job.TENANT,
        "Start a Pod, or release them for others.",
    ),
    "RELEASING": Verdict("On its way out of the cluster.", Job.NOBODY),
    "IN_USE_UNTIL_PODS_END": Verdict(
        "It goes when its Pods have ended. Nothing is stopped.",
        Job.TENANT,
        "End the Pods when you no longer need them.",
    ),
    "DELETED_OUTSIDE": Verdict(
        "Released: somebody deleted it in the cluster, not here.",
        Job.TENANT,
        "Ask again if you still need it.",
    ),
    "RIGHTS_MISSING": Verdict(
        "Failed: Berth lacks a right in the cluster.",
        Job.PLATFORM,
        "The message below names the right.",
    ),
    "REFUSED_BY_CLUSTER": Verdict(
        "Failed: the cluster refused it.",
        Job.TENANT,
        "Read the cluster's message, then release this and ask for something else.",
    ),
    "FIELD_OWNED_BY_OTHERS": Verdict(
        "Failed: somebody else holds an object of that name.",
        Job.PLATFORM,
        "The message below names who.",
    ),
    "QUOTA_EXCEEDED": Verdict(
        "Failed: the namespace's quota in the cluster is used up.",
        Job.TENANT,
        "Release something in that namespace, or ask for a higher quota.",
    ),
}

#: For states that need no reason.
BY_STATE: dict[str, Verdict] = {
    "requested": VERDICTS["SENDING"],
    "held": Verdict("Held: nothing is lost, it resumes by itself.", Job.NOBODY),
    "in use": Verdict("Running.", Job.NOBODY),
    "released": Verdict("Released. Nothing of it is left in the cluster.", Job.NOBODY),
}


def verdict_on(code: str, state: str = "") -> Verdict:
    """The words for a code, else for the state alone, else an honest unknown."""
    return (
        VERDICTS.get(code)
        or BY_STATE.get(state if not code else "")
        or Verdict("Berth has no words for this yet.", Job.UNKNOWN, "The message is all there is.")
    )
