"""Approvals: the inbox, one of them with its decision, and lending one's right for a while."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from portal.approvals.asks import withdraw
from portal.approvals.decisions import decide
from portal.approvals.delegations import LONGEST, delegate, take_back
from portal.approvals.lists import similar, visible_to, waiting_for
from portal.approvals.models import Approval, Delegation
from portal.approvals.rules import Decider, Line, NoSeat, State, Verdict, seat
from portal.errors import Invalid
from portal.request_ids import request_id_of
from portal.ui.forms import blame
from tenants.access import decider_of
from tenants.models import User
from tenants.people import names_of

PAGE_SIZE = 50
TABS = {"waiting": "To decide", "mine": "My requests", "ended": "Decided", "lent": "While away"}


@dataclass(frozen=True, slots=True)
class DiffRow:
    """A row of the diff as it is drawn; `kind` is hunk, add, del or empty for what stays."""

    kind: str
    sign: str
    text: str
    before: int | None = None
    after: int | None = None


class LoanForm(forms.Form):
    """To whom one lends the right to decide, and for how long."""

    borrower = forms.CharField(
        label="To", max_length=150, help_text="Their user name. They decide in your place."
    )
    days = forms.IntegerField(
        label="For how many days", min_value=1, max_value=LONGEST.days, initial=7
    )


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def approvals(request: HttpRequest) -> HttpResponse:
    """The lists, by `?tab=`; a POST lends one's right to decide."""
    user = _user(request)
    now = timezone.now()
    form = LoanForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        borrower = User.objects.filter(username=form.cleaned_data["borrower"]).first()
        try:
            if borrower is None:
                raise Invalid("Nothing was lent.", fields={"borrower": "Nobody is called that."})
            delegate(
                lender=user.person,
                borrower=borrower.person,
                starts_at=now,
                ends_at=now + timedelta(days=form.cleaned_data["days"]),
                request_id=request_id_of(request),
                now=now,
            )
        except Invalid as refused:
            blame(form, refused.fields)
        else:
            messages.success(request, f"{borrower.words} may decide in your place.")
            return redirect(f"{request.path}?tab=lent")
    tab = "lent" if request.method == "POST" else request.GET.get("tab", "waiting")
    tab = tab if tab in TABS else "waiting"
    context = {**_inbox(decider_of(user, now), tab, request.GET.get("page")), "form": form}
    context |= {"tab": tab, "tabs": TABS, "now": now}
    status = 422 if request.method == "POST" else 200
    return render(request, "tenants/approvals.html", context, status=status)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def approval(request: HttpRequest, number: str) -> HttpResponse:
    """One approval: what it does, what changes, who said what; a POST decides."""
    user, now = _user(request), timezone.now()
    decider = decider_of(user, now)
    row = find(decider, number)
    wrong: dict[str, str] = {}
    comment = request.POST.get("comment", "")
    verdict = request.POST.get("verdict", "")
    if request.method == "POST":
        try:
            if verdict not in list(Verdict):
                raise Invalid("Nothing was decided.", fields={"comment": "Approve or send back."})
            decide(
                approval_id=row.pk,
                decider=decider,
                verdict=Verdict(verdict),
                comment=comment,
                request_id=request_id_of(request),
                now=now,
            )
        except Invalid as refused:
            wrong = refused.fields
        else:
            said = "approved" if verdict == Verdict.APPROVE else "sent back"
            messages.success(request, f"{row.number} {said}.")
            return redirect("approval", row.number)
    context = {**_page(row, decider, now), "wrong": wrong, "comment": comment}
    return render(request, "tenants/approval.html", context, status=422 if wrong else 200)


@require_POST
@login_required
def withdraw_approval(request: HttpRequest, number: str) -> HttpResponse:
    """The author takes their request back."""
    user, now = _user(request), timezone.now()
    row = find(decider_of(user, now), number)
    withdraw(approval_id=row.pk, person=user.person, request_id=request_id_of(request), now=now)
    messages.success(request, f"{row.number} is withdrawn.")
    return redirect("approval", row.number)


