"""The live view of the publish/subscribe demo: load, subscribers, operators, hosts and slices."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from penstock.pubsub.demo import DemoResult, DemoSample, DemoSpec, SubscriberSample
from penstock.reports.progress import duration
from penstock.reports.sample_view import SampleView, progress_bar
from penstock.reports.text_charts import short, sparkline

#: Rates that are remembered.
_RATES = 60


class DemoView(SampleView[DemoSample]):
    """Shows load, subscribers and the engine of the demo."""

    def __init__(self, spec: DemoSpec, stream: TextIO | None = None) -> None:
        super().__init__(stream)
        self._spec = spec
        self._rates: deque[float] = deque(maxlen=_RATES)

    def line(self, sample: DemoSample) -> str:
        """Return a sample as one line, for a log."""
        return plain_line(sample)

    def lines(self, sample: DemoSample) -> list[str]:
        """Draw a sample, with the rates of all samples so far."""
        self._rates.append(sample.offered_per_s)
        time = progress_bar(sample.at_s, self._spec.seconds)
        return [
            f"publish/subscribe  {time}  {sample.published:,} ticks",
            f"  load {sparkline(self._rates)} {short(sample.offered_per_s)} ticks/s",
            "",
            f"  {'subscriber':<12}{'events':>8}{'delay':>9}  predicate",
            *(_subscriber_row(each) for each in sample.subscribers),
            "",
            *_engine_rows(sample.engine),
        ]


def plain_line(sample: DemoSample) -> str:
    """Return one sample as one line, for a log."""
    events = "  ".join(f"{each.name} {each.events}" for each in sample.subscribers)
    operators = "  ".join(
        f"{each['name']} {each.get('replicas') or 0}" for each in sample.engine.get("operators", ())
    )
    hosts = sample.engine.get("hosts") or ()
    shown = f"  hosts {len(hosts)}" if hosts else ""
    rate = f"{sample.offered_per_s:.0f}/s"
    return f"{duration(sample.at_s):>6}  {rate:>6}  events: {events}  {operators}{shown}".rstrip()


def demo_text(result: DemoResult) -> str:
    """Return the result for people."""
    total = sum(result.events.values())
    verdict = "exactly those that match, each once"
    if not result.is_right:
        verdict = f"{sum(result.missing.values())} missing, {sum(result.extra.values())} too many"
    return (
        f"{result.published:,} ticks, {total:,} events for 3 subscribers: {verdict}\n"
        f"delay from publish to event: {result.delay_p50_s:.2f} s in the median, "
        f"{result.delay_p95_s:.2f} s at the 95th percentile" + _hosts_text(result.hosts)
    )


def _hosts_text(hosts: Sequence[int]) -> str:
    if not hosts:
        return ""
    return f"\nhosts: {hosts[0]} at first, {max(hosts)} at most, {hosts[-1]} at the end"


def demo_json(result: DemoResult) -> dict[str, Any]:
    """Return the result as a JSON object."""
    return {
        "published": result.published,
        "events": dict(result.events),
        "missing": dict(result.missing),
        "extra": dict(result.extra),
        "delay_p50_s": result.delay_p50_s,
        "delay_p95_s": result.delay_p95_s,
        "hosts": list(result.hosts),
    }


def _subscriber_row(each: SubscriberSample) -> str:
    delay = "" if each.delay_s is None else f"{each.delay_s:.2f} s"
    return f"  {each.name:<12}{each.events:>8,}{delay:>9}  {each.predicate}"


def _engine_rows(engine: Mapping[str, Any]) -> Iterator[str]:
    if not engine.get("operators") and not engine.get("hosts"):
        yield f"  engine: {engine.get('kind', 'unknown')}, {engine.get('state', '')}"
        return
    yield f"  {'operator':<12}{'waiting':>8}{'replicas':>9}  slices of each replica"
    for each in engine["operators"]:
        slices = " | ".join(
            " ".join(map(str, numbers)) for numbers in each.get("slices_by_replica", ())
        )
        waiting = "" if each.get("waiting") is None else f"{each['waiting']:,}"
        yield f"  {each['name']:<12}{waiting:>8}{each.get('replicas') or 0:>9}  {slices}"
    for host in engine.get("hosts", ()):
        slices = "  ".join(
            f"{operator} {' '.join(map(str, numbers))}"
            for operator, numbers in host["slices"].items()
        )
        full = min(10, round(10 * host["cpu"]))
        bar = "#" * full + "." * (10 - full)
        yield f"  {host['name']:<12}[{bar}] {100 * host['cpu']:>3.0f} % CPU  {slices}"
