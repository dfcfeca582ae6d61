"""Every code with how it is brought about, and the few that no page can show in a test."""

from __future__ import annotations

from tests.pictures import asks, placing, platform, waiting
from tests.pictures.waiting import Scene

SCENES: dict[str, Scene] = {
    **waiting.SCENES,
    **placing.SCENES,
    **asks.SCENES,
    **platform.SCENES,
}

#: Codes of which there is no picture, and why.
NONE: dict[str, str] = {
    "CLAIM_ON_LOST_NODE": "a turn reads no nodes; the board shows the claim as LEAK_ORPHANED",
    "DRIFT_NOT_KNOWN": "no finding: the node pool's page says in words that nothing is recorded",
    "KUBELET_MEMORY_KEPT": "only a real kubelet comes to it, in the tests of conversions",
    "NODES_NOT_SEEN": "an unknown figure of the catalogue; no request has it",
    "NODE_UNKNOWN": "how one device of a vanished node stands; no request has it",
    "OWNER_TWO_DRIVERS": "told by the inspection of a dump, which is text",
    "POOL_OBSOLETE": "how one device stands for a moment; no request has it",
    "SEARCH_TOO_LONG": "it takes a search of ten seconds",
}
