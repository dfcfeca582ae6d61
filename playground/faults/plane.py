"""What can go wrong with the control plane and on the way to it, and how each is mended.

Faults on the way (`api-…`) concern those who come through the proxy: start the control plane with
it, and use kubeconfigs made for it. The fleet itself goes straight to the API server.
"""

from __future__ import annotations

from playground.plane.components import API_SERVER, CONTROLLER_MANAGER, SCHEDULER
from playground.plane.controlplane import ControlPlane
from playground.plane.proxy import Fault

# A component that is started again by a command must outlive the command.
_OUTLIVE = False


def begin_apiserver_down(plane: ControlPlane) -> str:
    """The API server is stopped; connections are refused."""
    plane.stop_component(API_SERVER)
    return "the API server is down"


def end_apiserver_down(plane: ControlPlane) -> str:
    """It starts again on the same port, with the same data."""
    plane.start_component(API_SERVER, tied=_OUTLIVE)
    return "the API server answers"


def begin_apiserver_frozen(plane: ControlPlane) -> str:
    """The API server takes connections and never answers."""
    plane.pause(API_SERVER)
    return "the API server is frozen"


def end_apiserver_frozen(plane: ControlPlane) -> str:
    """It goes on where it was."""
    plane.resume(API_SERVER)
    return "the API server goes on"


def begin_history_compacted(plane: ControlPlane) -> str:
    """History is forgotten: watches that resume get 410 and have to list again."""
    return f"history before revision {plane.compact()} is gone"


def begin_scheduler_down(plane: ControlPlane) -> str:
    """Nobody allocates devices or binds Pods."""
    plane.stop_component(SCHEDULER)
    return "the scheduler is down"


def end_scheduler_down(plane: ControlPlane) -> str:
    """It starts again, and works off what waits."""
    plane.start_component(SCHEDULER, tied=_OUTLIVE)
    return "the scheduler runs"


def begin_controller_manager_down(plane: ControlPlane) -> str:
    """No claims from templates, no garbage collection, no DaemonSet Pods, no lost nodes."""
    plane.stop_component(CONTROLLER_MANAGER)
    return "the controller-manager is down"


def end_controller_manager_down(plane: ControlPlane) -> str:
    """It starts again, and catches up."""
    plane.start_component(CONTROLLER_MANAGER, tied=_OUTLIVE)
    return "the controller-manager runs"


def begin_api_slow(plane: ControlPlane, *, delay: float = 1.0) -> str:
    """Each piece of data takes `delay` seconds longer, in both directions."""
    plane.set_fault(Fault(delay=delay))
    return f"the way to the API server takes {delay:g} s longer"


def begin_api_cut(plane: ControlPlane, *, after: int = 0) -> str:
    """Connections are cut: now, and each new one after so many bytes towards the client."""
    plane.set_fault(Fault(cut_after=after))
    return f"connections are cut after {after} bytes"


def begin_api_stalled(plane: ControlPlane) -> str:
    """Connections open, and nothing comes through any more."""
    plane.set_fault(Fault(stall=True))
    return "nothing comes through"


def begin_api_refused(plane: ControlPlane) -> str:
    """Nobody listens at the API server's address."""
    plane.set_fault(Fault(refuse=True))
    return "connections are refused"


def begin_api_answers(plane: ControlPlane, *, answer: str = "429") -> str:
    """Something answers in the API server's place: 429, 500, html or html-502."""
    plane.set_fault(Fault(answer=answer))
    return f"the API server's place answers {answer}"


def end_api_slow(plane: ControlPlane) -> str:
    """The way is free."""
    plane.set_fault(Fault())
    return "the way to the API server is free"


end_api_cut = end_api_stalled = end_api_refused = end_api_answers = end_api_slow
