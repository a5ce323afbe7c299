"""Offered load over time: patterns and traces as pure `rate(t)`, with exact counts.

Start with `registry.make_workload`, which makes a `workload.Workload` from a name or an
expression; `arrivals` draws the times of single records.
"""
