"""The list of all templates, as those who write them see it."""

from __future__ import annotations

from dataclasses import dataclass

from devices.authoring.holders import Held, holders_by_template
from devices.authoring.reviews import Standing, standings
from devices.models import ClaimTemplate, TemplateVersion
from tenants.people import names_of


@dataclass(frozen=True, slots=True)
class Row:
    """A template in the list: what is offered, what is being written, who holds it."""

    template: ClaimTemplate
    offered: TemplateVersion | None
    newest: TemplateVersion
    standing: Standing
    held: Held
    changed_by: str

    @property
    def versions(self) -> int:
        return self.newest.number


def rows() -> list[Row]:
    """Every template with what its list shows; a constant number of queries."""
    found = list(ClaimTemplate.objects.prefetch_related("tenants"))
    versions: dict[int, list[TemplateVersion]] = {}
    every = TemplateVersion.objects.defer("text", "content").order_by("template_id", "-number")
    for version in every:
        versions.setdefault(version.template_id, []).append(version)
    newest = [versions[one.pk][0] for one in found if one.pk in versions]
    states, held = standings(newest), holders_by_template()
    names = names_of(one.changed_by for one in newest)
    return [
        Row(
            template=one,
            offered=next((v for v in versions[one.pk] if v.state == "approved"), None),
            newest=versions[one.pk][0],
            standing=states[versions[one.pk][0].pk],
            held=held.get(one.pk, Held()),
            changed_by=names[versions[one.pk][0].changed_by],
        )
        for one in found
        if one.pk in versions
    ]
