"""What an ask would take of the tenant's limits, beside its form: quota in the field."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from django.utils import timezone

from devices.dra.objects import ClaimWish
from devices.limit_rows import CostRow, cost_rows
from devices.spending import AmountNeeded, budget_of, class_names, cost_of, words_of
from tenants.access import Access
from tenants.grants import usable_by_id
from tenants.limits import CLAIMS, ZERO, devices_of
from tenants.sums import used_of


@dataclass(frozen=True, slots=True)
class Costs:
    """Rows for the limits touched, and a sentence for what a grant pays or what is missing."""

    rows: tuple[CostRow, ...]
    said: str = ""
    code: str = ""

    @property
    def refused(self) -> bool:
        return bool(self.code) or any(row.code for row in self.rows)


def costs_of(access: Access, wish: ClaimWish, at_once: int, grant: str) -> Costs:
    """A constant number of queries; advice only, the verb counts again under the tenant's lock."""
    now = timezone.now()
    budget, names = budget_of(access.tenant, now), class_names()
    try:
        asked = cost_of(wish, at_once, budget.limits)
    except AmountNeeded as needed:
        return Costs((), needed.message, needed.code)
    lender = usable_by_id(access.tenant, grant, now) if grant else None
    if lender is None:
        return Costs(tuple(cost_rows(budget, asked, wish.namespace, names)))
    what = devices_of(lender.device_class)
    wanted = asked.get(what, ZERO)
    left = Decimal(lender.count) - used_of([lender.pk]).get(lender.pk, ZERO)
    code = "GRANT_USED_UP" if wanted > left else ""
    said = (
        f"{int(wanted)} × {words_of(what, names)} by the grant of {lender.giver.name}: "
        f"{int(left)} of {lender.count} are left."
    )
    if lender.giver_pays:
        asked = {
            one: amount
            for one, amount in asked.items()
            if one == CLAIMS or one.device_class != lender.device_class
        }
    return Costs(tuple(cost_rows(budget, asked, wish.namespace, names)), said, code)
