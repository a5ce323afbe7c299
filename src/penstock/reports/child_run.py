"""The main function of a child process that runs the spec of a directory and prints a report."""

import sys
from pathlib import Path

from penstock.errors import InputError, PenstockError
from penstock.reports.run_view import ScreenView
from penstock.reports.spark_result_text import report
from penstock.runs.execution import execute
from penstock.runs.spark_preparation import prepare_spark_run
from penstock.runs.spec import read_spec


def run_and_report(directory: Path) -> int:
    """Run the spec of a directory, print a report on stdout, and return the exit code."""
    prepared = prepare_spark_run(read_spec(directory))
    execution = execute(prepared, directory, ScreenView(plain=True))
    print("\n".join(report(execution.result, directory)))
    return execution.code


def main(directory: str) -> int:
    """Run a directory; errors go to stderr, with the exit codes of `penstock run`."""
    try:
        return run_and_report(Path(directory))
    except KeyboardInterrupt:
        return 130
    except PenstockError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
