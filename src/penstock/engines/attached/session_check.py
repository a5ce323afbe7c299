"""What can be done with the executors of a session, by its master and settings. Pure."""

from collections.abc import Mapping
from typing import NamedTuple

from penstock.errors import InputError

_ALLOCATION = "spark.dynamicAllocation"
#: Timeouts of dynamic allocation that Penstock's own sessions set so that they never expire.
_TIMEOUTS = ("schedulerBacklogTimeout", "executorIdleTimeout")
_NEVER = "3650d"


class SessionRules(NamedTuple):
    """What a session allows."""

    #: Why executors cannot be changed; "" if they can.
    why_not: str = ""
    #: Whether Spark ends executors that were decommissioned.
    exits_alone: bool = False


def check_session(
    master: str, settings: Mapping[str, str], executors: tuple[int, int], cores: int
) -> SessionRules:
    """Return what a session allows; `InputError` if its settings contradict what is asked for."""
    if is_local(master):
        why_not = f"{master} has no executors: it advises only, and one executor is this process"
        return SessionRules(why_not=why_not)
    if _is_on(settings, f"{_ALLOCATION}.enabled") and not _is_endless(settings):
        problem = "spark.dynamicAllocation.enabled is true, and would undo every change"
        hint = 'start the application without it, or use mode="dry-run"'
        raise InputError("spark", problem, hint)
    _check_cores(settings.get("spark.cores.max"), executors, cores)
    return SessionRules(exits_alone=_is_on(settings, "spark.decommission.enabled"))


def is_local(master: str) -> bool:
    """Whether a master runs tasks in the process of the driver.

    >>> is_local("local[4]"), is_local("local-cluster[4,1,1024]"), is_local("yarn")
    (True, False, False)
    """
    return master == "local" or master.startswith("local[")


def _is_on(settings: Mapping[str, str], name: str) -> bool:
    return str(settings.get(name, "false")).strip().lower() == "true"


def _is_endless(settings: Mapping[str, str]) -> bool:
    return all(settings.get(f"{_ALLOCATION}.{name}") == _NEVER for name in _TIMEOUTS)


def _check_cores(text: str | None, executors: tuple[int, int], cores: int) -> None:
    """Refuse a maximum that spark.cores.max makes impossible."""
    if text is None or not text.isdigit():
        return
    room = int(text) // max(1, cores)
    if executors[1] > room:
        problem = f"spark.cores.max={text} has room for {room} executors, got {executors[1]}"
        raise InputError("executors", problem, "raise spark.cores.max, or ask for fewer")
