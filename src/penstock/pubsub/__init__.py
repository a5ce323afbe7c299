"""Content-based publish/subscribe: subscriptions, spaces, matching kernels, a service, a client."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.pubsub.client import Client as Client
    from penstock.pubsub.service_error import ServiceError as ServiceError
    from penstock.pubsub.subscription import Event as Event
    from penstock.pubsub.subscription import MissedEventsError as MissedEventsError

#: Where each public name is defined; it is loaded when it is used.
_HOMES = {
    "Client": "client",
    "ServiceError": "service_error",
    "Event": "subscription",
    "MissedEventsError": "subscription",
}
__all__ = ["Client", "Event", "MissedEventsError", "ServiceError"]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
