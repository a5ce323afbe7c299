"""`penstock pubsub`: the service, its clients, keys of spaces, the speed of matching."""

import argparse
import json
from pathlib import Path

from penstock.cli.pubsub_bench import add_bench_verbs
from penstock.cli.pubsub_clients import add_client_verbs
from penstock.cli.pubsub_demo import add_demo_verb
from penstock.cli.pubsub_elasticity import add_elasticity_verb
from penstock.cli.pubsub_serve import add_serve_verbs
from penstock.cli.subcommands import add_group, add_verb

GROUP_EXAMPLES = """\
examples:
  penstock pubsub demo                                               see it work
  penstock pubsub serve --dir ticks --space ticks.toml --local       a service on this machine
  penstock pubsub token --dir ticks --name alice > alice.token       a token for it
  penstock pubsub subscribe "price > 10" --token-file alice.token    print matching events
  penstock pubsub publish --token-file alice.token '{"price": 12}'
  penstock pubsub keygen --space ticks.toml --out ticks.key          for an encrypted space
  penstock pubsub bench --encrypted                                  how fast matching is

See docs/pubsub.md.
"""
EXAMPLES = """\
examples:
  penstock pubsub bench --encrypted                       100,000 subscriptions, 4 attributes
  penstock pubsub keygen --space ticks.toml --out ticks.key

A space declares the attributes that subscriptions may compare:

  format = 1
  scheme = "aspe"              # or "plain"
  [attributes.price]
  low = 0
  high = 500
  step = 0.01
  [attributes.symbol]
  text = true

The scheme aspe protects from reading, not from a computational attack: see docs/pubsub.md. A key
file stays with publishers and subscribers; the matcher never needs it.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command with its verbs."""
    verbs = add_group(
        commands,
        "pubsub",
        summary="publish/subscribe by content: a service, its clients, keys",
        description="Publish events, subscribe with predicates over their content.",
        examples=GROUP_EXAMPLES,
    )
    add_serve_verbs(verbs)
    add_client_verbs(verbs)
    add_demo_verb(verbs)
    add_bench_verbs(verbs)
    add_elasticity_verb(verbs)
    about = "write a new key file for a space, readable by its owner only"
    add = add_verb(verbs, "keygen", about, EXAMPLES, run_keygen).add_argument
    add("--space", type=Path, required=True, metavar="FILE", help="declaration of the space, TOML")
    about = "key file; one that exists is never replaced"
    add("--out", type=Path, required=True, metavar="FILE", help=about)


# Each verb imports what it needs: Arrow takes long to load, and other commands do not need it.


def run_keygen(args: argparse.Namespace) -> int:
    """Write a key file; its content is never printed."""
    from penstock.pubsub.spaces.space import read_space  # noqa: PLC0415
    from penstock.pubsub.spaces.space_key import make_space_key, write_space_key  # noqa: PLC0415
    from penstock.reports.pubsub_text import key_json, key_text  # noqa: PLC0415

    space = read_space(args.space)
    write_space_key(args.out, make_space_key(space))
    if args.json:
        print(json.dumps(key_json(space, args.out), indent=2))
    else:
        print(key_text(space, args.out))
    return 0
