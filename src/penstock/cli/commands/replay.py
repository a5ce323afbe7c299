"""`penstock replay`: runs another policy on a recorded run, open loop or closed loop."""

import argparse
import json
import sys
from pathlib import Path

from penstock.cli.options import add_pairs, parse_pairs
from penstock.cli.subcommands import add_command
from penstock.reports.replay_text import (
    closed_loop_json,
    closed_loop_text,
    open_loop_json,
    open_loop_text,
    recording_notes,
)
from penstock.runs.policy_replay import prepare_replay
from penstock.runs.run_directory import read_run

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
    add("directory", type=Path, metavar="RUN", help="run directory")
    add("--policy", metavar="NAME", help="see penstock policies (default: the recorded one)")
    add_pairs(parser, "--param", "parameter of the policy")
    add_pairs(parser, "--guard", "override a guard of the run")
    add("--closed-loop", action="store_true", help="simulate the run with the other policy")
    add("--all", action="store_true", help="print all rows")
    add("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Replay open loop or closed loop."""
    recorded = read_run(args.directory)
    for note in recording_notes(recorded):
        print(f"note: {note}", file=sys.stderr)
    params, guards = parse_pairs(args.param, "--param"), parse_pairs(args.guard, "--guard")
    replay = prepare_replay(recorded, args.policy or "", params, guards)
    if args.closed_loop:
        results = replay.closed_loop()
        if args.json:
            print(json.dumps(closed_loop_json(results), indent=2))
        else:
            print("\n".join(closed_loop_text(replay, results)))
        return 0
    answers = replay.open_loop()
    if args.json:
        print(json.dumps(open_loop_json(replay, answers), indent=2))
    else:
        print("\n".join(open_loop_text(replay, answers, None if args.all else _ROWS)))
    return 0
