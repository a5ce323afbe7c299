"""The commands of `penstock`: one module per command, and nothing else."""
