"""`?fields=id,state,devices.node`: only these of each object. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from portal.errors import Invalid

PAGE = {"next", "previous", "results"}
Tree = dict[str, Any]


def only(data: Any, wanted: str) -> Any:
    """The same answer with those fields alone; of a page, in each of its rows.

    Raises `Invalid` (fields) for a name that an object does not have. An empty list has no names to
    compare with, and an object that is null stays null.
    """
    tree: Tree = {}
    for path in filter(None, (part.strip() for part in wanted.split(","))):
        branch = tree
        for name in path.split("."):
            branch = branch.setdefault(name, {})
    if not tree:
        raise Invalid("Nothing is left.", fields={"fields": "Name at least one field."})
    if isinstance(data, Mapping) and set(data) == PAGE:
        return {**data, "results": _pruned(data["results"], tree, "")}
    return _pruned(data, tree, "")


def _pruned(data: Any, tree: Tree, at: str) -> Any:
    if not tree or data is None:
        return data
    if isinstance(data, list | tuple):
        return [_pruned(one, tree, at) for one in data]
    if not isinstance(data, Mapping):
        raise Invalid("No such field.", fields={"fields": f"{at.rstrip('.')} has no fields."})
    kept = {}
    for name, below in tree.items():
        if name not in data:
            known = ", ".join(sorted(map(str, data)))
            raise Invalid(
                "No such field.", fields={"fields": f"No {at}{name}; there are: {known}."}
            )
        kept[name] = _pruned(data[name], below, f"{at}{name}.")
    return kept
