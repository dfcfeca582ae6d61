"""Judging the rights of Berth's accounts: each that is missing, each that is too many. Pure."""

from __future__ import annotations

from devices.doctor.findings import Area, Finding, Section, Severity
from devices.doctor.rights import Right, function_of, too_many
from devices.doctor.seen import Account, Seen, Unseen

#: So many grains too many are told one by one; more of one account are summed up.
TOLD_ONE_BY_ONE = 12


def rights(seen: Seen) -> Section:
    """Every account of `deploy/rbac`."""
    found: list[Finding] = []
    looked = 0
    for name, account in sorted(seen.accounts.items()):
        if isinstance(account, Unseen):
            found.append(
                Finding(
                    "RIGHTS_NOT_LOOKED_AT",
                    Severity.INFO,
                    name,
                    account.why,
                    "Run manage.py doctor with the kubeconfig of somebody who may impersonate it.",
                )
            )
            continue
        looked += 1
        found += [_missing(account, right) for right in sorted(account.denied)]
        found += _too_many(account)
    return Section(
        Area.RIGHTS, f"{looked} of {len(seen.accounts)} accounts were looked at.", tuple(found)
    )


def missing_sentence(account: str, right: Right) -> str:
    """What fails, in one sentence."""
    function = function_of(account, right)
    may_not = f"{account} may not {right}"
    return f"{may_not}: Berth cannot {function}." if function else f"{may_not}."


def _missing(account: Account, right: Right) -> Finding:
    file = account.name.removeprefix("berth-").replace("-", "")
    return Finding(
        "RIGHT_MISSING",
        Severity.ERROR,
        account.name,
        missing_sentence(account.name, right),
        f"Apply deploy/rbac/{file}.yaml.",
    )


def _too_many(account: Account) -> list[Finding]:
    extra = too_many(account.has, account.needs)
    # What it has everywhere is answered for each namespace that was asked about.
    told = sorted({_placeless(right) for right in extra}, key=lambda right: (not right.wide, right))
    found = [
        Finding(
            "RIGHT_TOO_MANY",
            Severity.ERROR if right.wide else Severity.WARNING,
            account.name,
            f"{account.name} may {right}, and needs no such right.",
            "Find the binding that gives it (kubectl get clusterrolebindings,rolebindings -A "
            f"-o wide | grep {account.name}) and take it away.",
        )
        for right in told[:TOLD_ONE_BY_ONE]
    ]
    if len(told) > TOLD_ONE_BY_ONE:
        found.append(
            Finding(
                "RIGHT_TOO_MANY",
                Severity.WARNING,
                account.name,
                f"{account.name} has {len(told) - TOLD_ONE_BY_ONE} further rights that it does not "
                "need.",
                "Take the binding away that gives them.",
            )
        )
    return found


def _placeless(right: Right) -> Right:
    return Right(right.verb, right.group, right.resource, right.name, path=right.path)
