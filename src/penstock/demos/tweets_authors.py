"""Tweets by author: the tweets of the predictive paper, and how many each author has written.

The four operators are those of `tweets`; a fifth one beside the last counts by author.
"""

from penstock.demos import tweets
from penstock.demos.support.emulated_service import EmulatedService, with_service
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.stateful.keyed_counts import counts


def build(service_s: float = 0.5, scv: float = 0.1) -> Pipeline:
    """Declare the pipeline; counting a tweet takes service_s on average.

    The counter waits for the rest of that time, as it would for a profile store. The other
    operators do not wait.
    """
    summary = "tweets judged by content and by author, and counted by author"
    pipeline = Pipeline("tweets-authors", objective_s=5, summary=summary)
    tweets.declare(pipeline, EmulatedService())
    waiting = with_service(
        counts(by="author"), EmulatedService(service_s=service_s, scv=scv), "count"
    )
    pipeline.sliced(reads="judged", writes="written", name="count")(waiting)
    return pipeline


PIPELINE = build()
