"""The file control.jsonl of a run: one line per request of a person, read by the running loop.

Everybody who may write to the run directory may ask; the dashboard asks for people with its token.
"""

import json
import os
from collections.abc import Sequence
from pathlib import Path

from penstock.control.requests import ControlRequest, ControlState
from penstock.errors import InputError
from penstock.runs.snapshot_lines import parse_json

CONTROL = "control.jsonl"
#: A longer line is no request.
_MAX_LINE_BYTES = 4096


def append_request(run: Path, request: ControlRequest) -> None:
    """Add a request to the file of a run."""
    line = json.dumps(request.to_json(), separators=(",", ":")).encode() + b"\n"
    # one write in append mode, so that lines of two processes do not mix
    descriptor = os.open(run / CONTROL, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class ControlFile:
    """Reads the requests of a run as they come."""

    def __init__(self, run: Path, journaled: int = 0) -> None:
        """Open the file; the first `journaled` requests are in the journal of the run already."""
        self._path = run / CONTROL
        self._size, self._number = 0, 0
        self._error: InputError | None = None
        #: What was asked before the loop began.
        self.state = ControlState()
        while self._number < journaled:
            requests = self._read(journaled - self._number)
            if not requests:
                break
            for _, request in requests:
                if request is not None:
                    self.state = self.state.after(request)
        self._error = None  # the journal has it

    def read_new(self) -> Sequence[tuple[int, ControlRequest]]:
        """Return the requests since the last call with their numbers.

        `InputError` names a line that is no request; the lines behind it come with the next call.
        """
        requests = []
        for number, request in self._read():
            if request is None:
                break
            requests.append((number, request))
        if not requests and self._error is not None:
            error, self._error = self._error, None
            raise error
        return requests

    def _read(self, limit: int | None = None) -> list[tuple[int, ControlRequest | None]]:
        """Read complete lines; a line that is no request ends them, as None."""
        try:
            with self._path.open("rb") as stream:
                stream.seek(self._size)
                data = stream.read()
        except OSError:  # nobody has asked yet
            return []
        requests: list[tuple[int, ControlRequest | None]] = []
        for line in data.splitlines(keepends=True)[:limit]:
            if not line.endswith(b"\n"):
                break
            self._size += len(line)
            self._number += 1
            try:
                requests.append((self._number, _parse(line)))
            except InputError as error:
                self._error = error.at(f"{self._path.name}:{self._number}")
                requests.append((self._number, None))
                if limit is None:
                    break
        return requests


def _parse(line: bytes) -> ControlRequest:
    if len(line) > _MAX_LINE_BYTES:
        raise InputError("", "is too long")
    try:
        text = line.decode()
    except UnicodeDecodeError:
        raise InputError("", "is not UTF-8") from None
    return ControlRequest.from_json(parse_json(text))
