"""The configurations of `penstock decentralized check --all`, and how a check runs."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from penstock.decentralized.checker.configuration import BUGS, CheckConfig, plant_bug
from penstock.decentralized.checker.exploration import SearchProgress
from penstock.decentralized.checker.verdict import CheckVerdict, check_protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class SuiteCheck:
    """A named check; a bug must be found, everything else must hold."""

    name: str
    config: CheckConfig
    bug: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckRun:
    """A check with its name, its verdict and the time that it took."""

    check: SuiteCheck
    verdict: CheckVerdict
    wall_s: float
    cpu_s: float

    @property
    def is_as_expected(self) -> bool:
        """Whether a bug was found, or the invariants of the corrected protocol hold."""
        return (self.verdict.violation is not None) == bool(self.check.bug)


_SMALL = CheckConfig(instances=(1, 1, 1), max_instances=2, actions=2, records=1)
_WIDE = replace(_SMALL, max_instances=3)
#: Only a node that can have two copies under way can lose count of its acks.
_BUG_CONFIGS = {"decide-while-busy": replace(_WIDE, instances=(1, 1), records=0)}


def bug_config(name: str) -> CheckConfig:
    """Return a small configuration in which a planted bug shows."""
    return plant_bug(_BUG_CONFIGS.get(name, _SMALL), name)


def standard_suite() -> list[SuiteCheck]:
    """Return the checks of the corrected protocol, then one per planted bug."""
    once = replace(_SMALL, reuses_names=False, has_symmetry=False, has_partial_order=False)
    wide = replace(_WIDE, actions=1)
    sorted_only = replace(wide, has_partial_order=False)
    checks = {
        "names used once, no reduction": once,
        "no reduction": replace(sorted_only, has_symmetry=False),
        "symmetry only": sorted_only,
        "both reductions, as below": wide,
        "2 actions": _SMALL,
        "3 actions": replace(_SMALL, actions=3, records=2),
        "4 operators": replace(_SMALL, instances=(1, 1, 1, 1), records=0),
        "3 instances, 3 actions": replace(_WIDE, instances=(1, 1), actions=3),
        "3 instances, 2 actions": replace(_WIDE, records=0),
    }
    holds = [SuiteCheck(name=name, config=config) for name, config in checks.items()]
    return holds + [SuiteCheck(name=bug, config=bug_config(bug), bug=bug) for bug in BUGS]


def run_check(
    check: SuiteCheck,
    max_states: int | None = None,
    on_progress: Callable[[SearchProgress], None] = lambda _: None,
) -> CheckRun:
    """Run a check, with the time that it takes."""
    wall_s, cpu_s = time.monotonic(), time.process_time()
    verdict = check_protocol(check.config, max_states, on_progress)
    return CheckRun(
        check=check,
        verdict=verdict,
        wall_s=time.monotonic() - wall_s,
        cpu_s=time.process_time() - cpu_s,
    )
