"""What runs: how a pipeline is declared, checked, described and found; the ready ones.

Begin with `pipeline.Pipeline`, which `from penstock import Pipeline` gives.
"""
