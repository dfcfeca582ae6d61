"""The check before a template is published: would it surprise anybody? Pure.

It looks at what every set of answers makes (a bounded number of them), in the shape of every
supported release, over every device of a snapshot.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from devices.dra.allocate import forecast
from devices.dra.claims import read_claim_spec
from devices.dra.objects import devices_spec
from devices.dra.requests import Wish
from devices.dra.snapshot import Snapshot
from devices.dra.templates.answers import questions
from devices.dra.templates.build import EXAMPLE, Draft, build, claim_wish, render
from devices.dra.templates.combinations import MOST_KEPT, Reachable, reachable
from devices.dra.templates.content import Template, Value
from devices.dra.templates.findings import Finding, Report, Severity, sorted_once
from devices.dra.templates.hardware import of_hardware
from devices.dra.templates.releases import needs, of_expressions, of_gates, of_limits
from devices.dra.templates.words import summary
from devices.dra.wording import some_of

#: So many sets of answers are tried on an empty cluster: each is a search over all of its nodes.
MOST_FITTED: Final = 48
#: So many that never fit are named.
MOST_NAMED: Final = 3

Values = Mapping[str, Value]


def publish_check(template: Template, snapshot: Snapshot | None) -> Report:
    """Everything that could surprise somebody who asks with this template.

    Without a snapshot only what needs no cluster is looked at, and the report says so.
    """
    found = reachable(template)
    drafts = list(dict.fromkeys(build(template, values) for values in found.kept))
    gates = snapshot.gates if snapshot is not None else None
    wanted = list(needs(template, drafts, gates))
    findings = [
        *_of_questions(template, found),
        *of_expressions(template, gates),
        *of_limits(drafts),
        *of_gates(wanted),
    ]
    fits: tuple[str, ...] | None = None
    if snapshot is None:
        findings.append(
            Finding(
                "CLUSTER_NOT_SEEN",
                Severity.NOTE,
                "The cluster was not seen, so nothing is known of its devices.",
                "Check again when Berth has read the cluster.",
            )
        )
    else:
        findings += of_hardware(template, drafts, snapshot)
        if not any(one.severity is Severity.ERROR for one in findings):
            fits = _fitting(snapshot, template, drafts[0])
            findings += _of_fit(template, found.kept, snapshot, fits)
    return Report(
        sorted_once(findings),
        tuple(need for need, _ in wanted),
        len(found.kept),
        found.complete,
        fits,
    )


def examples(template: Template) -> list[tuple[Values, list[dict[str, object]]]]:
    """Sets of answers with the objects that they make, each object once: for dry runs."""
    made: dict[Draft, Values] = {}
    for values in reachable(template).kept:
        made.setdefault(build(template, values), values)
    return [(values, render(template, values)) for values in made.values()]


def _of_questions(template: Template, found: Reachable) -> Iterator[Finding]:
    numbers = {one.name: number for number, one in enumerate(template.parameters)}
    for values in found.kept:
        for question, value, _ in questions(template, values):
            if value is None and question.required:
                yield Finding(
                    "CHOICE_WITHOUT_OPTION",
                    Severity.ERROR,
                    f"With {_said(template, values)}, nothing can be answered to “"
                    f"{question.parameter.label}”.",
                    "Offer an option there, or ask it only where there is one.",
                    f"parameters[{numbers[question.name]}]",
                )
    if not found.complete:
        yield Finding(
            "MANY_COMBINATIONS",
            Severity.NOTE,
            f"There are more sets of answers than are looked at; {len(found.kept)} were, those "
            "with the fewest changes from the usual ones.",
            f"A template with fewer questions can be checked whole (up to {MOST_KEPT} sets).",
            "parameters",
        )


# --- does it fit ----------------------------------------------------------------------------------


def _of_fit(
    template: Template, kept: Sequence[Values], snapshot: Snapshot, fits: tuple[str, ...]
) -> Iterator[Finding]:
    empty = replace(snapshot, claims={}, templates={}, pods={}, memo={})
    tried = dict.fromkeys(build(template, values) for values in kept[:MOST_FITTED])
    never = [draft for draft in tried if not _fitting(empty, template, draft)]
    usual = next(iter(tried))
    if usual in never:
        yield Finding(
            "FITS_NEVER",
            Severity.ERROR,
            f"The usual answers ({summary(template, usual)}) fit no node, not even with nothing "
            "taken.",
            "Choose other defaults, or ask for less.",
        )
    elif not fits:
        yield Finding(
            "FITS_NOT_NOW",
            Severity.WARNING,
            f"The usual answers ({summary(template, usual)}) fit no node now; they would with "
            "nothing taken.",
            "Whoever asks waits; say so in the template's words, or choose other defaults.",
        )
    others = [summary(template, draft) for draft in never if draft != usual]
    if others:
        yield Finding(
            "FITS_NEVER",
            Severity.WARNING,
            "These fit no node, not even with nothing taken: "
            f"{some_of(others, MOST_NAMED, by='; ')}.",
            "Bound the count or the options by a condition, so that nobody asks in vain.",
            "parameters",
        )


def _fitting(snapshot: Snapshot, template: Template, draft: Draft) -> tuple[str, ...]:
    asked = claim_wish(template, draft, name=EXAMPLE, namespace=EXAMPLE, tenant=EXAMPLE)
    spec = read_claim_spec({"devices": devices_spec(asked)}, "spec", [])
    return forecast(snapshot, [Wish(f"{EXAMPLE}/{EXAMPLE}", spec)]).fitting


def _said(template: Template, values: Values) -> str:
    parameters = {one.name: one for one in template.parameters}
    said = [
        f"{parameters[name].label} {parameters[name].words(one)}" for name, one in values.items()
    ]
    return ", ".join(said) or "no other answer"
