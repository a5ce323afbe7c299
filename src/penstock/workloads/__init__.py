"""Offered load over time: patterns and traces as pure `rate(t)`, with exact counts.

Begin with `registry.make_workload`, which makes a `workload.Workload` from a name or an
expression; `arrivals` tells when its single records come.
"""
