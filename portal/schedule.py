"""What is done again and again, and how often in seconds: by `beat`, which only sends the tasks."""

from __future__ import annotations

from typing import Any

SCHEDULE: dict[str, dict[str, Any]] = {
    "send what the outbox holds": {"task": "portal.outbox.tasks.sweep_outbox", "schedule": 5.0},
    # News make it count at once; this keeps the age of its figures honest while nothing changes.
    "count what is offered": {"task": "devices.tasks.count_offers", "schedule": 20.0},
    "look at rows nobody looked at": {"task": "devices.tasks.sweep_claims", "schedule": 30.0},
    "end claims in time": {"task": "devices.tasks.end_claims", "schedule": 30.0},
    "look who owns which devices": {
        "task": "devices.tasks.scan_ownership",
        "schedule": 10.0,
    },
    "look at moves whose time has come": {
        "task": "migrationplan.tasks.sweep_moves",
        "schedule": 2.0,
    },
    "look at waves whose time has come": {
        "task": "migrationplan.tasks.sweep_waves",
        "schedule": 3.0,
    },
    "look at drills under way": {
        "task": "migrationplan.tasks.sweep_drills",
        "schedule": 2.0,
    },
    "look at rooms that are made": {
        "task": "migrationplan.tasks.sweep_rooms",
        "schedule": 3.0,
    },
    "write the node ledger": {"task": "devices.tasks.write_ledger", "schedule": 10.0},
    "close by the node ledger": {"task": "devices.tasks.close_by_ledger", "schedule": 10.0},
    "look for leaks": {"task": "devices.tasks.scan_leaks", "schedule": 30.0},
    "look where devices cannot be got ready": {
        "task": "devices.tasks.scan_preparations",
        "schedule": 15.0,
    },
    "send what waited": {"task": "devices.tasks.send_held", "schedule": 10.0},
    "look for drift": {"task": "devices.tasks.scan_drift", "schedule": 15.0},
    "look at isolations under way": {"task": "devices.tasks.sweep_isolations", "schedule": 5.0},
    "judge forecasts": {"task": "devices.tasks.judge_forecasts", "schedule": 30.0},
    "forget stage times": {"task": "devices.tasks.forget_stage_times", "schedule": 86_400.0},
    "end grants in time": {"task": "tenants.tasks.expire_grants", "schedule": 60.0},
    "tell what is due": {"task": "portal.alerts.tasks.sweep_deliveries", "schedule": 10.0},
    "forget old alerts": {"task": "portal.alerts.tasks.forget_alerts", "schedule": 86_400.0},
    "end approvals in time": {
        "task": "portal.approvals.tasks.expire_approvals",
        "schedule": 60.0,
    },
    "look at tenants nobody looked at": {"task": "devices.tasks.sweep_tenants", "schedule": 60.0},
    "carry closings of tenants on": {"task": "devices.tasks.sweep_closings", "schedule": 20.0},
    "keep the policies' parameter": {"task": "devices.tasks.turn_policy", "schedule": 30.0},
    "end freezes whose time is over": {"task": "devices.tasks.expire_freezes", "schedule": 10.0},
    "look at frozen places": {"task": "devices.tasks.sweep_freezes", "schedule": 5.0},
    "let the doctor look": {"task": "devices.tasks.look_with_doctor", "schedule": 21_600.0},
    "forget what is long over": {"task": "portal.tasks.forget_old", "schedule": 86_400.0},
    "forget proofs": {"task": "devices.tasks.forget_proofs", "schedule": 600.0},
    "begin and end routes": {"task": "devices.tasks.sweep_routes", "schedule": 10.0},
    "forget dry runs": {"task": "devices.tasks.forget_dry_runs", "schedule": 3600.0},
    "forget old answers": {"task": "portal.api.tasks.forget_answers", "schedule": 3600.0},
}
