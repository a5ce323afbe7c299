"""Keyed state in slices: what an operator remembers of its keys, exactly once, at any parallelism.

A key belongs to one slice for ever (`topics.hashing`). A slice is a list of immutable levels,
newest first (`level`), each a run of a file (`runs`); which runs there are is a `version`. A batch
opens a `handle.State` over the levels of a slice, and what it changes becomes one more level;
`compaction` keeps the levels few, and `check` reads everything back.
"""
