"""What becomes of asks whose template went on without them: they keep running, and are told so.

For the pages of those who hold an older or a retired version, and for whoever asks for one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from devices.authoring.drafts import side_of
from devices.authoring.shown import Viewer, viewer
from devices.dra.lifecycle import ENDED
from devices.dra.versiondiff import changes_in_words
from devices.models import Claim, TemplateVersion
from tenants.models import Tenant

State = TemplateVersion.State
#: Successors of successors; longer chains are nobody's plan.
LONGEST_CHAIN: Final = 20


@dataclass(frozen=True, slots=True)
class Succession:
    """What a holder is told. `version` is what to ask for instead, where there is something that
    they may see; `retired` says that the template itself is offered no more.
    """

    sentence: str
    retired: bool
    version: TemplateVersion | None = None
    words: str = ""
    """In its author's words: why it was retired, or what is new."""

    @property
    def short(self) -> str:
        """For a row of a list: "retired, now GPU", "version 3 is offered now"."""
        if not self.retired:
            return f"version {self.version.number} is offered now" if self.version else ""
        return f"retired, now {self.version.title}" if self.version else "retired"


class Lineage:
    """Every template's present and its successors, as one tenant may know them; six queries."""

    def __init__(self, tenant: Tenant, now: datetime) -> None:
        rows = (
            TemplateVersion.objects.filter(state__in=[State.APPROVED, State.RETIRED])
            .select_related("template", "successor")
            .prefetch_related("template__tenants")
            .order_by("template_id", "-number")
            .defer("text")
        )
        self._viewer: Viewer = viewer(tenant, now)
        self._present: dict[int, TemplateVersion] = {}
        self._last: dict[int, TemplateVersion] = {}
        for row in rows:
            if row.state == State.APPROVED:
                self._present[row.template_id] = row
            self._last.setdefault(row.template_id, row)

    def of(self, version: TemplateVersion) -> Succession | None:
        """What a holder of this version is told; None where it is what is offered now."""
        present = self._present.get(version.template_id)
        if present is not None and present.pk == version.pk:
            return None
        if present is not None:
            return Succession(
                f"Made from version {version.number}; version {present.number} is offered now. "
                "It keeps running as it was made.",
                retired=False,
                version=self._seen(present),
                words=present.note,
            )
        last = self._last.get(version.template_id, version)
        after = self._after(last)
        then = (
            f"for new ones ask for {after.title}."
            if after is not None
            else "nothing takes its place."
            if last.successor is None
            else "ask the platform team what to take instead."
        )
        return Succession(
            f"This claim keeps running as it was made; {then}",
            retired=True,
            version=after,
            words=last.retired_words,
        )

    def _after(self, version: TemplateVersion) -> TemplateVersion | None:
        """What is offered in its place, as far down the line as it takes."""
        for _ in range(LONGEST_CHAIN):
            if version.successor_id is None:
                return None
            present = self._present.get(version.successor_id)
            if present is not None:
                return self._seen(present)
            following = self._last.get(version.successor_id)
            if following is None:
                return None
            version = following
        return None

    def _seen(self, version: TemplateVersion) -> TemplateVersion | None:
        return version if self._viewer.sees(version) else None


def successions(claims: Iterable[Claim], tenant: Tenant, now: datetime) -> dict[int, Succession]:
    """By claim (primary key): what its holder is told, for those that are still held."""
    lineage = Lineage(tenant, now)
    told = {claim.pk: lineage.of(claim.version) for claim in claims if claim.state not in ENDED}
    return {pk: one for pk, one in told.items() if one is not None}


def changed(
    before: TemplateVersion, after: TemplateVersion, values: dict[str, object]
) -> list[str]:
    """What differs for one who gave these answers: the author's note first, then sentences."""
    said = [after.note] if after.note and after.number > before.number else []
    return [*said, *changes_in_words(side_of(before), side_of(after), values)]


def gone(slug: str, tenant: Tenant, now: datetime) -> tuple[TemplateVersion, Succession] | None:
    """The last version of a template that is offered no more, and what holders are told; None for
    what was never offered, or not to this tenant.
    """
    rows = TemplateVersion.objects.filter(template__slug=slug, state=State.RETIRED)
    last = (
        rows.select_related("template", "successor")
        .prefetch_related("template__tenants")
        .order_by("-number")
        .first()
    )
    lineage = Lineage(tenant, now)
    if last is None or lineage._seen(last) is None:
        return None
    told = lineage.of(last)
    return (last, told) if told is not None and told.retired else None
