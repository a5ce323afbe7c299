"""A program that runs a pipeline in the background, then again in a thread, without a session.

It talks with its test by lines: "running" when the run has started, "stopped" when it has ended.
The test stops the second run from its own process, and this program goes on.
"""

import json
import os
import sys
import threading
from pathlib import Path

from penstock import NotReadyError, Pipeline

HOME = Path(sys.argv[1]) if __name__ == "__main__" else Path()

pipeline = Pipeline("numbers", objective_s=5)
pipeline.topic("numbers", "id long")
pipeline.topic("doubled", "id long, double long, process long")


@pipeline.produces("numbers", arrivals="deterministic")
def count(first_id, due):
    return {"id": range(first_id, first_id + len(due))}


@pipeline.batches(reads="numbers", writes="doubled", max_replicas=2)
def double(batch):
    doubled = [2 * number for number in batch["id"].to_pylist()]
    return {"id": batch["id"], "double": doubled, "process": [os.getpid()] * len(doubled)}


LOAD = {"workload": "constant", "workload_params": {"rate": 40}, "policy": "ds2", "interval_s": 2}


def say(word, **facts):
    print(json.dumps({"word": word, **facts}), flush=True)


def run_in_thread():
    run = pipeline.run(**LOAD, minutes=30, out=HOME / "second")
    say("ended", ended=run.result.spark.ended, thread=threading.current_thread().name)


def main():
    run = pipeline.run(**LOAD, minutes=30, out=HOME / "first", background=True)
    say("running", alive=run.is_running, waited=run.wait(timeout_s=0.1), shown=repr(run))
    sys.stdin.readline()
    try:
        run.result  # noqa: B018  (a property that raises)
    except NotReadyError as error:
        say("not ready", error=str(error))
    run.stop()
    say("stopped", alive=run.is_running, waited=run.wait(), ended=run.result.spark.ended)
    thread = threading.Thread(target=run_in_thread, name="other")
    thread.start()
    thread.join()
    say("goes on", listed=sorted(path.name for path in (HOME / "second").glob("stop*")))


if __name__ == "__main__":
    main()
