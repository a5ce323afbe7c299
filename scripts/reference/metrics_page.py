"""Makes docs/metrics.md from the table of metrics."""

from penstock.prometheus.families import FAMILIES
from penstock.prometheus.run_metrics import BUCKETS

_HEAD = """\
# Metrics

`penstock run --metrics-port 9464` serves these metrics at `http://127.0.0.1:9464/metrics` while
the run lasts, in the text format of Prometheus or as OpenMetrics. Each value is the one of the last
tick; counters begin with the process. [Observability](observability.md) has the set-up of
Prometheus and Grafana. This page is made by `make docs`.

| metric | type | labels | meaning |
|---|---|---|---|
"""


def metrics_page() -> str:
    """Return the page as Markdown."""
    rows = []
    for family in FAMILIES:
        labels = ", ".join(f"`{label}`" for label in family.labels)
        rows.append(f"| `{family.exposed_name}` | {family.type} | {labels} | {family.doc} |")
    bounds = ", ".join(f"{bound:g}" for bound in BUCKETS)
    foot = f"\nBuckets of histograms end at {bounds} s. A measure that is unknown has no sample."
    return _HEAD + "\n".join(rows) + "\n" + foot + "\n"
