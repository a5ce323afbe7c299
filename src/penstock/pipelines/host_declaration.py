"""Declares the hosts of a pipeline: slices of several operators share each of them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from penstock.errors import InputError

if TYPE_CHECKING:
    from penstock.pipelines.pipeline import Pipeline


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosts:
    """Hosts that carry the slices of a pipeline; a policy for hosts starts and ends them.

    On one machine a host is a name: a replica of each operator that has slices there. Its share
    of a core is emulated: slices of a host take turns, and after c processor seconds it waits
    for c (1 / share - 1) more.

    >>> Hosts(start=2, most=8, share=0.25).most
    8
    """

    #: Hosts at the first start of a run.
    start: int = 1
    #: The most hosts that there may be.
    most: int = 8
    #: The part of a core that a host has, up to 1.
    share: float = 1.0

    def __str__(self) -> str:
        share = f", each {self.share:g} of a core (emulated)" if self.share < 1 else ""
        return f"{self.start} at the start, at most {self.most}{share}"

    def describe(self) -> dict[str, Any]:
        """Return the declaration as JSON."""
        return {"start": self.start, "most": self.most, "share": self.share}


def count_slices(pipeline: "Pipeline") -> dict[str, int]:
    """Return the slices of each operator that has them."""
    operators = pipeline.operators.values()
    return {op.name: op.slicing.slices for op in operators if op.slicing is not None}


def check_hosts(pipeline: "Pipeline") -> None:
    """Raise `InputError` unless the declared hosts can carry the slices of a pipeline."""
    hosts = pipeline.hosts
    if hosts is None:
        return
    for name in ("start", "most"):
        value = getattr(hosts, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(
                f"hosts.{name}", f"must be a whole number of at least 1, got {value!r}"
            )
    if hosts.start > hosts.most:
        raise InputError("hosts.start", f"must be at most {hosts.most}, got {hosts.start}")
    if not 0 < hosts.share <= 1:
        raise InputError("hosts.share", f"must be above 0 and at most 1, got {hosts.share!r}")
    slices = count_slices(pipeline)
    if sum(slices.values()) < hosts.start:
        problem = f"must be at most the number of slices ({sum(slices.values())})"
        hint = "hosts carry the slices of sliced operators; others keep their replicas"
        raise InputError("hosts.start", problem, hint)
    for name, number in slices.items():
        operator, needed = pipeline.operators[name], min(hosts.most, number)
        if operator.options.max_replicas < needed:
            problem = f"must be at least {needed}: its slices may be on so many hosts"
            raise InputError(f"{name}.max_replicas", problem, where=operator.where)
