"""Files for Prometheus and Grafana: they name what is exported; no Prometheus is needed."""

import re
from pathlib import Path

from penstock.prometheus.families import FAMILIES

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_alerts_and_panels_name_metrics_that_there_are() -> None:
    known = {family.exposed_name for family in FAMILIES}
    known |= {
        f"{f.name}{end}" for f in FAMILIES if f.type == "histogram" for end in ("_count", "_bucket")
    }
    for path in ("prometheus/alerts.yml", "grafana/penstock.json"):
        names = set(re.findall(r"penstock_\w+", (DEPLOY / path).read_text()))
        assert names and names <= known


def test_every_alert_has_a_case_that_fires_and_one_that_stays_silent() -> None:
    alerts = set(re.findall(r"- alert: (\w+)", (DEPLOY / "prometheus" / "alerts.yml").read_text()))
    cases = Path(__file__).with_name("alert_cases.yml").read_text()
    expected = re.findall(r"alertname: (\w+)\n +exp_alerts:( \[\])?", cases)
    assert {name for name, silent in expected if not silent} == alerts
    assert {name for name, silent in expected if silent} == alerts
