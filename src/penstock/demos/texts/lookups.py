"""Lookups of names, as the log of a name server has them: made by number.

Most names are ordinary. Some are made up by programs that look for their master (generated), and
some carry data out of a network, hidden in long names (tunnel). All names and addresses are from
the ranges that are set aside for examples.
"""

import numpy as np
import pyarrow as pa

from penstock.errors import InputError
from penstock.pipelines import record_draws as draws
from penstock.pipelines.text_columns import choose, join, pc, word_list

KINDS = ("ordinary", "generated", "tunnel")
_KIND_SHARES = (0.9, 0.07, 0.03)
_TYPES = ("A", "AAAA", "MX", "TXT")
_TYPE_SHARES = (0.7, 0.2, 0.05, 0.05)
#: Of ordinary names so many are of a file in a delivery network, and look made up, too.
_DELIVERED = 0.08

_HOSTS = word_list("www mail api static img login shop news video maps docs time")
_WORDS = word_list("blue stone river north light garden market cloud paper silver harbour bright")
_ENDINGS = ("example", "test", "example.com", "example.net", "example.org")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_HEX = "0123456789abcdef"
_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"


def kinds(ids: draws.Ids) -> draws.Indices:
    """Draw what kind of name each record looks up, as an index into KINDS."""
    return draws.pick_by_share(ids, "kind of name", _KIND_SHARES)


def names(ids: draws.Ids) -> pa.Array:
    """Return the name that each record looks up."""
    site = join(_word(ids, "first word"), _word(ids, "second word"), ".", _ending(ids))
    host = choose(_HOSTS, draws.pick(ids, "host", len(_HOSTS)))
    ordinary = join(host, ".", site)
    delivered = join(_letters(ids, "file", _HEX, 8, 12), ".cdn.", site)
    generated = join(_letters(ids, "made up", _LETTERS, 10, 20), ".", _ending(ids))
    tunnel = join(_letters(ids, "data", _BASE32, 32, 56), ".t.", site)
    of_a_file = draws.uniform(ids, "delivered") < _DELIVERED
    plain = pc.if_else(pa.array(of_a_file), delivered, ordinary)
    return pc.choose(pa.array(kinds(ids)), plain, generated, tunnel)


def lookups(first: int, due: pa.Array) -> pa.Table:
    """Return the rows of the log: who asks, for which name, for which type of answer."""
    ids = first + np.arange(len(due))
    client = pc.cast(pa.array(draws.pick(ids, "client", 254) + 1), pa.string())
    types = choose(_TYPES, draws.pick_by_share(ids, "type", _TYPE_SHARES))
    line = join("192.0.2.", client, " ", names(ids), " ", types)
    return pa.table({"id": ids, "line": line})


def parse(log: pa.RecordBatch) -> pa.RecordBatch:
    """Take lines of the log apart."""
    line = log.column("line")
    fields = pc.extract_regex(line, r"^(?P<client>\S+) (?P<name>\S+) (?P<type>\S+)$")
    if fields.null_count:
        wrong = line.filter(fields.is_null())[0].as_py()
        raise InputError("line", f"must be an address, a name and a type, got {wrong!r}")
    client, name, kind = fields.flatten()
    return pa.record_batch({"id": log.column("id"), "client": client, "name": name, "type": kind})


def _word(ids: draws.Ids, stream: str) -> pa.Array:
    return choose(_WORDS, draws.pick(ids, stream, len(_WORDS)))


def _ending(ids: draws.Ids) -> pa.Array:
    return choose(_ENDINGS, draws.pick(ids, "ending", len(_ENDINGS)))


def _letters(ids: draws.Ids, stream: str, alphabet: str, low: int, high: int) -> pa.Array:
    """Return low to high letters at random for each record."""
    eights = -(-high // 8)  # 64 drawn bits are enough for eight letters
    numbers = ids[:, None] * eights + np.arange(eights)
    drawn = draws.bits(numbers, stream).view(np.uint8) % len(alphabet)
    sizes = low + draws.pick(ids, f"{stream}, length", high - low + 1)
    kept = np.arange(drawn.shape[1]) < sizes[:, None]
    letters = np.frombuffer(alphabet.encode(), dtype=np.uint8)[drawn[kept]]
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(letters)]
    return pa.Array.from_buffers(pa.string(), len(ids), buffers)
