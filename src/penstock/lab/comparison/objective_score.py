"""Scores one policy on its latency objective: whether it is kept, the cost, better rivals."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from penstock.core.progress import WorkProgress
from penstock.engines.simulator.library import load_profile
from penstock.errors import InputError, nearest
from penstock.lab.comparison.cells import COST, HINDSIGHT, Group, Row
from penstock.lab.comparison.grid_comparison import GridComparison, compare_grids, find_grid

#: Share of the records that may miss the objective.
MAX_VIOLATED = 0.01
#: A rival is noted as cheaper than the policy with constant head room from this share on.
MIN_SAVING = 0.05
VIOLATED, RESCALES = "slo_violated_share", "rescales"


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Which policies of a grid are compared as what."""

    #: The policy that is scored.
    policy: str
    #: The policy whose head room is tuned and whose rescales are compared; None: none.
    tuned: str | None = None
    #: The policy that knows the peak of the load; None: none.
    peak: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CellScore:
    """One load on one engine: the means over its seeds."""

    name: str
    #: Whether a change stops the whole job.
    has_pause: bool
    violated: float
    #: The larger of 1 % and what the highest load's replicas miss.
    allowed: float
    replica_hours: float
    #: Replica hours over those of the cheapest run; None if no run keeps the objective.
    ratio: float | None
    rescales: float
    #: Rescales of the tuned policy with its published defaults; None if it did not run.
    base_rescales: float | None
    #: Rivals with published defaults that are cheaper and do not miss more.
    beaten_by: tuple[str, ...]
    #: The cheapest constant head room that misses no more than allowed or than the policy, and the
    #: share of the replica hours that it saves; None if there is none.
    tuned: str | None = None
    tuned_saving: float | None = None

    @property
    def is_kept(self) -> bool:
        """Whether the policy keeps the objective, or misses it no more than the peak's replicas."""
        return self.violated <= self.allowed

    @property
    def is_tuned_cheaper(self) -> bool:
        """Whether the best head room saves more than the limit."""
        return self.tuned_saving is not None and self.tuned_saving > MIN_SAVING


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyScore:
    """One policy over all cells that it ran in."""

    label: str
    cells: int
    kept: int
    violated: float
    #: Means over the cells whose hindsight is feasible; None without one.
    ratio: float | None
    ratio_with_pause: float | None
    rescales: float


@dataclass(frozen=True, slots=True, kw_only=True)
class GridObjectiveScore:
    """The score of one policy on some grids, and the same figures of its rivals."""

    roles: Roles
    cells: tuple[CellScore, ...]
    policies: tuple[PolicyScore, ...]
    missing: int = 0

    @property
    def rescale_ratio(self) -> float | None:
        """Rescales over those of the tuned policy, in the cells that both ran in."""
        known = [cell for cell in self.cells if cell.base_rescales is not None]
        base = sum(cell.base_rescales or 0.0 for cell in known)
        return sum(cell.rescales for cell in known) / base if base else None

    def ratio(self, has_pause: bool) -> float | None:
        """Return the mean cost over hindsight on engines with or without a pause."""
        return _mean(cell.ratio for cell in self.cells if cell.has_pause == has_pause)


def score_grids(
    directories: Sequence[Path],
    roles: Roles,
    jobs: int | None = None,
    on_progress: Callable[[WorkProgress], None] | None = None,
) -> GridObjectiveScore:
    """Score a policy on the results of grids that have a latency objective."""
    engines = {
        (place, cell.group): cell.specs[0].to_json().get("engine", "")
        for place in directories
        for cell in find_grid(place).cells
    }
    grids = compare_grids(directories, hindsight=True, jobs=jobs, on_progress=on_progress)
    pairs = [
        (group, stops_job(engines[place, group.name]))
        for place, grid in zip(directories, grids, strict=True)
        for group in grid.groups
    ]
    return score_groups(pairs, roles, missing=count_missing(grids))


def stops_job(engine: str) -> bool:
    """Whether a change on a simulated engine stops the whole job."""
    return load_profile(engine).rescaling.scope == "job"


