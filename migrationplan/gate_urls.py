"""Addresses of gates, readings, the survey and the report "did it pay?"; pages and API."""

from __future__ import annotations

from django.urls import path

from migrationplan.api import gates as gates_api
from migrationplan.api import payoff as payoff_api
from migrationplan.api import survey as survey_api
from migrationplan.views import gates, payoff, readings, survey

POOL = "platform/node-pools/<slug:slug>"

pages = [
    path("platform/gates/", gates.gates, name="gates"),
    path("platform/gates/standard/", gates.gates_standard, name="gates-standard"),
    path("platform/gates/<slug:slug>/", gates.gate, name="gate"),
    path("platform/gates/<slug:slug>/retire/", gates.gate_retire, name="gate-retire"),
    path("platform/readings/<slug:public_id>/", readings.reading, name="reading"),
    path(f"{POOL}/survey/", survey.node_pool_survey, name="node-pool-survey"),
    path(f"{POOL}/readings/", readings.node_pool_readings, name="node-pool-readings"),
    path(f"{POOL}/payoff/", payoff.node_pool_payoff, name="node-pool-payoff"),
]

api = [
    path("platform/gates", gates_api.Gates.as_view(), name="gates"),
    path("platform/gates/standard", gates_api.StandardGates.as_view(), name="gates-standard"),
    path("platform/gates/<slug:slug>", gates_api.OneGate.as_view(), name="gate"),
    path("platform/readings/<slug:public_id>", gates_api.OneReading.as_view(), name="reading"),
    path(f"{POOL}/survey", survey_api.NodePoolSurvey.as_view(), name="node-pool-survey"),
    path(f"{POOL}/readings", gates_api.Readings.as_view(), name="node-pool-readings"),
    path(f"{POOL}/payoff", payoff_api.NodePoolPayoff.as_view(), name="node-pool-payoff"),
]
