"""Grids of runs: axes, run backends, a runner that resumes."""
