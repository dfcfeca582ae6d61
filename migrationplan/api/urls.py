"""Addresses of the API of floor 3, below /api/v1/."""

from __future__ import annotations

from django.urls import path

from migrationplan import gate_urls
from migrationplan.api import drills, evidence, moves, plans, rooms, strategies

WAVE = "platform/plans/<slug:public_id>/waves/<int:position>"

urlpatterns = [
    path("platform/moves", moves.Moves.as_view(), name="moves"),
    path("platform/moves/<slug:public_id>", moves.OneMove.as_view(), name="move"),
    path("platform/moves/<slug:public_id>/go-on", moves.LookAgain.as_view(), name="move-go-on"),
    path("platform/moves/<slug:public_id>/turn-back", moves.TurnBack.as_view(), name="move-back"),
    path("platform/plans", plans.Plans.as_view(), name="plans"),
    path("platform/plans/<slug:public_id>", plans.OnePlan.as_view(), name="plan"),
    path(WAVE, plans.OneWave.as_view(), name="plan-wave"),
    path(f"{WAVE}/nodes", plans.WaveNodes.as_view(), name="plan-wave-nodes"),
    path(f"{WAVE}/events", plans.WaveEvents.as_view(), name="plan-wave-events"),
    path(f"{WAVE}/submit", plans.SubmitWave.as_view(), name="plan-wave-submit"),
    path(f"{WAVE}/pause", plans.PauseWave.as_view(), name="plan-wave-pause"),
    path(f"{WAVE}/resume", plans.ResumeWave.as_view(), name="plan-wave-resume"),
    path(f"{WAVE}/roll-back", plans.RollBackWave.as_view(), name="plan-wave-roll-back"),
    path(f"{WAVE}/leave-out", plans.SkipNode.as_view(), name="plan-wave-leave-out"),
    path(f"{WAVE}/take-in", plans.TakeNodeIn.as_view(), name="plan-wave-take-in"),
    path(f"{WAVE}/withdraw-approval", plans.WithdrawApproval.as_view(), name="plan-wave-withdraw"),
    path("platform/strategies", strategies.Strategies.as_view(), name="strategies"),
    path("platform/strategies/<slug:slug>", strategies.OneStrategy.as_view(), name="strategy"),
    path("platform/plan-calendar", strategies.Calendar.as_view(), name="plan-calendar"),
    path(
        "platform/plan-calendar/<slug:public_id>",
        strategies.OneEntry.as_view(),
        name="plan-calendar-entry",
    ),
    path("platform/evidence", evidence.Bundles.as_view(), name="evidence-list"),
    path("platform/evidence/<slug:public_id>", evidence.OneBundle.as_view(), name="evidence"),
    path(
        "platform/evidence/<slug:public_id>/file",
        evidence.BundleFile.as_view(),
        name="evidence-file",
    ),
    path("platform/drills", drills.Drills.as_view(), name="drills"),
    path("platform/drills/passed", drills.DrillsPassed.as_view(), name="drills-passed"),
    path("platform/drills/<slug:public_id>", drills.OneDrill.as_view(), name="drill"),
    path(
        "platform/drills/<slug:public_id>/give-up",
        drills.GiveUpDrill.as_view(),
        name="drill-give-up",
    ),
    path("platform/rooms", rooms.Rooms.as_view(), name="rooms"),
    path("platform/rooms/<slug:public_id>", rooms.OneRoom.as_view(), name="room"),
    path("platform/claims/<slug:public_id>/room", rooms.Ways.as_view(), name="room-ways"),
    *gate_urls.api,
]
