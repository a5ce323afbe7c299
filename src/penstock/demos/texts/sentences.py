"""Sentences: words one behind the other, some of them far more frequent than others.

How often a word comes follows its rank, as Zipf and Mandelbrot found it in real texts: the first
word makes up about a twentieth of all.
"""

import numpy as np
import pyarrow as pa

from penstock.pipelines import record_draws as draws
from penstock.pipelines.text_columns import choose, pc, word_list

#: The number of words of a sentence.
FEWEST, MOST = 4, 12
_SMALL = word_list("the of and to in a is that for it as was with on by at from this not are")
_FIRST = word_list(
    "rain night sea moon wind mill stone oak river fire snow light corn iron rose hill marsh frost"
)
_SECOND = word_list(
    "fall light side house bird field bank work land path gate bridge keeper song water storm"
)
#: By rank: small words come first, as they do everywhere.
WORDS = (*_SMALL, *(one + other for other in _SECOND for one in _FIRST if one != other))
_SHIFT = 2.7
_SHARES = 1 / (np.arange(1, len(WORDS) + 1) + _SHIFT)


def sentences(first: int, due: pa.Array) -> pa.Table:
    """Return the rows of sentences.

    >>> sentences(1, pa.nulls(1)).to_pylist()
    [{'id': 1, 'line': 'firelight marshfall rosegate is not oakgate and'}]
    """
    ids = first + np.arange(len(due))
    sizes = FEWEST + draws.pick(ids, "length", MOST - FEWEST + 1)
    numbers = ids[:, None] * MOST + np.arange(MOST)
    drawn = draws.pick_by_share(numbers, "word", (_SHARES / _SHARES.sum()).tolist())
    kept = np.arange(MOST) < sizes[:, None]
    words = choose(WORDS, drawn[kept])
    ends = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    lines = pa.ListArray.from_arrays(pa.array(ends), words)
    return pa.table({"id": ids, "line": pc.binary_join(lines, " ")})


def split(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return one row for each word of each sentence, numbered by its sentence and its place in it.

    >>> split(pa.record_batch({"id": [2], "line": ["so be it"]})).to_pylist()[1:]
    [{'id': 25, 'word': 'be'}, {'id': 26, 'word': 'it'}]
    """
    words = pc.split_pattern(batch.column("line"), " ")
    sentence = pc.list_parent_indices(words).to_numpy()
    begins = np.concatenate(([0], np.cumsum(np.bincount(sentence, minlength=len(batch)))))
    place = np.arange(len(sentence)) - begins[sentence]
    ids = batch.column("id").to_numpy()[sentence] * MOST + place
    return pa.record_batch({"id": ids, "word": pc.list_flatten(words)})
