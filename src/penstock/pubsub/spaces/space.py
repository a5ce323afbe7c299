"""The declaration of a space: its scheme and its attributes, from TOML or JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.core.frozen_dict import FrozenDict
from penstock.errors import InputError, nearest
from penstock.files.text import read_toml
from penstock.pubsub.spaces.grid import NumberGrid

FORMAT = 1
PLAIN, ASPE = "plain", "aspe"
SCHEMES = (PLAIN, ASPE)
#: More attributes cost the matcher memory and time for every subscription.
MAX_ATTRIBUTES = 32


@dataclass(frozen=True, slots=True)
class TextDomain:
    """Any text; in an encrypted space it is compared by a keyed hash."""


@dataclass(frozen=True, slots=True)
class AnyDomain:
    """Any value, in plain spaces."""


Domain = NumberGrid | TextDomain | AnyDomain


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """A scheme, and the attributes that subscriptions may compare, by dotted path."""

    scheme: str
    attributes: FrozenDict[str, Domain]

    @property
    def paths(self) -> tuple[str, ...]:
        """The attributes in their declared order."""
        return tuple(self.attributes)

    def to_json(self) -> dict[str, Any]:
        """Return the declaration as a JSON object, which `parse_space` reads."""
        attributes = {path: _domain_json(domain) for path, domain in self.attributes.items()}
        return {"format": FORMAT, "scheme": self.scheme, "attributes": attributes}


def read_space(path: Path) -> Space:
    """Read the declaration of a space from a TOML file."""
    try:
        return parse_space(read_toml(path))
    except InputError as error:
        raise error.at(str(path)) from None


def parse_space(fields: Mapping[str, Any]) -> Space:
    """Check the declaration of a space.

    >>> space = parse_space({"format": 1, "scheme": "plain", "attributes": {"price": {}}})
    >>> space.paths
    ('price',)
    """
    _check_fields(fields, ("format", "scheme", "attributes"))
    if fields.get("format") != FORMAT:
        raise InputError("format", f"must be {FORMAT}, got {fields.get('format')!r}")
    scheme = fields.get("scheme")
    if scheme not in SCHEMES:
        raise InputError("scheme", f"must be plain or aspe, got {scheme!r}")
    attributes = fields.get("attributes")
    if not isinstance(attributes, Mapping) or not 1 <= len(attributes) <= MAX_ATTRIBUTES:
        raise InputError("attributes", f"must be a table of 1 to {MAX_ATTRIBUTES} attributes")
    domains = {path: _parse_domain(path, value, scheme) for path, value in attributes.items()}
    return Space(scheme=scheme, attributes=FrozenDict(domains))


def _parse_domain(path: str, fields: object, scheme: str) -> Domain:
    place = f"attributes.{path}"
    if not isinstance(fields, Mapping):
        raise InputError(place, f"must be a table, got {fields!r}")
    try:
        _check_fields(fields, ("text",) if "text" in fields else ("low", "high", "step"))
        if fields.get("text") is True:
            return TextDomain()
        if fields:
            return NumberGrid(low=fields["low"], high=fields["high"], step=fields["step"])
    except KeyError as error:
        raise InputError(f"{place}.{error.args[0]}", "is missing") from None
    except InputError as error:
        raise error.under(place) from None
    if scheme == ASPE:
        hint = "write low, high and step for a number, or text = true"
        raise InputError(place, "an encrypted space must know the values", hint)
    return AnyDomain()


def _check_fields(fields: Mapping[str, Any], known: tuple[str, ...]) -> None:
    for name in fields:
        if name not in known:
            raise InputError(str(name), "is not known", nearest(str(name), known))


def _domain_json(domain: Domain) -> dict[str, Any]:
    if isinstance(domain, NumberGrid):
        return {"low": domain.low, "high": domain.high, "step": domain.step}
    return {"text": True} if isinstance(domain, TextDomain) else {}
