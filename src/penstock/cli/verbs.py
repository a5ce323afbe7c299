"""Commands that have verbs, such as `penstock topics ls`: what every verb looks like."""

import argparse
from collections.abc import Callable


def add_verb(
    verbs: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    summary: str,
    examples: str,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    """Add a verb that can answer in JSON; what it looks at is for the caller to add."""
    verb = verbs.add_parser(
        name,
        help=summary,
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("--json", action="store_true", help="print JSON")
    verb.set_defaults(run=run)
    return verb
