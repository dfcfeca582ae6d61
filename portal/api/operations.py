"""What every operation of the API does beside its own work, so that none has to think of it.

An operation that changes something runs once per Idempotency-Key, in one transaction, after its
If-Match was compared; with `?dry_run=true` that transaction is undone at its end. One that reads
answers with an ETag and only the `?fields=` that were asked for. All say how much is left of the
caller's rate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar

from django.db import connection, transaction
from django.http import Http404
from django.utils import timezone
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from portal.api import confirming, idempotency, query, standing, texts
from portal.api.endings import Ending
from portal.api.fields import only
from portal.api.rates import CallerRate
from portal.api.rates import headers as rate_headers
from portal.errors import Invalid, Refused

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
DRY_RUN = "Berth-Dry-Run"
CONFIRM = "Berth-Confirm"


class DryRunFirst(Refused):
    """This token acts only after a dry run of the very same request."""

    code = "DRY_RUN_FIRST"
    http_status = 428


class Operation(APIView):
    """The ground of every operation."""

    #: Its POST asks a question and changes nothing.
    asks_only: ClassVar[bool] = False
    #: It waits for a worker while it answers, so no transaction may be around it.
    waits_for_worker: ClassVar[bool] = False
    #: Its answer carries a secret that is shown once; it is never kept.
    shows_secret: ClassVar[bool] = False
    #: It compares If-Match itself, with a part of what GET answers at its address.
    compares_itself: ClassVar[bool] = False
    #: Which of its methods are to go, as {"get": Ending(…)}; the CHANGELOG names them, too.
    endings: ClassVar[Mapping[str, Ending]] = {}

    throttle_classes = [CallerRate]

    @staticmethod
    def refusals(given: Mapping[str, str]) -> Mapping[str, str]:
        """What its reading refuses of an address beyond what its document says: a sentence by
        parameter.
        """
        return {}

    def caller(self) -> str:
        """Whose idempotency keys, rates and remembered answers these are."""
        raise NotImplementedError

    def must_rehearse(self) -> bool:
        """Whether the caller may act only after a dry run of the same request."""
        return False

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """After sign-in: REST framework takes the method from the instance, so it is put there
        with all that belongs around it.
        """
        super().initial(request, *args, **kwargs)
        if not all(texts.keepable(part) for part in kwargs.values() if isinstance(part, str)):
            raise Http404  # nothing has such a name
        texts.check_parameters(request.query_params)
        refusals = self.refusals if request.method in SAFE else None
        query.check(type(self), str(request.method), request.query_params, refusals)
        name = str(request.method).lower()
        handler = getattr(self, name, None)
        if request.method not in SAFE and handler is not None:
            setattr(self, name, partial(self._acting, handler))

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        """Adds the ETag, the rate and an end, and leaves out fields that were not asked for."""
        ending = self.endings.get(str(request.method).lower())
        for name, value in {
            **rate_headers(request),
            **(ending.headers() if ending else {}),
        }.items():
            response.headers[name] = value
        if request.method in {"GET", "HEAD"} and isinstance(response, Response):
            if response.status_code == 200:
                standing.tag(request, response, caller=self.caller())
            if response.status_code < 300 and (wanted := request.query_params.get("fields")):
                try:
                    response.data = only(response.data, wanted)
                except Invalid as refused:
                    response = self.handle_exception(refused)
        return super().finalize_response(request, response, *args, **kwargs)

    def _acting(
        self, handler: Callable[..., Any], request: Request, *args: Any, **kwargs: Any
    ) -> Any:
        if self.asks_only:
            return handler(request, *args, **kwargs)
        idempotency.check_key(request)
        rehearsing = rehearses(request)
        fingerprint = f"{self.caller()} {idempotency.fingerprint(request)}"
        unsure = self.must_rehearse() and not rehearsing and not self.waits_for_worker
        if unsure and not confirming.confirmed(request.headers.get(CONFIRM, ""), fingerprint):
            raise DryRunFirst(
                "This token acts only after a dry run: send this with ?dry_run=true, then again "
                f"without it and with the {CONFIRM} header of the answer, within "
                f"{confirming.GOOD_FOR.total_seconds() / 60:.0f} minutes."
            )
        act = partial(self._compared, handler, request, *args, **kwargs)
        if rehearsing:
            answer = undone(act)
            answer.headers[DRY_RUN] = "true"
            answer.headers[CONFIRM] = confirming.confirmation(fingerprint)
            answer.headers.pop("Location", None)
            return answer
        if self.waits_for_worker:
            return act()
        return idempotency.around(
            request,
            caller=self.caller(),
            now=timezone.now(),
            act=act,
            secret=self.shows_secret,
        )

    def _compared(
        self, handler: Callable[..., Any], request: Request, *args: Any, **kwargs: Any
    ) -> Any:
        if not self.compares_itself:
            standing.compare(self, request, caller=self.caller())
        return handler(request, *args, **kwargs)


def rehearses(request: Request) -> bool:
    """Whether this is a dry run; `Invalid` for a value that is neither true nor false."""
    given = request.query_params.get("dry_run", "false").lower()
    if given not in {"true", "false"}:
        raise Invalid("Nothing was done.", fields={"dry_run": "true or false."})
    return given == "true"


def undone(act: Callable[[], Any]) -> Any:
    """What `act` answers; all that it wrote is undone, and what was to follow never starts."""
    with transaction.atomic():
        answer = act()
        if isinstance(answer, Response) and answer.data is not None:
            answer.data = idempotency.plain(answer.data)
        with connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        transaction.set_rollback(True)
    return answer
