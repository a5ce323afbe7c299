"""Keyed state in slices, exactly once, at any parallelism.

State is memory-mapped and compacted; it need not fit in memory. A key always belongs to the same
slice (`topics.hashing`). A slice is a list of immutable layers, newest first (`sorted_layer`). Each
layer is stored in a file (`state_files`); a `version` lists the files of all slices. A batch opens
a `handle.State` over the layers of a slice and adds its changes as one more layer. `compaction`
keeps the number of layers small, and `check` verifies all files.
"""