@require_POST
@login_required
def end_loan(request: HttpRequest, pk: int) -> HttpResponse:
    """Takes back what one lent; others' loans are not touched."""
    take_back(
        lender=_user(request).person,
        delegation_id=pk,
        request_id=request_id_of(request),
        now=timezone.now(),
    )
    return redirect("/approvals/?tab=lent")


def find(decider: Decider, number: str) -> Approval:
    """The approval "A-31" among those that this person may see; 404 for everything else."""
    digits = number.removeprefix("A-")
    rows = visible_to(decider).prefetch_related("decisions")
    found = rows.filter(pk=int(digits)).first() if digits.isdecimal() else None
    if found is None:
        raise Http404
    return found


def diff(lines: list[Line]) -> list[DiffRow]:
    """The lines as a diff: a heading where the group changes, then what goes, comes and stays."""
    rows: list[DiffRow] = []
    group, before, after = "", 0, 0
    for line in lines:
        if line.group != group:
            group = line.group
            rows.append(DiffRow("hunk", "", group))
        if not line.changed:
            before, after = before + 1, after + 1
            rows.append(DiffRow("", "", f"{line.label}: {line.after}", before, after))
            continue
        if line.before is not None:
            before += 1
            rows.append(DiffRow("del", "-", f"{line.label}: {line.before}", before=before))
        if line.after is not None:
            after += 1
            rows.append(DiffRow("add", "+", f"{line.label}: {line.after}", after=after))
    return rows


def _inbox(decider: Decider, tab: str, page: str | None) -> dict[str, Any]:
    lists = {
        "waiting": waiting_for(decider),
        "mine": Approval.objects.filter(author=decider.person),
        "ended": visible_to(decider).exclude(state=State.OPEN),
    }
    waiting = lists["waiting"].count()
    if tab == "lent":
        mine = Q(lender=decider.person) | Q(borrower=decider.person)
        loans = list(Delegation.objects.filter(mine)[:PAGE_SIZE])
        names = names_of(one for loan in loans for one in (loan.lender, loan.borrower))
        rows = [(loan, names[loan.lender], names[loan.borrower]) for loan in loans]
        return {"loans": rows, "waiting": waiting, "me": decider.person}
    found = Paginator(lists[tab].prefetch_related("decisions"), PAGE_SIZE).get_page(page)
    names = names_of(row.author for row in found)
    return {
        "page": found,
        "waiting": waiting,
        "rows": [(row, names[row.author], _yes(row)) for row in found],
    }


def _page(row: Approval, decider: Decider, now: datetime) -> dict[str, Any]:
    decisions = list(row.decisions.all())
    before = list(similar(row, decider))
    people = [row.author, *(one.person for one in decisions), *(one.holder for one in decisions)]
    names = names_of([*people, *row.coauthors, *(one.author for one in before)])
    taken = seat(row.case(), decider, now)
    effects = row.all_effects()
    return {
        "approval": row,
        "author": names[row.author],
        "hands": [names[one] for one in row.coauthors],
        "mine": row.author == decider.person,
        "said": [
            (one, names[one.person], names[one.holder] if one.holder != one.person else "")
            for one in decisions
        ],
        "progress": f"{_yes(row)} of {row.needed} approvals",
        "missing": row.needed - _yes(row),
        "rows": diff(row.content()),
        "facts": [effect for effect in effects if effect.part != "check"],
        "checks": [effect for effect in effects if effect.part == "check"],
        "similar": [(one, names[one.author]) for one in before],
        "why_not": taken.words if isinstance(taken, NoSeat) else "",
        "lent_by": names_of([taken.holder])[taken.holder]
        if not isinstance(taken, NoSeat) and taken.holder != decider.person
        else "",
        "now": now,
    }


def _yes(row: Approval) -> int:
    return sum(one.verdict == Verdict.APPROVE for one in row.decisions.all())


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user
