"""Settings of Kafka clients: TLS and SASL pass through, secrets are never shown. Pure.

Settings travel to other processes by reference: a properties file by its path, a secret by the
name of an environment variable. So no secret is in a pickle, a plan, a log or a run directory.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import InputError

#: Settings that hold a secret, by a part of their name.
_SECRET = re.compile(
    r"password|secret|jaas|key\.pem|oauthbearer\.config|private|token(?!\.endpoint)", re.IGNORECASE
)
#: A reference to an environment variable.
_REFERENCE = re.compile(r"\$\{env:(?P<name>[A-Za-z_]\w*)\}")
_MASK = "***"
#: Settings on which exactly once depends.
_OWN = frozenset(
    {
        *("bootstrap.servers", "metadata.broker.list", "group.id", "group.instance.id"),
        *("enable.auto.commit", "enable.auto.offset.store", "auto.offset.reset"),
        *("enable.partition.eof", "isolation.level", "transactional.id", "enable.idempotence"),
        *("acks", "request.required.acks", "delivery.report.only.error"),
    }
)
#: Settings of Java clients that librdkafka has under another name.
_JAVA_ONLY = {
    "sasl.jaas.config": "sasl.username and sasl.password",
    "ssl.truststore.location": "ssl.ca.location, a file in PEM",
    "ssl.truststore.password": "ssl.ca.location, a file in PEM",
    "ssl.truststore.type": "ssl.ca.location, a file in PEM",
}


@dataclass(frozen=True, slots=True, repr=False)
class ClientSettings:
    """Settings by reference; `resolve` reads files and environment where a client is made.

    >>> ClientSettings({"sasl.password": "${env:KAFKA_PASSWORD}", "sasl.username": "me"})
    ClientSettings({'sasl.password': '***', 'sasl.username': 'me'})
    """

    values: Mapping[str, str] = field(default_factory=dict)
    #: The path of a properties file; its settings come first, `values` replace them.
    file: str | None = None

    def __repr__(self) -> str:
        shown: list[str] = [repr(mask(self.values))]
        if self.file is not None:
            shown.append(f"file={self.file!r}")
        return f"ClientSettings({', '.join(shown)})"

    def resolve(self, environment: Mapping[str, str] | None = None) -> dict[str, str]:
        """Return the settings with the secrets in place; for a client, not for anything else."""
        known = os.environ if environment is None else environment
        given = {**(read_properties(Path(self.file)) if self.file else {}), **self.values}
        return {name: _insert(name, value, known) for name, value in given.items()}

    def to_options(self) -> dict[str, str]:
        """Return the settings as options of a data source."""
        options = {f"{_PREFIX}{name}": value for name, value in self.values.items()}
        return options | ({_FILE: self.file} if self.file is not None else {})

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> "ClientSettings":
        """Read what `to_options` returned; options have lower-case names."""
        values = {
            name.removeprefix(_PREFIX): value
            for name, value in options.items()
            if name.startswith(_PREFIX)
        }
        return cls(values, options.get(_FILE))


_PREFIX, _FILE = "setting.", "properties"


def make_settings(
    settings: Mapping[str, Any] | None = None, properties: str | Path | None = None
) -> ClientSettings:
    """Check settings and return them; `InputError` names the wrong one, never its value."""
    values = {str(name): _text(value) for name, value in (settings or {}).items()}
    file = None if properties is None else str(Path(properties).absolute())
    read = {} if file is None else read_properties(Path(file))
    for name, value in values.items():
        _check_name(name, "settings")
        if is_secret(name) and not _REFERENCE.fullmatch(value):
            problem = "must not stand in code, which is copied to the run directory"
            hint = "write ${env:NAME} and set the environment variable, or use a properties file"
            raise InputError(f"settings.{name}", problem, hint)
    for name in read:
        _check_name(name, str(file))
    return ClientSettings(values, file)


def is_secret(name: str) -> bool:
    """Whether a setting holds a secret.

    >>> is_secret("sasl.password"), is_secret("ssl.key.pem"), is_secret("sasl.username")
    (True, True, False)
    """
    return _SECRET.search(name) is not None


def mask(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings with secrets replaced, for messages."""
    return {name: _MASK if is_secret(name) else value for name, value in values.items()}


def read_properties(path: Path) -> dict[str, str]:
    """Read a properties file: `name=value` lines, comments with # or !."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        raise InputError("properties", f"{path} cannot be read: {reason}") from None
    values = {}
    for number, line in enumerate(map(str.strip, lines), start=1):
        if not line or line[0] in "#!":
            continue
        name, equals, value = line.partition("=")
        if not equals:
            # the line is not repeated: it may hold a secret
            raise InputError(f"line {number}", "is not name=value", where=str(path))
        values[name.strip()] = value.strip()
    return values


def _check_name(name: str, place: str) -> None:
    if name in _OWN:
        problem = "is set by Penstock: reading and writing once depend on it"
        raise InputError(f"{place}.{name}", problem, "leave it out")
    if name in _JAVA_ONLY:
        problem = "is for Java clients; this is librdkafka"
        raise InputError(f"{place}.{name}", problem, f"use {_JAVA_ONLY[name]}")


def _insert(name: str, value: str, known: Mapping[str, str]) -> str:
    """Return a value with its reference to the environment replaced."""
    match = _REFERENCE.fullmatch(value)
    if match is None:
        return value
    if match["name"] not in known:
        problem = f"environment variable {match['name']} is not set"
        raise InputError(f"settings.{name}", problem, "set it where the run is started")
    return known[match["name"]]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)