def count_missing(grids: Iterable[GridComparison]) -> int:
    """Return the number of runs without a result."""
    return sum(grid.missing for grid in grids)


def score_groups(
    groups: Sequence[tuple[Group, bool]], roles: Roles, missing: int = 0
) -> GridObjectiveScore:
    """Score a policy on groups, each with whether a change stops the job."""
    labels = list(dict.fromkeys(row.label for group, _ in groups for row in group.rows))
    for option, name in (("policy", roles.policy), ("tuned", roles.tuned), ("peak", roles.peak)):
        if name is not None and name not in labels:
            raise InputError(f"--{option}", f"has no results: {name!r}", nearest(name, labels))
    cells = [score_cell(group, roles, has_pause=pause) for group, pause in groups]
    return GridObjectiveScore(
        roles=roles,
        cells=tuple(cell for cell in cells if cell is not None),
        policies=tuple(_score_policy(groups, label, roles) for label in labels),
        missing=missing,
    )


def score_cell(group: Group, roles: Roles, *, has_pause: bool) -> CellScore | None:
    """Score a policy against its rivals in one group; None if it did not run there."""
    rows = {row.label: row for row in group.rows}
    if roles.policy not in rows:
        return None
    row = rows[roles.policy]
    violated, hours = read_figure(row, VIOLATED), read_figure(row, COST.key)
    allowed = _allowed(rows, roles.peak)
    enough = max(violated, allowed)
    tuned = [
        other
        for other in group.rows
        if other.policy == roles.tuned != roles.policy and read_figure(other, VIOLATED) <= enough
    ]
    best = min(tuned, key=lambda other: read_figure(other, COST.key), default=None)
    base = rows.get(roles.tuned or "")
    return CellScore(
        name=group.name,
        has_pause=has_pause,
        violated=violated,
        allowed=allowed,
        replica_hours=hours,
        ratio=find_figure(row, HINDSIGHT.key),
        rescales=read_figure(row, RESCALES),
        base_rescales=None if base is None else read_figure(base, RESCALES),
        beaten_by=tuple(
            other.label
            for other in group.rows
            if other.label == other.policy not in (roles.policy, roles.peak)
            and read_figure(other, COST.key) < hours
            and read_figure(other, VIOLATED) <= violated
        ),
        tuned=None if best is None else best.label,
        tuned_saving=None if best is None else 1 - read_figure(best, COST.key) / hours,
    )


def find_figure(row: Row, key: str) -> float | None:
    """Return the mean of a figure over the seeds; None if it is unknown."""
    interval = row.figures.get(key)
    return None if interval is None else interval.mean


def read_figure(row: Row, key: str) -> float:
    """Return the mean of a figure that every run with an objective has."""
    value = find_figure(row, key)
    if value is None:
        hint = "the grid needs an objective: objective_s = ..."
        raise InputError("DIR", f"cell {row.cell} has no {key}", hint)
    return value


def _allowed(rows: Mapping[str, Row], peak: str | None) -> float:
    static = rows.get(peak or "")
    return max(MAX_VIOLATED, read_figure(static, VIOLATED) if static is not None else 0.0)


def _score_policy(groups: Sequence[tuple[Group, bool]], label: str, roles: Roles) -> PolicyScore:
    seen = []
    for group, has_pause in groups:
        rows = {row.label: row for row in group.rows}
        if label in rows:
            seen.append((rows[label], _allowed(rows, roles.peak), has_pause))
    return PolicyScore(
        label=label,
        cells=len(seen),
        kept=sum(read_figure(row, VIOLATED) <= allowed for row, allowed, _ in seen),
        violated=fmean(read_figure(row, VIOLATED) for row, _, _ in seen),
        ratio=_mean(find_figure(row, HINDSIGHT.key) for row, _, pause in seen if not pause),
        ratio_with_pause=_mean(find_figure(row, HINDSIGHT.key) for row, _, pause in seen if pause),
        rescales=fmean(read_figure(row, RESCALES) for row, _, _ in seen),
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
