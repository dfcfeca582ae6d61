"""A pasted manifest → the same with claims, and what is to be said about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from collections.abc import Mapping as Map
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from devices.translation.asks import Target, asked_names, named_anywhere
from devices.translation.behaviour import said
from devices.translation.diff import Line, lines_of
from devices.translation.edits import Edit, Manner, Pen, Unsure, applied, block_text
from devices.translation.findings import Finding, Kind
from devices.translation.plan import Existing, PodPlan, carry_out, plan_of, write
from devices.translation.tree import Document, Items, Mapping, Node, documents, value_of
from devices.translation.workloads import is_list, operator_of, pod_at

#: Characters; no cluster takes an object of that size.
LONGEST: Final = 1_000_000
_BOM: Final = "\ufeff"


class TooLong(ValueError):
    """The text is longer than `LONGEST`."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One workload before and after, as objects, and the templates that come before it.

    ``way`` leads from either to its Pod template (empty: it is the Pod).
    """

    about: str
    before: dict[str, Any]
    after: dict[str, Any]
    templates: tuple[dict[str, Any], ...]
    way: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Translation:
    """The new text, what changed line by line, what is said, and the objects for a proof."""

    text: str
    lines: tuple[Line, ...]
    findings: tuple[Finding, ...]
    pairs: tuple[Pair, ...]
    documents: int

    @property
    def changed(self) -> bool:
        return bool(self.pairs)

    def of(self, kind: Kind) -> tuple[Finding, ...]:
        return tuple(finding for finding in self.findings if finding.kind is kind)


@dataclass(slots=True)
class _Work:
    """What one translation has come to so far."""

    targets: Map[str, Target]
    existing: Existing | None
    taken: set[str] = field(default_factory=set)
    edits: list[Edit] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)


@dataclass(slots=True)
class _Planned:
    obj: Mapping
    place: tuple[str | int, ...]
    way: tuple[str, ...]
    plan: PodPlan


def translate(
    text: str, targets: Sequence[Target], *, existing: Existing | None = None
) -> Translation:
    """Puts claims in the place of every extended resource that ``targets`` names.

    Raises `TooLong`; everything else that cannot be done is a finding, and its document is left.
    """
    if len(text) > LONGEST:
        raise TooLong(
            f"This is {len(text):,} characters long; at most {LONGEST:,} are read at a time."
        )
    head = _BOM if text.startswith(_BOM) else ""
    body = text.removeprefix(_BOM)
    newline = "\r\n" if "\r\n" in body else "\n"
    added = "" if body.endswith("\n") else newline
    work = _Work({target.resource: target for target in targets}, existing)
    found = list(documents(body + added))
    work.taken |= {name for each in found for name in _template_names(each.root)}
    for document in found:
        work.edits += _document(body + added, document, newline, work)
    result = applied(body + added, work.edits, 0, len(body + added))
    work.findings += _around(found, work)
    return Translation(
        head + (result.removesuffix(added) if added else result),
        tuple(lines_of(body + added, work.edits)),
        tuple(work.findings),
        tuple(work.pairs),
        len(found),
    )


def _document(text: str, document: Document, newline: str, work: _Work) -> list[Edit]:
    """The changes to one document; none where it stays as it is."""
    if document.problem is not None:
        problem = document.problem
        work.findings.append(_left(document, problem.code, problem.line, "", problem.words))
    if not isinstance(document.root, Mapping):
        return []
    before = document.text(text)
    planned: list[_Planned] = []
    taken = set(work.taken)
    try:
        for obj, place in _objects(document.root):
            planned += _planned(obj, place, document, work)
        if not planned:
            return []
        pen = Pen(text, _manner(planned, newline))
        for one in planned:
            write(one.plan, pen)
        after = applied(text, pen.edits, document.start, document.end)
        _prove(before, after, planned, document)
    except Unsure as unsure:
        work.taken = taken
        about = next((_about(one.obj) for one in planned), _about(document.root))
        work.findings.append(_left(document, unsure.code, unsure.line, about, unsure.words))
        return []
    value = value_of(before)
    for one in planned:
        work.findings += _said(document, one, work.existing)
        work.pairs.append(_pair(one, value))
    new = _templates(document, planned, newline)
    return [*([Edit(document.start, document.start, new)] if new else []), *pen.edits]


def _objects(root: Mapping) -> Iterator[tuple[Mapping, tuple[str | int, ...]]]:
    """The object of a document, or those of a list, each with its place."""
    if not is_list(root):
        yield root, ()
        return
    items = root.get("items")
    for index, item in enumerate(items.items if isinstance(items, Items) else ()):
        if isinstance(item, Mapping):
            for obj, place in _objects(item):
                yield obj, ("items", index, *place)


def _planned(
    obj: Mapping, place: tuple[str | int, ...], document: Document, work: _Work
) -> list[_Planned]:
    way = pod_at(obj)
    asked = asked_names(obj)
    if way is None:
        if operator_of(obj):
            asked = asked or named_anywhere(obj, work.targets)
        if asked:
            work.findings.append(_unsupported(obj, document, asked))
        return []
    for name, line in asked.items():
        if name not in work.targets:
            words = f"No device class is known that stands for {name}: ask the platform team."
            work.findings.append(_left(document, "NO_CLASS", line, _about(obj), words))
    spec = _at(obj, (*way, "spec"))
    if spec is None:
        return []
    metadata = obj.get("metadata")
    name = metadata.text("name") if isinstance(metadata, Mapping) else ""
    if not name and isinstance(metadata, Mapping):
        name = metadata.text("generateName").rstrip("-.")
    plan = plan_of(
        spec,
        (*place, *way, "spec"),
        work.targets,
        base=name or obj.text("kind"),
        namespace=metadata.text("namespace") if isinstance(metadata, Mapping) else "",
        taken=work.taken,
        existing=work.existing,
    )
    return [_Planned(obj, place, way, plan)] if plan is not None else []


def _at(obj: Mapping, way: Sequence[str]) -> Mapping | None:
    """The mapping at the end of a way, none of whose steps another place means too."""
    found: Node | None = obj
    steps = [obj]
    for step in way:
        found = found.get(step) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping):
            return None
        steps.append(found)
    for each in steps:
        if each.shared and asked_names(each):
            raise Unsure(
                "ANCHOR",
                each.line,
                "Another place of this document means this part too (&… and *…). Write it out "
                "first.",
            )
    return steps[-1]


def _manner(planned: Sequence[_Planned], newline: str) -> Manner:
    """How the document is written, as its lists of containers show."""
    for one in planned:
        for name in ("containers", "initContainers"):
            items = one.plan.spec.get(name)
            if isinstance(items, Items) and not items.flow:
                key = next(k for k, v in one.plan.spec.pairs if v is items)
                return Manner(newline, max(items.column - key.column, 0))
    return Manner(newline, 0, json=planned[0].obj.flow)


def _prove(before: str, after: str, planned: Sequence[_Planned], document: Document) -> None:
    """Raises `Unsure` unless the new text says what the old one says, but for the plan."""
    wanted = deepcopy(value_of(before))
    for one in planned:
        carry_out(one.plan, wanted)
    try:
        found = value_of(after)
    except (yaml.YAMLError, ValueError, RecursionError):
        found = None
    if found != wanted:
        raise Unsure(
            "NOT_PROVED",
            document.line,
            "Written anew, this would say something else than is meant. Write the containers as "
            "plain blocks first.",
        )


def _templates(document: Document, planned: Sequence[_Planned], newline: str) -> str:
    """The new templates as documents that come before: Pods look for them from the first moment."""
    dash = _manner(planned, newline).dash
    texts = [
        block_text(template, dash).replace("\n", newline)
        for one in planned
        for template in one.plan.templates
    ]
    mark = f"---{newline}"
    if document.opened:
        return "".join(f"{mark}{text}" for text in texts)
    return "".join(f"{text}{mark}" for text in texts)


def _pair(one: _Planned, document: Any) -> Pair:
    after = deepcopy(document)
    carry_out(one.plan, after)
    before = document
    for step in one.place:
        before, after = before[step], after[step]
    return Pair(_about(one.obj), before, after, one.plan.templates, one.way)


# --- what is said ---------------------------------------------------------------------------------


def _said(document: Document, one: _Planned, existing: Existing | None) -> Iterator[Finding]:
    pod = _at(one.obj, one.way) or one.obj
    for each in said(one.obj, pod, one.plan, existing):
        yield Finding(each.code, each.kind, document.number, each.line, _about(one.obj), each.words)


def _left(document: Document, code: str, line: int, about: str, words: str) -> Finding:
    return Finding(code, Kind.LEFT, document.number, line, about, words)


def _unsupported(obj: Mapping, document: Document, asked: Map[str, int]) -> Finding:
    kind, version, owner = obj.text("kind"), obj.text("apiVersion"), operator_of(obj)
    name, line = next(iter(asked.items()))
    whose = f" of {owner}" if owner else ""
    if kind in ("ResourceQuota", "LimitRange"):
        words = f"This {kind} counts {name}; what Pods ask by claim is counted otherwise."
        return Finding("COUNTS_OTHERWISE", Kind.CHECK, document.number, line, _about(obj), words)
    words = (
        f"{kind or 'This'}{whose} ({version or 'no apiVersion'}) asks for {name}, and makes its "
        "Pods in its own way: put resourceClaims into its Pod template yourself."
    )
    return _left(document, "UNSUPPORTED_KIND", line, _about(obj), words)


def _around(found: Sequence[Document], work: _Work) -> Iterator[Finding]:
    """Other objects of the paste that have to do with what was translated."""
    changed = {pair.about for pair in work.pairs}
    for document in found:
        for obj, _ in _objects(document.root) if isinstance(document.root, Mapping) else ():
            kind = obj.text("kind")
            if kind == "HorizontalPodAutoscaler":
                spec = obj.get("spec")
                scaled = spec.get("scaleTargetRef") if isinstance(spec, Mapping) else None
                if isinstance(scaled, Mapping):
                    about = f"{scaled.text('kind')} {scaled.text('name')}"
                    if about in changed:
                        words = f"Each Pod that it adds to {about} needs a claim, and so a device."
                        yield Finding(
                            "SCALES", Kind.CHECK, document.number, obj.line, _about(obj), words
                        )
            elif kind == "ResourceQuota":
                yield from _quota(obj, document, work)


def _quota(obj: Mapping, document: Document, work: _Work) -> Iterator[Finding]:
    spec = obj.get("spec")
    hard = spec.get("hard") if isinstance(spec, Mapping) else None
    for name, target in work.targets.items():
        if isinstance(hard, Mapping) and hard.get(f"requests.{name}") is not None:
            words = (
                f"It counts requests.{name}; claims are counted under "
                f"{target.device_class}.deviceclass.resource.k8s.io/devices."
            )
            yield Finding(
                "COUNTS_OTHERWISE", Kind.CHECK, document.number, hard.line, _about(obj), words
            )


def _template_names(root: Node | None) -> Iterator[str]:
    """Names of claim templates that the paste has already."""
    for obj, _ in _objects(root) if isinstance(root, Mapping) else ():
        metadata = obj.get("metadata")
        if obj.text("kind") == "ResourceClaimTemplate" and isinstance(metadata, Mapping):
            yield metadata.text("name")


def _about(obj: Mapping) -> str:
    metadata = obj.get("metadata")
    name = ""
    if isinstance(metadata, Mapping):
        name = metadata.text("name") or metadata.text("generateName")
    return " ".join(filter(None, (obj.text("kind"), name)))
