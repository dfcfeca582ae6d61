"""Bringing claims to what documents say: what is so already is left alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from berthctl.manifests import Step, Wanted, key, step
from berthctl.outcomes import DONE, PERMANENT, Failure
from berthctl.service import Service

Result = dict[str, Any]


def apply_all(
    service: Service, wanted: Sequence[Wanted], *, dry_run: bool, replace: bool
) -> tuple[list[Result], int]:
    """What was done about each, and the exit code: that of the first that could not be done."""
    results, code = [], DONE
    for one in wanted:
        try:
            results.append(_applied(service, one, dry_run=dry_run, replace=replace))
        except Failure as failure:
            code = code or failure.exit_code
            said = " ".join([failure.words, *failure.lines()[1:]])
            results.append(_result(one, "refused", said, body=failure.body))
    return results, code


def _applied(service: Service, wanted: Wanted, *, dry_run: bool, replace: bool) -> Result:
    rows = list(
        service.every("claims", state="all", q=wanted.name, namespace=wanted.namespace)
    )  # fmt: skip
    named = [one for one in rows if one["name"] == wanted.name]
    present = [one for one in named if one["released_at"] is None]
    if len(present) > 1:
        ids = ", ".join(one["id"] for one in present)
        raise Failure(f"{len(present)} open claims have this name: {ids}.", "Release all but one.")
    here = present[0] if present else None
    would = "would be " if dry_run else ""
    match step(wanted, here):
        case Step.NOTHING:
            assert here is not None
            return _result(wanted, "unchanged", public_id=here["id"])
        case Step.NOTE:
            assert here is not None
            body = {"note": wanted.ask["note"]}
            service.act("PUT", f"claims/{here['id']}/note", body, dry_run=dry_run)
            return _result(wanted, f"{would}changed", "(note)", public_id=here["id"])
        case Step.REPLACE if not replace:
            raise Failure(
                "An open claim has this name and other answers, and answers never change.",
                "Give it another name, or let it be released and asked for anew with --replace.",
                exit_code=PERMANENT,
            )
        case Step.REPLACE:
            assert here is not None
            service.act("POST", f"claims/{here['id']}/release", dry_run=dry_run)
    before = [one["id"] for one in named]
    made = service.act("POST", "claims", wanted.ask, key=key(wanted, before), dry_run=dry_run).body
    did = "replaced" if here else "asked for"
    return _result(wanted, f"{would}{did}", public_id="" if dry_run else made["id"])


def _result(
    wanted: Wanted,
    did: str,
    message: str = "",
    *,
    public_id: str = "",
    body: dict[str, Any] | None = None,
) -> Result:
    found = {"claim": wanted.words, "id": public_id, "did": did, "message": message}
    return {**found, "problem": body} if body else found
