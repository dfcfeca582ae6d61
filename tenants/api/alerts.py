"""Operations on alerts: read and take on; and for the platform, where they are told."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.serializers import Serializer

from portal.alerts import bell, channels
from portal.alerts.models import Alert, Channel, Delivery, Route, Silence
from portal.alerts.raising import take_on
from portal.alerts.rules import Medium
from portal.api.idempotency import once
from portal.errors import Invalid
from portal.request_ids import request_id_of
from tenants.access import PlatformAccess
from tenants.alerts import viewer_of
from tenants.api.alert_shapes import (
    AlertOut,
    AlertRouteIn,
    AlertRouteOut,
    ChannelIn,
    ChannelOut,
    DeliveryOut,
    NewChannelOut,
    SilenceIn,
    SilenceOut,
)
from tenants.api.base import KEY, CallerView, PlatformView
from tenants.models import ApiToken, User
from tenants.policy import PlatformAct

OPERATE = ApiToken.Scope.OPERATE
PAGED = [OpenApiParameter("cursor", str), OpenApiParameter("limit", int)]


class AlertView(CallerView):
    """Alerts as the caller may know them."""

    noun = "alerts"

    def rows(self, scope: str) -> QuerySet[Alert]:
        """Those at the caller's bell; through a token of a tenant only that tenant's."""
        self.demand(scope)
        user = self.request.user
        assert isinstance(user, User)
        rows = bell.visible_to(viewer_of(user))
        token = self.token()
        if token is not None and token.tenant is not None:
            rows = rows.filter(tenant=token.tenant.slug, person=None)
        return rows


class Alerts(AlertView):
    """The bell."""

    @extend_schema(
        operation_id="list_alerts",
        parameters=[OpenApiParameter("state", str, enum=["open", "over"]), *PAGED],
        responses=AlertOut(many=True),
    )
    def get(self, request: Request) -> Response:
        """Newest first, page by page."""
        rows, state = self.rows(ApiToken.Scope.READ), request.query_params.get("state")
        if state not in (None, "open", "over"):
            raise Invalid("No such state.", fields={"state": "One of open, over."})
        if state is not None:
            rows = rows.filter(over_at__isnull=state == "open")
        return self.page(rows, AlertOut)


class OneAlert(AlertView):
    """One alert."""

    @extend_schema(operation_id="get_alert", responses=AlertOut)
    def get(self, request: Request, public_id: str) -> Response:
        """It, or 404."""
        row = get_object_or_404(self.rows(ApiToken.Scope.READ), public_id=public_id)
        return Response(AlertOut(row).data)


class TakeAlert(AlertView):
    """Looking after an alert."""

    @extend_schema(operation_id="take_alert", request=None, responses=AlertOut)
    def post(self, request: Request, public_id: str) -> Response:
        """It does not escalate then; twice is fine."""
        row = get_object_or_404(self.rows(OPERATE), public_id=public_id)
        assert isinstance(request.user, User)
        return Response(AlertOut(take_on(row, request.user.person, now=timezone.now())).data)


class TellingView(PlatformView):
    """What operations on channels, routes and silences share."""

    def operator(self) -> PlatformAccess:
        access = self.platform(scope=OPERATE)
        access.require(PlatformAct.RUN_ALERTS)
        return access

    def by(self, access: PlatformAccess) -> dict[str, Any]:
        return {
            "person": access.user.person,
            "request_id": request_id_of(self.request),
            "now": timezone.now(),
        }

    def made(self, act: Callable[[], Any], shape: type[Serializer]) -> Response:
        """201 with what `act` made; the same Idempotency-Key makes it once."""
        return once(
            self.request,
            caller=self.caller(),
            now=timezone.now(),
            act=lambda: Response(shape(act()).data, status=201),
        )


class Channels(TellingView):
    """Where alerts can be told."""

    shows_secret = True

    @extend_schema(
        operation_id="list_alert_channels", parameters=PAGED, responses=ChannelOut(many=True)
    )
    def get(self, request: Request) -> Response:
        """By name."""
        self.platform().require(PlatformAct.SEE)
        return self.page(Channel.objects.filter(removed_at=None), ChannelOut)

    @extend_schema(
        operation_id="add_alert_channel",
        request=ChannelIn,
        responses={201: NewChannelOut},
    )
    def post(self, request: Request) -> Response:
        """The secret of a webhook is in this answer only; no repetition gives it again."""
        access = self.operator()
        asked = ChannelIn(data=request.data)
        asked.is_valid(raise_exception=True)
        data = dict(asked.validated_data)
        made = channels.add_channel(medium=Medium(data.pop("medium")), **data, **self.by(access))
        return Response(NewChannelOut(made).data, status=201)


class OneChannel(TellingView):
    """One channel."""

    @extend_schema(operation_id="remove_alert_channel", responses={204: None})
    def delete(self, request: Request, public_id: str) -> Response:
        """Nothing is told there any more; its routes go."""
        access = self.operator()
        row = get_object_or_404(Channel, public_id=public_id, removed_at=None)
        channels.remove_channel(row, **self.by(access))
        return Response(status=204)


class ChannelSecret(TellingView):
    """The key that signs a webhook."""

    shows_secret = True

    @extend_schema(operation_id="change_alert_secret", request=None, responses=NewChannelOut)
    def post(self, request: Request, public_id: str) -> Response:
        """A new one; the one before signs too for a day."""
        access = self.operator()
        rows = Channel.objects.filter(removed_at=None, medium=Medium.WEBHOOK.value)
        row = get_object_or_404(rows, public_id=public_id)
        channels.rotate(row, **self.by(access))
        return Response(NewChannelOut(row).data)


class Deliveries(TellingView):
    """What was told on a channel."""

    @extend_schema(
        operation_id="list_alert_deliveries", parameters=PAGED, responses=DeliveryOut(many=True)
    )
    def get(self, request: Request, public_id: str) -> Response:
        """Newest first."""
        self.platform().require(PlatformAct.SEE)
        row = get_object_or_404(Channel, public_id=public_id)
        return self.page(row.deliveries.select_related("alert"), DeliveryOut)


class TellAgain(TellingView):
    """One delivery once more."""

    @extend_schema(
        operation_id="tell_alert_again",
        request=None,
        parameters=[KEY],
        responses={201: DeliveryOut},
    )
    def post(self, request: Request, public_id: str, message_id: str) -> Response:
        """The same message as a new delivery."""
        by = self.by(self.operator())
        rows = Delivery.objects.filter(channel__public_id=public_id, channel__removed_at=None)
        told = get_object_or_404(rows, message_id=message_id)
        return self.made(lambda: channels.tell_again(told, **by), DeliveryOut)


class Routes(TellingView):
    """Which alerts are told where."""

    @extend_schema(
        operation_id="list_alert_routes", parameters=PAGED, responses=AlertRouteOut(many=True)
    )
    def get(self, request: Request) -> Response:
        """In the order they were made."""
        self.platform().require(PlatformAct.SEE)
        return self.page(Route.objects.select_related("channel", "then"), AlertRouteOut)

    @extend_schema(
        operation_id="add_alert_route",
        request=AlertRouteIn,
        parameters=[KEY],
        responses={201: AlertRouteOut},
    )
    def post(self, request: Request) -> Response:
        """From now on."""
        by = self.by(self.operator())
        asked = AlertRouteIn(data=request.data)
        asked.is_valid(raise_exception=True)
        data = asked.validated_data
        minutes = data["after_minutes"]
        after = timedelta(minutes=minutes) if minutes else None
        wish = {name: data[name] for name in ("channel", "then", "tells_end")}
        return self.made(
            lambda: channels.add_route(match=asked.match(), after=after, **wish, **by),
            AlertRouteOut,
        )


class OneRoute(TellingView):
    """One route."""

    @extend_schema(operation_id="remove_alert_route", responses={204: None})
    def delete(self, request: Request, pk: int) -> Response:
        """Such alerts are not told there any more."""
        access = self.operator()
        channels.remove_route(get_object_or_404(Route, pk=pk), **self.by(access))
        return Response(status=204)


class Silences(TellingView):
    """Which alerts are not told now."""

    @extend_schema(
        operation_id="list_alert_silences", parameters=PAGED, responses=SilenceOut(many=True)
    )
    def get(self, request: Request) -> Response:
        """Those in force, the next end first."""
        self.platform().require(PlatformAct.SEE)
        return self.page(Silence.objects.filter(until__gt=timezone.now()), SilenceOut)

    @extend_schema(
        operation_id="silence_alerts",
        request=SilenceIn,
        parameters=[KEY],
        responses={201: SilenceOut},
    )
    def post(self, request: Request) -> Response:
        """It always has an end."""
        by = self.by(self.operator())
        asked = SilenceIn(data=request.data)
        asked.is_valid(raise_exception=True)
        wish = {name: asked.validated_data[name] for name in ("reason", "until")}
        return self.made(lambda: channels.silence(match=asked.match(), **wish, **by), SilenceOut)


class OneSilence(TellingView):
    """One silence."""

    @extend_schema(operation_id="lift_alert_silence", responses={204: None})
    def delete(self, request: Request, public_id: str) -> Response:
        """Ends it early."""
        access = self.operator()
        channels.lift(get_object_or_404(Silence, public_id=public_id), **self.by(access))
        return Response(status=204)
