"""`penstock replay`: runs another policy on a recorded run, open loop or closed loop."""

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock import __version__
from penstock.cli.options import parse_pairs
from penstock.cli.subcommands import add_command
from penstock.control.decider import Decider
from penstock.errors import InputError
from penstock.reports.replay_text import answer_json, answers_text, summary_text
from penstock.reports.result_text import comparison
from penstock.runs.journal_header import SIMULATOR, decider_of, engine_kind, policy_asked
from penstock.runs.replay import replay, summary
from penstock.runs.result import RunResult
from penstock.runs.run_directory import RESULT, RunDirectory, read_run
from penstock.runs.simulated_run import prepare_simulation
from penstock.runs.spec import SimulationSpec

EXAMPLES = """\
examples:
  penstock replay runs/q1 --policy dhalion                 what would Dhalion have decided?
  penstock replay runs/q1 --policy dhalion --closed-loop   what would have happened with Dhalion?
  penstock replay runs/q1                                  the recorded policy again
  penstock replay runs/q1 --param target=0.9 --all         the recorded policy, other parameters

Open loop (default): the other policy sees the recorded snapshots; its decisions have no effect.
Closed loop: the same load is simulated with the other policy; the run must be a simulation.
Guards are those of the recorded run, with the defaults of the other policy.
"""
#: Rows printed without --all.
_ROWS = 40


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "replay",
        summary="what would another policy have decided in a recorded run?",
        description="Ask another policy about a recorded run, or simulate it with that policy.",
        examples=EXAMPLES,
        run=run,
    )
    add = parser.add_argument
    add("directory", metavar="RUN", help="run directory")
    add("--policy", metavar="NAME", help="see penstock policies (default: the recorded one)")
    add("--param", action="append", default=[], metavar="K=V", help="parameter of the policy")
    add("--guard", action="append", default=[], metavar="K=V", help="override a guard of the run")
    add("--closed-loop", action="store_true", help="simulate the run with the other policy")
    add("--all", action="store_true", help="print all rows")
    add("--json", action="store_true", help="print JSON")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A recorded run and its spec, and the same with another policy."""

    run: RunDirectory
    ran: str
    asks: str
    recorded: Mapping[str, Any]
    other: Mapping[str, Any]
    decider: Decider
    #: Simulates the other; None for a run that was not simulated.
    simulate: Callable[[], RunResult] | None = None


def run(args: argparse.Namespace) -> int:
    """Replay open loop or closed loop."""
    recorded = read_run(Path(args.directory))
    if recorded.versions["penstock"] != __version__:
        version = recorded.versions["penstock"]
        print(f"note: this run was recorded by penstock {version}", file=sys.stderr)
    if recorded.journal.begins_s:
        since = f"{recorded.journal.begins_s / 60:.0f} min"
        print(f"note: the journal of the first {since} was removed", file=sys.stderr)
    params, guards = parse_pairs(args.param, "--param"), parse_pairs(args.guard, "--guard")
    simulated = engine_kind(recorded.journal.run) == SIMULATOR
    ask = _of_simulated if simulated else _of_real
    question = ask(recorded, args.policy or "", params, guards)
    if args.closed_loop:
        data, lines = _closed_loop(question)
    else:
        data, lines = _open_loop(question, rows=None if args.all else _ROWS)
    print(json.dumps(data, indent=2) if args.json else "\n".join(lines))
    return 0


def _of_simulated(
    run: RunDirectory, policy: str, params: dict[str, str], guards: dict[str, str]
) -> Question:
    """Prepare a simulated run again with the other policy."""
    asked = SimulationSpec.from_json(run.spec)
    prepared = prepare_simulation(with_policy(asked, policy or asked.policy, params, guards))
    return Question(
        run=run,
        ran=asked.policy,
        asks=prepared.spec.policy,
        recorded=asked.to_json(),
        other=prepared.spec.to_json(),
        decider=prepared.decider(),
        simulate=prepared.run,
    )


def _of_real(
    run: RunDirectory, policy: str, params: dict[str, str], guards: dict[str, str]
) -> Question:
    """Take policy and guards of any other run from the header of its journal."""
    header = run.journal.run
    ran = policy_asked(header)
    asks, held = policy or ran, header.get("guards", {})
    decider = decider_of(header, asks, params, guards)
    recorded = {"policy": ran, "params": header.get("params", {}), "guards": held}
    kept = header.get("params", {}) if asks == ran else {}
    changed = {"params": {**kept, **params}, "guards": {**held, **guards}}
    return Question(
        run=run,
        ran=ran,
        asks=asks,
        recorded=recorded,
        other={"policy": asks, **changed},
        decider=decider,
    )


def with_policy(
    asked: SimulationSpec, policy: str, params: dict[str, str], guards: dict[str, str]
) -> SimulationSpec:
    """Return the same run with another policy; parameters stay with their policy."""
    kept = asked.params if policy == asked.policy else {}
    return replace(
        asked, policy=policy, params={**kept, **params}, guards={**asked.guards, **guards}
    )


def _open_loop(question: Question, rows: int | None) -> tuple[dict[str, Any], list[str]]:
    answers = list(replay(question.run.journal.ticks, question.decider))
    if not answers:
        raise InputError("", "contains no snapshot to replay", where=str(question.run.directory))
    figures = summary(answers)
    data = {
        "loop": "open",
        "question": "what would have been answered on the recorded snapshots",
        "recorded": question.recorded,
        "other": question.other,
        **figures,
        "answers": [answer_json(answer) for answer in answers],
    }
    ran, asks = question.ran, question.asks
    head = [
        f"open loop: decisions of {asks} on the snapshots of {question.run.directory}",
        f"The run was scaled by {ran}; decisions of {asks} have no effect.",
        "",
        f"replicas wanted: {ran}, recorded | {asks}, replayed",
    ]
    return data, [*head, *answers_text(answers, rows), "", *summary_text(figures)]


def _closed_loop(question: Question) -> tuple[dict[str, Any], list[str]]:
    before, directory = question.run.result, question.run.directory
    if question.simulate is None:
        hint = "omit --closed-loop"
        raise InputError("--closed-loop", "this run was not simulated", hint, str(directory))
    if before is None:
        hint = "simulate it again, or omit --closed-loop"
        raise InputError("", f"has no {RESULT}: the run did not finish", hint, str(directory))
    after = question.simulate()
    data = {
        "loop": "closed",
        "question": "what would have happened: the same load, simulated",
        "recorded": before.to_json(),
        "other": after.to_json(),
    }
    ran, asks = question.ran, question.asks
    head = f"closed loop: the load of {directory}, simulated with {asks}"
    columns = {f"{ran}, recorded": before, f"{asks}, simulated": after}
    return data, [head, "", *comparison(columns)]
