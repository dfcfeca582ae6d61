"""Releasing several asks at once: each by itself, so that one that cannot go keeps none back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from devices.asks.claims import release_claim
from devices.models import Claim
from portal.errors import Invalid, Refused
from tenants.access import Access
from tenants.policy import Act

MOST_AT_A_TIME: Final = 100


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one of them; `code` and `message` say why it did not go."""

    public_id: str
    name: str = ""
    state: str = ""
    code: str = ""
    message: str = ""

    @property
    def released(self) -> bool:
        return not self.code


def release_several(
    *, access: Access, public_ids: Sequence[str], request_id: str, now: datetime
) -> list[Outcome]:
    """Releases each in a transaction of its own, in the order given, and says what became of it.

    What this tenant has not is `NOT_FOUND`, whether it exists or not. Raises `NotPermitted`, and
    `Invalid` (ids) for none or more than `MOST_AT_A_TIME`.
    """
    access.require(Act.RELEASE)
    if not 1 <= len(public_ids) <= MOST_AT_A_TIME:
        raise Invalid(
            "Nothing was released.", fields={"ids": f"Give 1 to {MOST_AT_A_TIME} ids of claims."}
        )
    outcomes = []
    for public_id in public_ids:
        try:
            if "\x00" in public_id:
                raise Claim.DoesNotExist
            claim = release_claim(
                access=access, public_id=public_id, request_id=request_id, now=now
            )
        except Claim.DoesNotExist:
            said = "There is no such claim here."
            outcomes.append(Outcome(public_id, code="NOT_FOUND", message=said))
        except Refused as refused:
            outcomes.append(Outcome(public_id, code=refused.code, message=refused.message))
        else:
            outcomes.append(Outcome(public_id, claim.name, claim.state))
    return outcomes
