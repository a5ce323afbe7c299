"""Ready pipelines: the applications of the papers, with records that are made as they are needed.

Each module has `build`, whose arguments can be set for a run (`--set service_s=0.2`), and
`PIPELINE`, which is what it builds by itself. Where there is a simulated pipeline of the same
name, operators are named as in it, so that both can be compared.
"""
