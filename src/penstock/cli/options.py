"""Options that several commands share."""

import argparse
import json
import logging
import sys
from collections.abc import Sequence
from datetime import UTC, datetime

from penstock.errors import InputError
from penstock.workloads.pattern import SEED

#: The logger of everything in Penstock; `penstock/__init__.py` gives it a null handler.
LOGGER = "penstock"
LOG_FORMATS = ("text", "json")


def log_options() -> argparse.ArgumentParser:
    """Return the parent parser with the options that every command has."""
    parent = argparse.ArgumentParser(add_help=False)
    group = parent.add_argument_group("logging")
    group.add_argument("--verbose", action="store_true", help="write log lines to stderr")
    group.add_argument(
        "--log-format",
        choices=LOG_FORMATS,
        metavar="FORMAT",
        help="text or json, one object per line; implies --verbose",
    )
    return parent


def configure_logging(args: argparse.Namespace) -> None:
    """Send Penstock's log records to stderr if the options ask for it."""
    logger = logging.getLogger(LOGGER)
    for handler in [h for h in logger.handlers if isinstance(h, _StderrHandler)]:
        logger.removeHandler(handler)
    if not (args.verbose or args.log_format):
        logger.setLevel(logging.NOTSET)
        return
    handler = _StderrHandler(sys.stderr)
    handler.setFormatter(_JsonFormatter() if args.log_format == "json" else _TextFormatter())
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)


class _StderrHandler(logging.StreamHandler):  # type: ignore[type-arg]
    """The handler that `configure_logging` installs, and may replace."""


class _TextFormatter(logging.Formatter):
    """Time in UTC, level, logger, message."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: N802, ARG002
        """Write the time as ISO 8601 in UTC."""
        return _iso_time(record)


class _JsonFormatter(logging.Formatter):
    """One JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """Write time, level, logger and message, and the traceback if there is one."""
        fields = {
            "time": _iso_time(record),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields)


def _iso_time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")


def add_pairs(parser: argparse.ArgumentParser, option: str, about: str) -> None:
    """Add an option `K=V` that may be given several times; `parse_pairs` reads it."""
    parser.add_argument(option, action="append", default=[], metavar="K=V", help=about)


def add_seed(parser: argparse.ArgumentParser) -> None:
    """Add `--seed`."""
    about = "random seed (default: %(default)s)"
    parser.add_argument("--seed", type=int, default=SEED, metavar="S", help=about)


def parse_pairs(pairs: Sequence[str], option: str) -> dict[str, str]:
    """Read `k=v` options into a dictionary.

    >>> parse_pairs(["target=0.9"], "--param")
    {'target': '0.9'}
    """
    given: dict[str, str] = {}
    for pair in pairs:
        name, sign, value = pair.partition("=")
        name = name.strip()
        if not name.startswith("spark."):  # names of ours
            name = name.replace("-", "_")
        if not sign or not name or not value.strip():
            raise InputError(option, f"must be name=value, got {pair!r}")
        if name in given:
            raise InputError(option, f"gives {name!r} twice")
        given[name] = value.strip()
    return given


def read_minutes(text: str) -> float:
    """Read minutes, or a part of one; whole ones stay whole numbers.

    >>> read_minutes("140"), read_minutes("0.5")
    (140, 0.5)
    """
    try:
        number = float(text)
        return int(number) if number == int(number) else number
    except (ValueError, OverflowError):
        raise argparse.ArgumentTypeError(f"must be a number of minutes, got {text!r}") from None


def read_initial(text: str | None) -> dict[str, int] | int | None:
    """Read replicas for all operators, or by name.

    >>> read_initial("5"), read_initial("source:5,sink:2")
    (5, {'source': 5, 'sink': 2})
    """
    if text is None:
        return None
    try:
        if ":" not in text:
            return int(text)
        pairs = [part.rpartition(":") for part in text.split(",")]
        return {name.strip(): int(number) for name, _, number in pairs}
    except ValueError:
        problem = f"must be a whole number, or name:number pairs, got {text!r}"
        raise InputError("--initial", problem, "such as 5, or source:5,sink:2") from None


def check_at_least_1(option: str, value: int | None) -> None:
    """Refuse a count below 1; None means the default."""
    if value is not None and value < 1:
        raise InputError(option, f"must be at least 1, got {value}")
