"""Limits beside the form of an ask: what it would take of them, and answers that they allow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.utils import timezone

from devices.asks.question_form import PARAMETER
from devices.dra.objects import ClaimWish
from devices.dra.templates import (
    Choice,
    Count,
    Question,
    Template,
    Value,
    build,
    claim_wish,
    questions,
    settle,
)
from devices.tenancy.limit_rows import CostRow, cost_rows
from devices.tenancy.spending import AmountNeeded, budget_of, class_names, cost_of, words_of
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


def within_limits(
    access: Access, template: Template, given: Mapping[str, Any]
) -> tuple[dict[str, Value], dict[str, str]]:
    """The answer to begin with where the usual one is over the tenant's limits, and a sentence
    about it, by parameter; both empty where it is not, or where no single other answer would do.

    Answers of a link or of an earlier ask (`given`) are taken at their word. One budget is read,
    whatever is tried.
    """
    tenant = access.tenant.slug
    if any(name.startswith(PARAMETER) for name in given):
        return {}, {}
    budget = budget_of(access.tenant, timezone.now())
    first = access.tenant.namespaces.values_list("name", flat=True).first() or "…"
    namespace = given.get("namespace") or first

    def is_over(values: Mapping[str, Value]) -> bool:
        wish = claim_wish(
            template, build(template, values),
            public_id="…", tenant=tenant, namespace=namespace, name="…", request_id="…",
        )  # fmt: skip
        try:
            asked = cost_of(wish, 1, budget.limits)
        except AmountNeeded:
            return False
        return any(budget.refusals(asked, namespace))

    if not is_over(settle(template, {}, tenant=tenant)):
        return {}, {}
    found = list(questions(template, {}, tenant=tenant))
    found.sort(key=lambda one: not isinstance(one[0].parameter, Count))  # fewer before another kind
    for question, usual, _ in found:
        for value, said in _others(question, usual):
            if not is_over(settle(template, {question.name: value}, tenant=tenant)):
                return {question.name: value}, {question.name: said}
    return {}, {}


def _others(question: Question, usual: Value | None) -> Iterable[tuple[Value, str]]:
    """Other answers than the usual one, the nearest first, with what to say of them."""
    match question.parameter:
        case Count():
            assert isinstance(usual, int) and isinstance(question.minimum, int)
            for number in range(usual - 1, question.minimum - 1, -1):
                yield number, f"Usually {usual}; your limits leave room for {number}."
        case Choice():
            labels = {one.value: one.label for one in question.options}
            for one in question.options:
                if one.value != usual:
                    was = labels.get(str(usual), usual)
                    yield one.value, f"Usually {was}; your limits stand against it now."
