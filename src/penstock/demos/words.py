"""Words: the word count in two stages on which the papers of Dhalion and DS2 try their policies.

Sentences are split into words, and words are counted; the second operator has state. Some words are
far more frequent than others, so slices of the state differ in load.
"""

import numpy as np
import pyarrow as pa

from penstock.demos.support.emulated_service import EmulatedService, with_service
from penstock.pipelines import record_draws as draws
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.stateful.keyed_counts import counts
from penstock.pipelines.text_columns import choose, pc, word_list

#: The service time of a word relative to that of a sentence.
WORD = 0.1
#: Words in a sentence.
MIN_WORDS, MAX_WORDS = 4, 12
_SMALL = word_list("the of and to in a is that for it as was with on by at from this not are")
_FIRST = word_list(
    "rain night sea moon wind mill stone oak river fire snow light corn iron rose hill marsh frost"
)
_SECOND = word_list(
    "fall light side house bird field bank work land path gate bridge keeper song water storm"
)
#: By rank: small words come first, as they do everywhere.
WORDS = (*_SMALL, *(first + second for second in _SECOND for first in _FIRST if first != second))
_SHIFT = 2.7
_SHARES = 1 / (np.arange(1, len(WORDS) + 1) + _SHIFT)


def sentences(first: int, due: pa.Array) -> pa.Table:
    """Return sentences.

    >>> sentences(1, pa.nulls(1)).to_pylist()
    [{'id': 1, 'line': 'firelight marshfall rosegate is not oakgate and'}]
    """
    ids = first + np.arange(len(due))
    sizes = MIN_WORDS + draws.pick(ids, "length", MAX_WORDS - MIN_WORDS + 1)
    numbers = ids[:, None] * MAX_WORDS + np.arange(MAX_WORDS)
    drawn = draws.pick_by_share(numbers, "word", (_SHARES / _SHARES.sum()).tolist())
    kept = np.arange(MAX_WORDS) < sizes[:, None]
    words = choose(WORDS, drawn[kept])
    ends = np.concatenate(([0], np.cumsum(sizes))).astype(np.int32)
    lines = pa.ListArray.from_arrays(pa.array(ends), words)
    return pa.table({"id": ids, "line": pc.binary_join(lines, " ")})


def split_words(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return one row for each word of each sentence, numbered by its sentence and its place in it.

    >>> split_words(pa.record_batch({"id": [2], "line": ["so be it"]})).to_pylist()[1:]
    [{'id': 25, 'word': 'be'}, {'id': 26, 'word': 'it'}]
    """
    words = pc.split_pattern(batch.column("line"), " ")
    sentence = pc.list_parent_indices(words).to_numpy()
    begins = np.concatenate(([0], np.cumsum(np.bincount(sentence, minlength=len(batch)))))
    place = np.arange(len(sentence)) - begins[sentence]
    ids = batch.column("id").to_numpy()[sentence] * MAX_WORDS + place
    return pa.record_batch({"id": ids, "word": pc.list_flatten(words)})


def build(service_s: float = 0.4, scv: float = 0.1) -> Pipeline:
    """Declare the pipeline; splitting a sentence takes service_s on average, a word a tenth of it.

    Both operators wait for the rest of these times, as they would for a server; the papers slow
    their operators down, too. With 0 nothing waits.
    """
    service = EmulatedService(service_s=service_s, scv=scv)
    pipeline = Pipeline("words", objective_s=5, summary="sentences are split, words are counted")
    pipeline.topic("sentences", "id long, line string")
    pipeline.topic("words", "id long, word string")

    pipeline.produces("sentences", arrivals="poisson")(sentences)

    @pipeline.batches(reads="sentences", writes="words", chunk_rows=service.chunk_rows)
    def split(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Split sentences into words."""
        with service.emulate("split", batch["id"]):
            return split_words(batch)

    waiting = with_service(counts(by="word"), service.but(service_s=service_s * WORD), "count")
    pipeline.sliced(reads="words", writes="counts", name="count")(waiting)
    return pipeline


PIPELINE = build()
