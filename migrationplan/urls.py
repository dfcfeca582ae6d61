"""Addresses of the pages of floor 3."""

from __future__ import annotations

from django.urls import path

from migrationplan import gate_urls
from migrationplan.views import drills, evidence, moves, plans, rooms, strategies

urlpatterns = [
    path("platform/moves/", moves.moves, name="moves"),
    path("platform/moves/<slug:public_id>/", moves.move, name="move"),
    path("platform/node-pools/<slug:slug>/move/", moves.move_begin, name="move-begin"),
    path("platform/plans/", plans.plans, name="plans"),
    path("platform/plans/<slug:public_id>/", plans.plan, name="plan"),
    path("platform/plans/<slug:public_id>/waves/<int:position>/", plans.plan, name="plan-wave"),
    path(
        "platform/plans/<slug:public_id>/waves/<int:position>/edit/",
        plans.wave_edit,
        name="plan-wave-edit",
    ),
    path("platform/strategies/", strategies.strategies_list, name="strategies"),
    path("platform/strategies/<slug:slug>/", strategies.strategy, name="strategy"),
    path(
        "platform/strategies/<slug:slug>/remove/",
        strategies.strategy_remove,
        name="strategy-remove",
    ),
    path("platform/plan-calendar/", strategies.plan_calendar, name="plan-calendar"),
    path(
        "platform/plan-calendar/<slug:public_id>/remove/",
        strategies.calendar_remove,
        name="plan-calendar-remove",
    ),
    path("platform/evidence/", evidence.evidence_list, name="evidence-list"),
    path("platform/evidence/<slug:public_id>/", evidence.evidence, name="evidence"),
    path("platform/evidence/<slug:public_id>/file/", evidence.evidence_file, name="evidence-file"),
    path("platform/drills/", drills.drills, name="drills"),
    path("platform/drills/<slug:public_id>/", drills.drill, name="drill"),
    path("platform/rooms/", rooms.rooms, name="rooms"),
    path("platform/rooms/<slug:public_id>/", rooms.room, name="room"),
    path("platform/claims/<slug:public_id>/make-room/", rooms.room_for, name="room-for"),
    *gate_urls.pages,
]
