"""The two files that steer driver and plugin of a real node, from what steers simulated ones.

`devices.json` says what the node pretends to have, `faults.json` what is wrong with it now; their
readers are in `go/devicefile`. One fleet file describes real nodes and simulated ones alike.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playground.fleet.driver import Trouble, pool_counters
from playground.fleet.spec import FleetSpec, NodeGroup, Pool, expand

Obj = dict[str, Any]

DEVICES, FAULTS = "devices.json", "faults.json"


def devices_file(spec: FleetSpec, group: NodeGroup, node: str, index: int = 0) -> Obj:
    """What `node`, the `index`-th (from 0) of a group, has to publish and to offer.

    Devices keep both spellings of their node-allocatable amounts: the driver takes that of the
    release it was built for.
    """
    drivers = []
    for driver in spec.drivers:
        known = {"node": node, "node_index": index, "seed": driver.name}
        # A driver that has nothing here may run here all the same: labels decide that.
        pools = [_pool(pool, known) for pool in driver.pools if pool.group == group.name]
        drivers.append({"name": driver.name, "deviceStatus": driver.device_status, "pools": pools})
    plugins = [
        {
            "resource": plugin.resource,
            "devices": [
                plugin.device.format(index=index)
                for index in range(plugin.devices.get(group.name, 0))
            ],
        }
        for plugin in spec.plugins
    ]
    return {"drivers": drivers, "plugins": plugins}


def _pool(pool: Pool, known: Mapping[str, Any]) -> Obj:
    return {
        "name": pool.name.format(**known),
        "devices": [one for template in pool.devices for one in expand(template, **known)],
        "sharedCounters": pool_counters(pool, **known),
        "devicesPerSlice": pool.devices_per_slice,
    }


def faults_of(trouble: Trouble) -> Obj:
    """One driver's entry of `faults.json`: the same trouble that a simulated driver has."""
    prepare: Obj = {}
    if trouble.left != 0:
        prepare = {
            "claims": trouble.claims,
            "fail": trouble.broken or trouble.refuse,
            "wholeCall": bool(trouble.broken),
            "hang": trouble.hang,
            "slowMilliseconds": round(trouble.slow * 1000),
            "times": trouble.left or 0,
        }
    found: Obj = {
        "prepare": [prepare] if prepare else [],
        "unprepare": [{"fail": trouble.unprepare}] if trouble.unprepare else [],
        "gone": sorted(trouble.gone),
        "health": {
            device: {"state": state, "message": message}
            for device, (state, message) in trouble.health.items()
        },
        "taints": dict(trouble.taints),
        "silent": trouble.silent,
    }
    return {key: value for key, value in found.items() if value}


def trouble_of(entry: Mapping[str, Any]) -> Trouble:
    """What `faults_of` has written, read again; of several rules the first."""
    trouble = Trouble(
        unprepare=next((one["fail"] for one in entry.get("unprepare", ())), ""),
        taints=dict(entry.get("taints", {})),
        gone=set(entry.get("gone", ())),
        health={
            device: (told["state"], told.get("message", ""))
            for device, told in entry.get("health", {}).items()
        },
        silent=entry.get("silent", False),
    )
    for rule in list(entry.get("prepare", ()))[:1]:
        words = rule.get("fail", "")
        trouble.refuse, trouble.broken = ("", words) if rule.get("wholeCall") else (words, "")
        trouble.hang = rule.get("hang", False)
        trouble.slow = rule.get("slowMilliseconds", 0) / 1000
        trouble.claims, trouble.left = rule.get("claims", "*"), rule.get("times") or None
    return trouble


def write(path: Path, content: Mapping[str, Any]) -> None:
    """Puts a file in place whole: its reader looks many times a second."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{os.getpid()}")
    fresh.write_text(json.dumps(content, indent=2))
    fresh.replace(path)
