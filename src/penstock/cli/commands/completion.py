"""`penstock completion`: prints a script that completes commands in a shell."""

import argparse

from penstock.cli.subcommands import add_command

_SHELLS = ("bash", "zsh", "tcsh")
EXAMPLES = """\
examples:
  eval "$(penstock completion bash)"                            in ~/.bashrc
  penstock completion zsh > ~/.zfunc/_penstock                  a directory of $fpath
  penstock completion tcsh > ~/.penstock.tcsh                   source it in ~/.tcshrc

The script completes commands, options, and names of policies, workloads, pipelines and profiles.
Print it again after an update of Penstock or after installing policies.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "completion",
        summary="print a script that completes commands in a shell",
        description="Print a script that completes commands, options and names in a shell.",
        examples=EXAMPLES,
        run=run,
    )
    parser.add_argument("shell", choices=_SHELLS, help="the shell that reads the script")


def run(args: argparse.Namespace) -> int:
    """Print the script."""
    # imported here because the main module loads the commands, and the names load Arrow
    from penstock.cli.completion import completion_script  # noqa: PLC0415
    from penstock.cli.main import build_parser  # noqa: PLC0415

    print(completion_script(build_parser(), args.shell))
    return 0
